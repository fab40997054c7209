"""A library file's bytes, hashed in one pass and copied if asked, so that text and hash belong together whatever happens to the file."""

import ctypes
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO

from stemma.errors import DocumentTooLarge, MovedWhileReading, Unavailable, UnreadableFile
from stemma.failpoints import reach
from stemma.library.files import FileStat, is_racy, open_source

_PIECE_BYTES = 1 << 20


class SpoolUnavailable(Unavailable):
    """The private copies of files cannot be written."""

    code, remedy = (
        "spool_unavailable",
        "Check space and permissions of `spool` in STEMMA_HOME; the documents are tried again by themselves.",
    )


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
    modified_at: datetime | None
    """None for a time that no calendar holds."""


@dataclass(frozen=True, slots=True)
class SpooledFile(HashedFile):
    """A hashed file and its private copy, which the caller removes."""

    path: Path


def spool(library: Path, disk_path: bytes, target_folder: Path, *, source_path: str, max_bytes: int) -> SpooledFile:
    """Copy a regular file into `target_folder` under a new name while hashing it.

    Raises:
        MovedWhileReading: it vanished or became something else, or its stat changed during the copy.
        DocumentTooLarge: more than `max_bytes`; nothing was read.
        UnreadableFile: the operating system refuses. Opening never waits.
        SpoolUnavailable: the copy cannot be written, whatever the file is.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=target_folder, prefix="spool-")
    except OSError as error:
        raise SpoolUnavailable(error.strerror or str(error)) from error
    copy = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as target:
            hashed = _hashed(library, disk_path, source_path, max_bytes=max_bytes, target=target)
            reach("spool.copied")
    except OSError as error:  # what the library refuses was named by `_hashed`
        copy.unlink(missing_ok=True)
        raise SpoolUnavailable(error.strerror or str(error)) from error
    except BaseException:
        copy.unlink(missing_ok=True)
        raise
    return SpooledFile(hashed.content_hash, hashed.stat, hashed.stable, hashed.created_at, hashed.modified_at, copy)


def hash_source(library: Path, disk_path: bytes, source_path: str) -> tuple[str, FileStat]:
    """sha256 (hex) of the file's bytes and the stat they had. Raises MovedWhileReading (also if written to meanwhile), UnreadableFile."""
    hashed = _hashed(library, disk_path, source_path, max_bytes=None, target=None)
    return hashed.content_hash, hashed.stat


def _hashed(library: Path, disk_path: bytes, source_path: str, *, max_bytes: int | None, target: IO[bytes] | None) -> HashedFile:
    with open_source(library, disk_path, source_path) as descriptor:
        before = os.fstat(descriptor)
        if max_bytes is not None and before.st_size > max_bytes:
            raise DocumentTooLarge(source_path, f"the file has {before.st_size:,} bytes, over {max_bytes:,}")
        digest, n_bytes = sha256(), 0
        # Not one byte further than the stat says: a file that grows without end is moved, not followed.
        while n_bytes <= before.st_size and (piece := _read(descriptor, source_path)):
            digest.update(piece)
            n_bytes += len(piece)
            if target is not None:
                target.write(piece)
        after, taken = os.fstat(descriptor), FileStat.of(before)
        if taken != FileStat.of(after) or before.st_ctime_ns != after.st_ctime_ns or n_bytes != before.st_size:
            raise MovedWhileReading(source_path, "it was written to while it was read")
        stable = not is_racy(taken.mtime_ns, time.time_ns())
        return HashedFile(digest.hexdigest(), taken, stable, _birth_time(descriptor, before), _moment(taken.mtime_ns / 1e9))


def _read(descriptor: int, source_path: str) -> bytes:
    try:
        return os.read(descriptor, _PIECE_BYTES)
    except OSError as error:
        raise UnreadableFile(source_path, f"the file cannot be read ({error.strerror})") from error


def _moment(seconds: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def _birth_time(descriptor: int, status: os.stat_result) -> datetime | None:
    seconds = getattr(status, "st_birthtime", None)  # macOS, Windows, BSD
    if seconds is None and sys.platform == "linux":
        seconds = _statx_birth_seconds(descriptor)
    return _moment(seconds) if seconds else None


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
