"""Renames: a missing file and a new one with the same bytes are one source, if there is no doubt which belongs to which."""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import DocumentError
from stemma.library.files import FileStat
from stemma.library.spool import hash_source
from stemma.store.locks import SOURCES_PER_TRANSACTION, lock_sources, share_corpus
from stemma.store.postgres import Connection

_KEEP_HASHES_S = 2.0  # what is lost at most when the process dies while it hashes
_PAIRS_PER_TRANSACTION = SOURCES_PER_TRANSACTION // 2


@dataclass(frozen=True)
class Unseen:
    """A file of the catalog that a walk did not meet."""

    source_id: UUID
    source_path: str
    partition_key: str
    disk_path: bytes
    presence: str
    content_hash: str | None
    hashed_size: int | None
    seen_size: int
    inode: str
    device: str


@dataclass(frozen=True)
class NewFile:
    """A file that no walk met before."""

    source_id: UUID
    workspace_id: int
    folder_id: int | None
    source_path: str
    partition_key: str
    disk_path: bytes
    file_type: str
    size: int
    mtime_ns: int
    inode: str
    device: str
    rename_hash: str | None


@dataclass(frozen=True)
class Renamed:
    """A source under its new path."""

    source_id: UUID
    old_path: str
    new_path: str
    retired_partition: str


File = TypeVar("File", Unseen, NewFile)


def find_renames(
    connection: Connection, library: Path, scan_id: int, missing: Sequence[Unseen], *, deadline: float
) -> list[tuple[Unseen, NewFile]] | None:
    """The pairs of a missing file and a new one that are the same file; None when the time was up before all was hashed.

    New files with the size of a missing one are hashed, at least one per call; hashes are kept, so that the next call goes on.
    """
    sizes = {size for file in missing if file.content_hash for size in (file.hashed_size, file.seen_size) if size is not None}
    if not sizes:
        return []
    with connection.cursor(row_factory=class_row(NewFile)) as cursor:
        new = cursor.execute(load_queries("library")["new_files"], {"scan_id": scan_id, "sizes": sorted(sizes)}).fetchall()
    hashes = _hashes(connection, library, new, deadline=deadline)
    return None if hashes is None else pair_renames(missing, new, hashes)


def pair_renames(missing: Sequence[Unseen], new: Sequence[NewFile], hashes: dict[UUID, str]) -> list[tuple[Unseen, NewFile]]:
    """Pairs with equal bytes: first those that are one inode, then, for each hash, the one missing and the one new file that are left.

    Args:
        hashes: source_id of a new file -> sha256; one that could not be read is absent and pairs with none.
    """
    lost: dict[str, list[Unseen]] = defaultdict(list)
    for file in missing:
        if file.content_hash:
            lost[file.content_hash].append(file)
    found: dict[str, list[NewFile]] = defaultdict(list)
    for file in new:
        if (content_hash := hashes.get(file.source_id)) in lost:
            found[content_hash].append(file)
    pairs: list[tuple[Unseen, NewFile]] = []
    for content_hash, candidates in found.items():
        old_by_inode, new_by_inode = _sole_by_inode(lost[content_hash]), _sole_by_inode(candidates)
        sure = [(old, new_by_inode[inode]) for inode, old in old_by_inode.items() if inode in new_by_inode]
        paired = {file.source_id for pair in sure for file in pair}
        old_left = [old for old in lost[content_hash] if old.source_id not in paired]
        new_left = [file for file in candidates if file.source_id not in paired]
        pairs += sure + (list(zip(old_left, new_left, strict=True)) if len(old_left) == len(new_left) == 1 else [])
    return pairs


def apply_renames(connection: Connection, scan_id: int, pairs: Sequence[tuple[Unseen, NewFile]], *, now: datetime) -> tuple[Renamed, ...]:
    """Give each old source the path of its new one, which goes; the old partition keys are retired."""
    queries = load_queries("library")
    for start in range(0, len(pairs), _PAIRS_PER_TRANSACTION):
        some = pairs[start : start + _PAIRS_PER_TRANSACTION]
        renamed = {
            "source_ids": [old.source_id for old, _ in some],
            "workspace_ids": [new.workspace_id for _, new in some],
            "folder_ids": [new.folder_id for _, new in some],
            "source_paths": [new.source_path for _, new in some],
            "partition_keys": [new.partition_key for _, new in some],
            "disk_paths": [new.disk_path for _, new in some],
            "file_types": [new.file_type for _, new in some],
            "sizes": [new.size for _, new in some],
            "mtimes_ns": [new.mtime_ns for _, new in some],
            "inodes": [new.inode for _, new in some],
            "devices": [new.device for _, new in some],
        }
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, (file.source_id for pair in some for file in pair))
            connection.execute(queries["drop_renamed"], {"source_ids": [new.source_id for _, new in some]})
            connection.execute(queries["rename_sources"], renamed | {"scan_id": scan_id, "now": now})
            retired = [old.partition_key for old, _ in some]
            connection.execute(queries["retire_partitions"], {"partition_keys": retired, "now": now})
            connection.execute(queries["revive_partitions"], {"partition_keys": renamed["partition_keys"]})
            connection.execute(queries["count_renamed"], {"n": len(some), "scan_id": scan_id})
    return tuple(Renamed(old.source_id, old.source_path, new.source_path, old.partition_key) for old, new in pairs)


def _hashes(connection: Connection, library: Path, new: Sequence[NewFile], *, deadline: float) -> dict[UUID, str] | None:
    known = {file.source_id: file.rename_hash for file in new if file.rename_hash}
    fresh: dict[UUID, str] = {}
    in_time, kept_at = True, time.monotonic()
    for file in new:
        if file.source_id in known:
            continue
        if not in_time:
            break
        try:
            content_hash, taken_of = hash_source(library, file.disk_path, file.source_path)
        except DocumentError:
            continue  # it cannot be read now, so it is nobody's new name; its own attempt will say why
        if taken_of == FileStat(file.size, file.mtime_ns, int(file.inode), int(file.device)):
            fresh[file.source_id] = content_hash
        in_time = time.monotonic() < deadline
        if time.monotonic() > kept_at + _KEEP_HASHES_S or not in_time:
            _keep(connection, fresh)
            kept_at = time.monotonic()
    else:
        return known | fresh
    return None


def _keep(connection: Connection, hashes: dict[UUID, str]) -> None:
    connection.execute(load_queries("library")["keep_rename_hashes"], {"source_ids": list(hashes), "hashes": list(hashes.values())})


def _sole_by_inode(files: Sequence[File]) -> dict[tuple[str, str], File]:
    """Those that share their inode with no other of them (hard links do)."""
    times = Counter((file.inode, file.device) for file in files)
    return {(file.inode, file.device): file for file in files if times[file.inode, file.device] == 1}
