"""A private copy of a library file, taken and hashed in one pass, so that text and hash belong together whatever happens to the file."""

import ctypes
import errno
import hashlib
import os
import stat
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from stemma.errors import DocumentTooLarge, MovedWhileReading, UnreadableFile

RACY_NS = 2_000_000_000
"""A file modified this recently may change again within its timestamp's grain (FAT: two seconds) and look the same."""

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FileStat:
    """What tells a changed file from an unchanged one."""

    size: int
    mtime_ns: int
    inode: int
    device: int

    @classmethod
    def of(cls, status: os.stat_result) -> "FileStat":
        """The four numbers of a stat."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)


@dataclass(frozen=True, slots=True)
class HashedFile:
    """The hash of a file's bytes and the stat that it is true for."""

    content_hash: str
    """sha256, hex."""
    stat: FileStat
    stable: bool
    """Whether the stat proves the bytes later on: the file had not been modified just before."""
    created_at: datetime | None
    """Birth time, UTC; None where platform or file system keep none."""
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class SpooledFile(HashedFile):
    """A hashed file and its private copy, which the caller removes."""

    path: Path


def spool(disk_path: bytes, target_folder: Path, *, source_path: str, max_bytes: int) -> SpooledFile:
    """Copy a regular file into `target_folder` under a new name while hashing it.

    Raises:
        MovedWhileReading: it vanished, or its stat changed during the copy.
        DocumentTooLarge: more than `max_bytes`; nothing was read.
        UnreadableFile: it cannot be read, or is a link, pipe, device or folder. Opening never waits.
    """
    descriptor, name = tempfile.mkstemp(dir=target_folder, prefix="spool-")
    copy = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as target:
            hashed = _hashed(disk_path, source_path=source_path, max_bytes=max_bytes, target=target)
    except BaseException:
        copy.unlink()
        raise
    return SpooledFile(hashed.content_hash, hashed.stat, hashed.stable, hashed.created_at, hashed.modified_at, copy)


def hash_file(disk_path: bytes, *, source_path: str, max_bytes: int | None = None) -> HashedFile:
    """The hash of a regular file without a copy. Raises as `spool` does."""
    return _hashed(disk_path, source_path=source_path, max_bytes=max_bytes, target=None)


def _hashed(disk_path: bytes, *, source_path: str, max_bytes: int | None, target: IO[bytes] | None) -> HashedFile:
    with _opened(disk_path, source_path) as descriptor:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise UnreadableFile(source_path, "it is no regular file")
        if max_bytes is not None and before.st_size > max_bytes:
            raise DocumentTooLarge(source_path, f"the file has {before.st_size:,} bytes, over {max_bytes:,}")
        digest, n_bytes = hashlib.sha256(), 0
        # Not one byte further than the stat says: a file that grows without end is moved, not followed.
        while n_bytes <= before.st_size and (piece := _read(descriptor, source_path)):
            digest.update(piece)
            n_bytes += len(piece)
            if target is not None:
                target.write(piece)
        after = os.fstat(descriptor)
        if FileStat.of(before) != FileStat.of(after) or before.st_ctime_ns != after.st_ctime_ns or n_bytes != before.st_size:
            raise MovedWhileReading(source_path, "it changed while it was read")
        return HashedFile(
            digest.hexdigest(),
            FileStat.of(before),
            time.time_ns() - before.st_mtime_ns > RACY_NS,
            _birth_time(descriptor, before),
            datetime.fromtimestamp(before.st_mtime_ns // 1_000 / 1_000_000, UTC),
        )


@contextmanager
def _opened(disk_path: bytes, source_path: str) -> Generator[int, None, None]:
    try:
        # O_NONBLOCK: opening a pipe without a writer would wait for ever.
        descriptor = os.open(disk_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MovedWhileReading(source_path, "it is no longer there") from error
    except OSError as error:
        raise UnreadableFile(source_path, _reason(error)) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(descriptor: int, source_path: str) -> bytes:
    try:
        return os.read(descriptor, _PIECE_BYTES)
    except OSError as error:
        raise UnreadableFile(source_path, _reason(error)) from error


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a symbolic link"
    return f"the system refused to read it ({error.strerror or errno.errorcode.get(error.errno or 0, 'unknown error')})"


def _birth_time(descriptor: int, status: os.stat_result) -> datetime | None:
    seconds = getattr(status, "st_birthtime", None)  # macOS, Windows, BSD
    if seconds is None and sys.platform == "linux":
        seconds = _statx_birth_seconds(descriptor)
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


_AT_EMPTY_PATH, _STATX_BTIME = 0x1000, 0x800
_STATX_BTIME_OFFSET = 0x50  # of struct statx, linux/stat.h: the same on every architecture


def _statx_birth_seconds(descriptor: int) -> float | None:
    """The birth time by statx(2), which Python's os module lacks; None when the C library or the file system has none."""
    try:
        statx = ctypes.CDLL(None, use_errno=True).statx
    except AttributeError:
        return None
    buffer = ctypes.create_string_buffer(256)
    if statx(descriptor, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer) != 0:
        return None
    if not int.from_bytes(buffer.raw[0:4], sys.byteorder) & _STATX_BTIME:
        return None
    seconds = int.from_bytes(buffer.raw[_STATX_BTIME_OFFSET : _STATX_BTIME_OFFSET + 8], sys.byteorder, signed=True)
    nanoseconds = int.from_bytes(buffer.raw[_STATX_BTIME_OFFSET + 8 : _STATX_BTIME_OFFSET + 12], sys.byteorder)
    return seconds + nanoseconds // 1_000 / 1_000_000 if seconds > 0 else None
