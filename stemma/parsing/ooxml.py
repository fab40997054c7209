"""Office Open XML packages: parts, relationships and properties, transitional and strict alike, without trust in the zip."""

import posixpath
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import IO, Any
from urllib.parse import unquote

from stemma.errors import EncryptedDocument
from stemma.parsing.draft import Source

etree: Any = import_module("lxml.etree")  # ships no types

MAX_PART_BYTES = 1_000_000_000  # unpacked; a zip of a few KB can claim any size

Element = Any
"""An lxml element. Names are compared without namespace: strict and transitional files differ in nothing else we read."""

_FAILURES: tuple[type[Exception], ...] = (
    zipfile.BadZipFile,
    etree.XMLSyntaxError,
    EOFError,
    OSError,
    NotImplementedError,
    UnicodeDecodeError,
    RuntimeError,
)


@dataclass(frozen=True, slots=True)
class Relationship:
    """What a part points to."""

    kind: str
    """The last word of its type's address, such as `slide` or `officeDocument`."""
    part: str
    """Name of the part in the package; for external targets empty: nothing outside the file is ever read."""


class Package:
    """An open Office file. Everything it raises for unsound bytes is CorruptDocument."""

    def __init__(self, source: Source) -> None:
        self._source = source
        try:
            self._zip = zipfile.ZipFile(source.path)
        except _FAILURES as error:
            raise source.corrupt("its zip container is damaged or cut off") from error
        self._names = {name.lower().lstrip("/"): name for name in self._zip.namelist()}

    def __enter__(self) -> "Package":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def main_part(self) -> str:
        """The name of the document, presentation or workbook part."""
        for relationship in self.relationships("").values():
            if relationship.kind == "officeDocument":
                return relationship.part
        raise self._source.corrupt("the package names no main document")

    def has(self, part: str) -> bool:
        """Whether the package holds the part; case does not matter."""
        return part.lower() in self._names

    def open(self, part: str) -> IO[bytes]:
        """The part's bytes as a stream."""
        name = self._names.get(part.lower())
        if name is None:
            raise self._source.corrupt(f"the package lacks its part {posixpath.basename(part)}")
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

    def relationships(self, part: str) -> dict[str, Relationship]:
        """What a part points to, by id; empty when it points to nothing. The package itself is the part `""`."""
        folder, name = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{name}.rels")
        if not self.has(path):
            return {}
        found: dict[str, Relationship] = {}
        for element in self.tree(path):
            external = element.get("TargetMode") == "External"
            target = unquote(element.get("Target", ""))
            resolved = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            found[element.get("Id", "")] = Relationship(element.get("Type", "").rsplit("/", 1)[-1], "" if external else resolved)
        return found

    def core_properties(self) -> dict[str, str]:
        """`title`, `author`, `subject`, `keywords` as far as the package states them."""
        names = {"title": "title", "creator": "author", "subject": "subject", "keywords": "keywords"}
        for relationship in self.relationships("").values():
            if relationship.kind == "core-properties" and self.has(relationship.part):
                properties = {names.get(local_name(element)): (element.text or "").strip() for element in self.tree(relationship.part)}
                return {name: value for name, value in properties.items() if name and value}
        return {}


def local_name(element: Element) -> str:
    """The element's name without its namespace; empty for entities and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str) -> str | None:
    """The attribute of that local name, whatever its namespace."""
    if (value := element.get(name)) is not None:
        return value
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), None)


def child(element: Element | None, *path: str) -> Element | None:
    """The first descendant along a path of local names; None when a step is missing."""
    for name in path:
        if element is None:
            return None
        element = next((inner for inner in element if local_name(inner) == name), None)
    return element


def is_on(element: Element | None) -> bool:
    """Whether a toggle such as `<w:vanish/>` is present and not switched off."""
    return element is not None and attribute(element, "val") not in ("0", "false", "off", "none")
