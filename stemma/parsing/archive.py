"""Zip archives: the text is the list of what they hold; their members are documents of their own."""

import zipfile
import zlib
from collections.abc import Iterator

from stemma.errors import EncryptedDocument, UnpacksTooLarge
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.encoding import NotText, decode
from stemma.parsing.members import Entry, Listing, Pieces

MAX_RATIO = 200
"""A member that unpacks to more than this many times its packed size is a bomb: text reaches 100, deflate itself 1,032."""

_HARMLESS_BYTES = 10_000_000  # unpacked; however well it was packed
_PIECE_BYTES = 1 << 20
_UTF8_FLAG, _ENCRYPTED_FLAG = 0x800, 0x1
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)


def parse_zip(source: Source) -> Draft:
    """A line per member with its size, in the archive's order.

    Raises:
        EncryptedDocument: every member needs a password.
        CorruptDocument: the archive is damaged or cut off.
    """
    builder, listing = DraftBuilder(source), Listing(source)
    for entry in zip_entries(source):
        if member := listing.add(entry):
            size = "" if member.size is None else f" ({member.size:,} bytes)"
            builder.add(f"- {'/'.join(entry.names)}{size}", "list", continues=True)
    if listing.members and all(member.error_code == EncryptedDocument.code for member in listing.members):
        raise EncryptedDocument(source.source_path, "everything in the archive is encrypted")
    return builder.finish(metadata=listing.metadata)


def zip_entries(source: Source) -> Iterator[Entry]:
    """The files of an archive in the order of its directory. Raises CorruptDocument."""
    try:
        archive = zipfile.ZipFile(source.path)
    except _DAMAGE as error:
        raise source.corrupt("the archive is damaged or cut off") from error
    with archive:
        files = [info for info in archive.infolist() if not info.filename.endswith("/")]
        for info, name in zip(files, _names(files), strict=True):
            yield Entry(tuple(name.split("/")), lambda info=info: _unpacked(archive, info, source))


def _names(files: list[zipfile.ZipInfo]) -> list[str]:
    """Names that the archive does not call UTF-8 are UTF-8 if all of them are, else in the encoding that they look like together."""
    unmarked = [info.orig_filename.encode("cp437", "replace") for info in files if not info.flag_bits & _UTF8_FLAG]
    together = b"\n".join(unmarked)
    try:
        encoding = "ascii" if together.isascii() else decode(together).encoding
    except NotText:
        encoding = "cp437"

    def spelled(info: zipfile.ZipInfo) -> str:
        if info.flag_bits & _UTF8_FLAG:
            return info.orig_filename
        return info.orig_filename.encode("cp437", "replace").decode(encoding, "replace")

    return [spelled(info) for info in files]


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, source: Source) -> Pieces:
    if info.flag_bits & _ENCRYPTED_FLAG:
        raise EncryptedDocument(source.source_path, "it is encrypted in its archive")
    if info.file_size > _HARMLESS_BYTES and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise UnpacksTooLarge(source.source_path, f"it unpacks to more than {MAX_RATIO} times its size")
    try:
        with archive.open(info) as member:  # reads no more than the size that the directory claims, and checks the checksum
            while piece := member.read(_PIECE_BYTES):
                yield piece
    except _DAMAGE as error:
        raise source.corrupt("it is damaged in its archive") from error
