"""Uploads: a file from elsewhere becomes one of the library, once per folder, and is taken up at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Literal
from uuid import UUID

from psycopg.errors import UniqueViolation

from sql import load_queries
from stemma.errors import RequestError
from stemma.library.folders import folder_ids, workspace_ids
from stemma.library.looks import request_look
from stemma.library.paths import file_type, folder_names, partition_key, source_name, workspace_key
from stemma.library.placing import Staged, staged
from stemma.library.restriction import Restriction
from stemma.library.upload_names import numbered, upload_place
from stemma.library.wishes import bring_back
from stemma.store.postgres import Connection, Pool, explained

NAMES_TRIED = 1_000

_PIECE_BYTES = 1 << 20


class UploadTooLarge(RequestError):
    """The file is above MAX_FILE_BYTES."""

    code, remedy = "upload_too_large", "Split the file, or raise MAX_FILE_BYTES."


class NameTaken(RequestError):
    """A thousand files of this name, each with another number, lie in the folder already."""

    code, remedy = "name_taken", "Give the file another name."


@dataclass(frozen=True)
class Upload:
    """What became of one file."""

    outcome: Literal["stored", "duplicate"]
    """Duplicate: the folder holds the same bytes already; nothing was stored."""
    source_id: UUID
    source_path: str
    """Of the file that was stored, or of the one that was there."""


def store_upload(
    pool: Pool, content: IO[bytes], *, library: Path, folder: str, path: str, max_bytes: int, mtime_ns: int | None, now: datetime
) -> Upload:
    """Store a file in the library, under a free name, and have it taken up.

    The same bytes are stored once per folder, also when they are sent twice at once. Nothing that is there is ever overwritten.

    Args:
        content: at its beginning, seekable.
        folder, path: as `upload_place` takes them.
        mtime_ns: the file's own clock.
    Raises:
        UnsafePath, ReservedPath, LeftoverName, FolderTooDeep, UploadPathTooLong, UploadTooLarge, NameTaken: this file is refused.
        LibraryNotWritable, StoreUnavailable: nothing can be stored now.
    """
    folders, name = upload_place(folder, path)
    content_hash = _hashed(content, max_bytes)
    with staged(library, folders, content, mtime_ns=mtime_ns) as waiting, explained(), pool.connection() as connection:
        for number in range(1, NAMES_TRIED + 1):
            candidate = numbered(name, number)
            if known := _same_bytes(connection, folders, waiting, candidate, content_hash, now=now):
                bring_back(connection, Restriction(paths=[known.source_path]), now=now)
                request_look(connection, now=now)
                return known
            if not waiting.is_taken(candidate) and (stored := _stored(connection, folders, waiting, candidate, content_hash, now=now)):
                return stored
    raise NameTaken(f"{name!r} is taken")


def _hashed(content: IO[bytes], max_bytes: int) -> str:
    digest, n_bytes = sha256(), 0
    while piece := content.read(_PIECE_BYTES):
        n_bytes += len(piece)
        if n_bytes > max_bytes:
            raise UploadTooLarge(f"the file has more than {max_bytes:,} bytes")
        digest.update(piece)
    content.seek(0)
    return digest.hexdigest()


def _place(connection: Connection, source_path: str, disk_path: bytes, *, now: datetime) -> tuple[int, int | None]:
    """workspace_id and folder_id, made where they are missing."""
    key = workspace_key(source_path)
    workspace = workspace_ids(connection, [key], now=now)[key]
    return workspace, folder_ids(connection, [(workspace, folder_names(source_path, disk_path))], now=now)[0]


def _paths(folders: Sequence[str], waiting: Staged, name: str) -> tuple[str, bytes]:
    disk_path = b"%b/%b" % (waiting.folder_path, name.encode()) if waiting.folder_path else name.encode()
    return "/".join([*folders, source_name(name.encode())]), disk_path


def _same_bytes(
    connection: Connection, folders: Sequence[str], waiting: Staged, name: str, content_hash: str, *, now: datetime
) -> Upload | None:
    """The file of the folder that has these bytes already; a key that no longer tells of a file's bytes is forgotten."""
    with connection.transaction():
        workspace, folder = _place(connection, *_paths(folders, waiting, name), now=now)
        asked = {"workspace_id": workspace, "folder_id": folder, "content_hash": content_hash}
        connection.execute(load_queries("uploads")["forget_stale_keys"], asked)
        found = connection.execute(load_queries("uploads")["same_bytes"], asked).fetchone()
    return Upload("duplicate", *found) if found else None


def _stored(
    connection: Connection, folders: Sequence[str], waiting: Staged, name: str, content_hash: str, *, now: datetime
) -> Upload | None:
    """The file under this name; None if the name or the bytes were taken by someone else just now."""
    source_path, disk_path = _paths(folders, waiting, name)
    try:
        with connection.transaction():
            workspace, folder = _place(connection, source_path, disk_path, now=now)
            if folder is not None and connection.execute(load_queries("uploads")["hold_folder"], {"folder_id": folder}).fetchone() is None:
                workspace, folder = _place(connection, source_path, disk_path, now=now)  # it was dropped as empty just now: made anew
            row = {
                "workspace_id": workspace, "folder_id": folder, "source_path": source_path, "partition_key": partition_key(source_path),
                "disk_path": disk_path, "file_type": file_type(source_path), "dedup_key": content_hash, "now": now,
                "size": waiting.stat.size, "mtime_ns": waiting.stat.mtime_ns, "inode": waiting.stat.inode, "device": waiting.stat.device,
            }  # fmt: skip
            inserted = connection.execute(load_queries("uploads")["insert_upload"], row).fetchone()
            if inserted is None:
                return None
            # Last before the commit: a file without a row is found by the next walk, a row without a file would be missing.
            waiting.place(name)
            request_look(connection, now=now)
            return Upload("stored", inserted[0], source_path)
    except (UniqueViolation, FileExistsError):
        return None
