"""Placing: bytes become a file of the library at once, under a name that was free, and never through a link."""

import os
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from stemma.errors import Unavailable
from stemma.library.files import FileStat
from stemma.library.paths import disk_name, source_name, source_names
from stemma.library.walk import skipped_by_name

_PIECE_BYTES = 1 << 20


class LibraryNotWritable(Unavailable):
    """A file cannot be written into the library."""

    code, remedy = "library_not_writable", "Check space and permissions of STEMMA_LIBRARY."


@dataclass(frozen=True)
class Staged:
    """A whole file beside its future place; no walk sees it yet."""

    folder_path: bytes
    """Relative to the library, as the file system spells it; empty for the library itself."""
    stat: FileStat
    _folder: int
    _name: bytes
    _taken: frozenset[str]

    def is_taken(self, name: str) -> bool:
        """Whether something in the folder reads as this name, however it is spelled."""
        return source_name(name.encode()) in self._taken

    def place(self, name: str) -> bytes:
        """Give it its name; returns its path relative to the library. Raises FileExistsError, and leaves what is there alone."""
        target = name.encode()
        try:
            os.link(self._name, target, src_dir_fd=self._folder, dst_dir_fd=self._folder, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: hold the name, then take its place
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self._folder))
            os.replace(self._name, target, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        os.fsync(self._folder)
        return b"%b/%b" % (self.folder_path, target) if self.folder_path else target


@contextmanager
def staged(library: Path, folders: Sequence[str], content: IO[bytes], *, mtime_ns: int | None) -> Generator[Staged]:
    """The content as a file in this folder of the library, which is made where it is missing; what was not placed is removed.

    Args:
        folders: names as a source_path has them, from the library down.
        mtime_ns: the clock that the file is given; None: now.
    Raises:
        LibraryNotWritable: the operating system refuses, or a link or a file is where a folder should be.
    """
    try:
        with _folder_made(library, folders) as (folder, folder_path):
            name = b".stemma-upload-" + secrets.token_hex(8).encode()
            try:
                stat = _written(folder, name, content, mtime_ns)
                taken = frozenset(source_names(_documents(folder)))
                yield Staged(folder_path, stat, folder, name, taken)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
    except OSError as error:
        raise LibraryNotWritable(f"the file could not be stored ({error.strerror})") from error


def make_folder(library: Path, name: str) -> None:
    """A first folder of the library, if it is missing. Raises LibraryNotWritable."""
    try:
        with _folder_made(library, [name]):
            pass
    except OSError as error:
        raise LibraryNotWritable(f"the folder could not be made ({error.strerror})") from error


def _written(folder: int, name: bytes, content: IO[bytes], mtime_ns: int | None) -> FileStat:
    descriptor = os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        while piece := content.read(_PIECE_BYTES):
            file.write(piece)
        file.flush()
        if mtime_ns is not None:
            os.utime(file.fileno(), ns=(mtime_ns, mtime_ns))
        os.fsync(file.fileno())
        return FileStat.of(os.fstat(file.fileno()))


@contextmanager
def _folder_made(library: Path, folders: Sequence[str]) -> Generator[tuple[int, bytes]]:
    """A descriptor of the folder and its path, level by level; one that exists is taken however its name is spelled."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    library.mkdir(parents=True, exist_ok=True)
    folder, path = os.open(library, flags), list[bytes]()
    try:
        for name in folders:
            spelled = _spelling(folder, name)
            with suppress(FileExistsError):
                os.mkdir(spelled, dir_fd=folder)
            above, folder = folder, os.open(spelled, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(above)
            path.append(spelled)
        yield folder, b"/".join(path)
    finally:
        os.close(folder)


def _spelling(folder: int, name: str) -> bytes:
    entries = _documents(folder)
    return dict(zip(source_names(entries), entries, strict=True)).get(name, disk_name(name))


def _documents(folder: int) -> list[bytes]:
    """What a walk would meet in the folder."""
    with os.scandir(folder) as listing:
        names = [os.fsencode(entry.name) for entry in listing]
    return [name for name in names if skipped_by_name(name) is None]
