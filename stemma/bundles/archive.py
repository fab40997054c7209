"""The container of a bundle: a zip archive whose manifest comes last and names every member with its size and sha256."""

import hashlib
import stat
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, Self

from stemma.bundles.errors import BundleInvalid
from stemma.bundles.manifest import MANIFEST, MAX_MANIFEST_BYTES, Manifest, Member, parse_manifest

COMPRESSION = 3  # of zlib: text shrinks to a third, at three times the speed of the default
PIECE_BYTES = 1 << 20
MAX_DIRECTORY_BYTES = 200_000_000
MAX_LINE_BYTES = 400_000_000
MAX_RATIO = 400
"""A member may unpack to this many times its packed size, once it is above SMALL_BYTES: text shrinks to a twentieth at best."""
SMALL_BYTES = 16_000_000

_ATTRIBUTES = (stat.S_IFREG | 0o600) << 16
_END, _END_64 = b"PK\x05\x06", b"PK\x06\x06"


class BundleWriter:
    """Writes members one after the other to a stream that need not be seekable, hashing each as it goes.

    A context: what raises in it leaves no archive behind, `finish` makes it one.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", allowZip64=True)
        self.members: list[Member] = []
        self.n_bytes = 0
        """Written so far, unpacked."""

    def member(self, name: str, pieces: Iterator[bytes], *, packed: bool = True) -> Member:
        """Write a member from its pieces and return what the manifest says of it."""
        info = zipfile.ZipInfo(name)
        info.external_attr = _ATTRIBUTES
        info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        info._compresslevel = COMPRESSION  # type: ignore[attr-defined]  # public as `compress_level` from Python 3.13 on
        digest, size = hashlib.sha256(), 0
        with self._zip.open(info, "w", force_zip64=True) as target:
            for piece in pieces:
                target.write(piece)
                digest.update(piece)
                size += len(piece)
                self.n_bytes += len(piece)
        written = Member(name=name, size_bytes=size, sha256=digest.hexdigest())
        self.members.append(written)
        return written

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._zip.fp = None  # or it would write a directory of what is there when it is collected

    def finish(self, manifest: bytes) -> None:
        """Write the manifest as the last member, and the directory."""
        info = zipfile.ZipInfo(MANIFEST)
        info.external_attr = _ATTRIBUTES
        info.compress_type = zipfile.ZIP_DEFLATED
        self._zip.writestr(info, manifest)
        self._zip.close()


def gathered(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines, each with its end, in pieces of about a megabyte: hashing and packing cost less so."""
    held: list[bytes] = []
    n_bytes = 0
    for line in lines:
        held.append(line)
        n_bytes += len(line) + 1
        if n_bytes >= PIECE_BYTES:
            yield b"\n".join(held) + b"\n"
            held, n_bytes = [], 0
    if held:
        yield b"\n".join(held) + b"\n"


class Archive:
    """An opened bundle whose directory and manifest agree. Members are read as streams that prove what was recorded of them."""

    def __init__(self, file: IO[bytes]) -> None:
        """Read the directory and the manifest alone, whatever the size of the bundle.

        Raises BundleInvalid or BundleIncompatible.
        """
        with unsound("the archive"):
            size = _check_directory(file)
            self._zip = zipfile.ZipFile(file)
            infos = self._zip.infolist()
            _check_entries(infos, size)
            data = _manifest_bytes(self._zip, infos)
        self.manifest: Manifest = parse_manifest(data)
        self._check_sizes(infos)

    def pieces(self, name: str) -> Iterator[bytes]:
        """The member's bytes in pieces. Raises BundleInvalid at the end if they are not those that were recorded."""
        (member,) = (member for member in self.manifest.members if member.name == name)
        digest, size = hashlib.sha256(), 0
        with unsound(name), self._zip.open(name) as source:
            while piece := source.read(PIECE_BYTES):
                digest.update(piece)
                size += len(piece)
                if size > member.size_bytes:
                    break
                yield piece
        if size != member.size_bytes or digest.hexdigest() != member.sha256:
            raise BundleInvalid(name, "its bytes are not those that were written (sha256)")

    def lines(self, name: str) -> Iterator[bytes]:
        """The member's lines without their ends. Raises BundleInvalid as `pieces` does, and for a line that no row can have."""
        parts: list[bytes] = []
        n_bytes = 0
        for piece in self.pieces(name):
            first, *others = piece.split(b"\n")
            parts.append(first)
            n_bytes += len(first)
            if n_bytes > MAX_LINE_BYTES:
                raise BundleInvalid(name, f"a line has more than {MAX_LINE_BYTES} bytes")
            if others:
                yield b"".join(parts)
                *whole, last = others
                yield from whole
                parts, n_bytes = [last], len(last)
        if n_bytes:
            yield b"".join(parts)  # written by others than us, the last line may lack its end

    def rows(self, name: str, n_bytes: int) -> Iterator[bytes]:
        """The member in parts of `n_bytes`. Raises BundleInvalid as `pieces` does."""
        rest = b""
        for piece in self.pieces(name):
            rest = rest + piece if rest else piece
            n_whole = len(rest) // n_bytes
            for row in range(n_whole):
                yield rest[row * n_bytes : (row + 1) * n_bytes]
            rest = rest[n_whole * n_bytes :]
        if rest:
            raise BundleInvalid(name, "its last row is cut off")

    def _check_sizes(self, infos: list[zipfile.ZipInfo]) -> None:
        found = {info.filename: info.file_size for info in infos if info.filename != MANIFEST}
        recorded = {member.name: member.size_bytes for member in self.manifest.members}
        if extra := sorted(found.keys() - recorded.keys()):
            raise BundleInvalid("members", f"the archive holds {extra[0][:100]!r}, which the manifest does not list")
        for name, size in recorded.items():
            if name not in found:
                raise BundleInvalid(name, "it is listed and not in the archive")
            if found[name] != size:
                raise BundleInvalid(name, f"{size} bytes are recorded, the archive says {found[name]}")


@contextmanager
def unsound(field: str) -> Generator[None]:
    """Turn what zipfile and zlib say of damaged bytes into BundleInvalid. A failing disk keeps its OSError."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error, ValueError, OverflowError) as error:
        raise BundleInvalid(field, str(error).strip().rstrip(".") or type(error).__name__) from error
    except OSError as error:
        if error.errno is not None and error.errno != 22:  # a place before the beginning of the file
            raise
        raise BundleInvalid(field, "it points outside of the file") from error


def _check_directory(file: IO[bytes]) -> int:
    """The size of the file; refused before anything is read whose size only the file itself states."""
    file.seek(0, 2)
    size = file.tell()
    tail_start = max(0, size - 22 - 65_535)
    file.seek(tail_start)
    tail = file.read(size - tail_start)
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < 22:
        raise BundleInvalid("the archive", "it is no zip archive, or its end is missing")
    (directory_bytes,) = struct.unpack_from("<L", tail, at + 12)
    if directory_bytes == 0xFFFF_FFFF and (at_64 := tail.rfind(_END_64, 0, at)) >= 0 and len(tail) - at_64 >= 48:
        (directory_bytes,) = struct.unpack_from("<Q", tail, at_64 + 40)
    if directory_bytes > min(size, MAX_DIRECTORY_BYTES):
        raise BundleInvalid("the archive", f"its directory claims {directory_bytes} bytes")
    file.seek(0)
    return size


def _check_entries(infos: list[zipfile.ZipInfo], size: int) -> None:
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise BundleInvalid("members", "the archive holds two members of one name")
    if sum(info.compress_size for info in infos) > size:
        raise BundleInvalid("members", "members overlap each other")
    for info in infos:
        shown = repr(info.filename[:100])
        if "\\" in info.orig_filename or "\\" in info.filename or "\0" in info.orig_filename:
            raise BundleInvalid("members", f"{shown} is no name of a member")
        if info.filename.startswith("/") or ".." in info.filename.split("/") or ":" in info.filename:
            raise BundleInvalid("members", f"{shown} leads out of the archive")
        if stat.S_ISLNK(info.external_attr >> 16) or info.is_dir():
            raise BundleInvalid("members", f"{shown} is a link or a folder")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 0x1:
            raise BundleInvalid("members", f"{shown} is packed in a way that bundles are not")
        if info.file_size > SMALL_BYTES and info.file_size > MAX_RATIO * info.compress_size:
            raise BundleInvalid("members", f"{shown} unpacks to more than {MAX_RATIO} times its size")


def _manifest_bytes(archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo]) -> bytes:
    found = [info for info in infos if info.filename == MANIFEST]
    if not found:
        raise BundleInvalid(MANIFEST, "it is missing, so this is no bundle")
    if found[0].file_size > MAX_MANIFEST_BYTES:
        raise BundleInvalid(MANIFEST, f"it has more than {MAX_MANIFEST_BYTES} bytes")
    with archive.open(found[0]) as source:
        data = source.read(MAX_MANIFEST_BYTES + 1)
    if len(data) > MAX_MANIFEST_BYTES:
        raise BundleInvalid(MANIFEST, f"it has more than {MAX_MANIFEST_BYTES} bytes")
    return data
