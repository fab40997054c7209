"""Zip containers of parts (Office, OpenDocument, EPUB), read without trust in what they claim."""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Self

from stemma.errors import EncryptedDocument
from stemma.parsing.draft import Source
from stemma.parsing.elements import Element, etree

MAX_PART_BYTES = 1_000_000_000  # unpacked; a zip of a few KB can claim any size

_FAILURES: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    zlib.error,
    etree.XMLSyntaxError,
    EOFError,
    OSError,
    NotImplementedError,
    UnicodeDecodeError,
    RuntimeError,
)


class ZippedParts:
    """An open container. Everything it raises for unsound bytes is CorruptDocument."""

    def __init__(self, source: Source) -> None:
        self._source = source
        try:
            self._zip = zipfile.ZipFile(source.path)
        except _FAILURES as error:
            raise source.corrupt("its zip container is damaged or cut off") from error
        self._names = {name.lower().lstrip("/"): name for name in self._zip.namelist()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def has(self, part: str) -> bool:
        """Whether the package holds the part; case does not matter."""
        return part.lower() in self._names

    def open(self, part: str) -> IO[bytes]:
        """The part's bytes as a stream."""
        name = self._names.get(part.lower())
        if name is None:
            raise self._source.corrupt(f"the container lacks its part {posixpath.basename(part)}")
        info = self._zip.getinfo(name)
        if info.flag_bits & 0x1:
            raise EncryptedDocument(self._source.source_path, "its parts are encrypted")
        if info.file_size > MAX_PART_BYTES:
            raise self._source.corrupt("one of its parts unpacks to more than a gigabyte")
        try:
            return self._zip.open(info)
        except _FAILURES as error:
            raise self._source.corrupt("its zip container is damaged or cut off") from error

    def read(self, part: str) -> bytes:
        """The part's bytes."""
        with self.open(part) as stream:
            try:
                return stream.read(MAX_PART_BYTES)
            except _FAILURES as error:
                raise self._source.corrupt("its zip container is damaged or cut off") from error

    def tree(self, part: str) -> Element:
        """The root element of an XML part; entities are not resolved."""
        parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True, remove_comments=True, remove_pis=True)
        try:
            return etree.fromstring(self.read(part), parser)
        except etree.XMLSyntaxError as error:
            raise self._source.corrupt(f"its part {posixpath.basename(part)} is no XML") from error

    def elements(self, part: str, name: str) -> Iterator[Element]:
        """The elements of that name in a part, one after the other; each is emptied when the next is asked for."""
        with self.open(part) as stream:
            events = etree.iterparse(stream, events=("end",), tag=f"{{*}}{name}", resolve_entities=False, no_network=True, huge_tree=True)
            try:
                for _, element in events:
                    yield element
                    element.clear()
                    while element.getprevious() is not None:
                        del element.getparent()[0]
            except _FAILURES as error:
                raise self._source.corrupt(f"its part {posixpath.basename(part)} is no sound XML") from error


def part_picture(part: str) -> str:
    """The place of a picture that is a part of a container."""
    return f"part:{part}"
