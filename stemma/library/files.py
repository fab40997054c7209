"""The files themselves: their stat, their bytes and their end, never leaving the library through a link."""

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from stemma.errors import MovedWhileReading, UnreadableFile

RACY_WINDOW_NS = 2_000_000_000
"""The coarsest granularity of a timestamp that is met (FAT): two writes this close may leave the same mtime."""

_INT64_MAX = 2**63 - 1
_GONE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO))  # the last two: a link or a socket took its place


class FileStat(NamedTuple):
    """What stands for the bytes as long as it stays the same."""

    size: int
    mtime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, result: os.stat_result) -> "FileStat":
        """From a stat. Times beyond the year 2262, which file systems can hold and a bigint cannot, are cut to it."""
        return cls(result.st_size, max(-_INT64_MAX, min(result.st_mtime_ns, _INT64_MAX)), result.st_ino, result.st_dev)


def is_racy(mtime_ns: int, now_ns: int) -> bool:
    """Whether a file read at `now_ns` may yet change without a change of its mtime, so that its stat cannot vouch for its bytes.

    A time further in the future was set by hand: a later write would change it.
    """
    return abs(now_ns - mtime_ns) <= RACY_WINDOW_NS


@contextmanager
def open_source(library: Path, disk_path: bytes, source_path: str) -> Generator[int]:
    """A descriptor of the regular file, reached without following any link below the library, closed at the end.

    Raises:
        MovedWhileReading: it is gone, or has become something else than a regular file.
        UnreadableFile: the operating system refuses.
    """
    descriptor = _open_regular(library, disk_path, source_path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def create_source(library: Path, disk_path: bytes, pieces: Iterable[bytes], *, modified_at: datetime | None) -> bool:
    """Write a new file, with the folders above it, following no link below the library; returns False when something has its name already.

    It appears whole, with this time of modification. Raises OSError when the operating system refuses.
    """
    *parents, name = disk_path.split(b"/")
    with _open_folder(library, parents, make=True) as folder:
        partial = b".%b.partial" % name[:200]  # a name that no walk takes for a document
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial, dir_fd=folder)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                file.flush()
                if modified_at is not None:
                    os.utime(file.fileno(), (modified_at.timestamp(), modified_at.timestamp()))
                os.fsync(file.fileno())
            os.link(partial, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:
            return False
        finally:
            os.unlink(partial, dir_fd=folder)
    return True


def unlink_source(library: Path, disk_path: bytes, *recorded: FileStat) -> bool:
    """Remove the file if its stat is every one of those recorded, and the folders that this empties; never the library itself.

    Returns whether the file is gone; False when it was changed meanwhile and stays.
    Raises OSError when the operating system refuses.
    """
    *parents, name = disk_path.split(b"/")
    try:
        with _open_folder(library, parents) as folder:
            present = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if not recorded or not stat.S_ISREG(present.st_mode) or any(FileStat.of(present) != known for known in recorded):
                return False
            os.unlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno in _GONE:
            return True
        raise
    for depth in range(len(parents), 0, -1):
        try:
            with _open_folder(library, parents[: depth - 1]) as above:
                os.rmdir(parents[depth - 1], dir_fd=above)
        except OSError:
            break  # not empty, or not ours to remove: the file is gone, which is what was asked
    return True


def _open_regular(library: Path, disk_path: bytes, source_path: str) -> int:
    try:
        *parents, name = disk_path.split(b"/")
        with _open_folder(library, parents) as folder:
            # Without O_NONBLOCK the open of a pipe that took the file's place would wait for ever.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _GONE:
            raise MovedWhileReading(source_path, "it was moved or removed before it was read") from error
        raise UnreadableFile(source_path, f"the file cannot be read ({error.strerror})") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise MovedWhileReading(source_path, "it is no longer a regular file")
    return descriptor


@contextmanager
def _open_folder(library: Path, parents: list[bytes], *, make: bool = False) -> Generator[int]:
    """A descriptor of a folder below the library, opened level by level so that no link is followed; with `make`, missing ones are made."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    folder = os.open(library, flags)
    try:
        for name in parents:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            above, folder = folder, os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
            os.close(above)
        yield folder
    finally:
        os.close(folder)
