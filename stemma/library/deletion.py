"""Deleting: a source leaves every scope at once, then the keyword indexes, the disk if asked, and the corpus; each step is recorded.

Killed anywhere, the next call goes on at the recorded step; every step may be repeated.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import DocumentError, FileNotRemoved
from stemma.failpoints import reach
from stemma.library.files import FileStat, unlink_source
from stemma.library.places import Places
from stemma.library.spool import hash_source
from stemma.library.walk import is_reserved
from stemma.store.forgotten_results import forget_results
from stemma.store.locks import (
    WALK_LOCK,
    giving_way,
    lock_corpus_and_sources,
    lock_sources,
    portions,
    release_session_lock,
    share_corpus,
    try_session_lock,
)
from stemma.store.postgres import Connection, Pool, autocommitted, explained

Intent = Literal["keep_file", "remove_file", "vanished"]
"""The file stays and is not brought back until its bytes change; it goes; or it went by itself."""

Step = Literal["marked", "sparse_removed", "file_removed"]


@dataclass(frozen=True)
class _Deletion:
    """A source that is being deleted."""

    source_id: UUID
    source_path: str
    kind: str
    disk_path: bytes | None
    content_hash: str | None
    intent: Intent
    step: Step
    seen_size: int | None
    seen_mtime_ns: int | None
    seen_inode: str | None
    seen_device: str | None
    hashed_size: int | None
    hashed_mtime_ns: int | None
    hashed_inode: str | None
    hashed_device: str | None

    @property
    def seen(self) -> FileStat | None:
        """The file as a walk saw it last."""
        return _stat(self.seen_size, self.seen_mtime_ns, self.seen_inode, self.seen_device)

    @property
    def hashed(self) -> FileStat | None:
        """The file as it was hashed last; None where its stat could not vouch for its bytes."""
        return _stat(self.hashed_size, self.hashed_mtime_ns, self.hashed_inode, self.hashed_device)

    @property
    def ready_for_end(self) -> bool:
        """Whether only the rows are left."""
        return self.step == ("file_removed" if self.intent == "remove_file" else "sparse_removed")


def _stat(size: int | None, mtime_ns: int | None, inode: str | None, device: str | None) -> FileStat | None:
    if size is None or mtime_ns is None or inode is None or device is None:
        return None
    return FileStat(size, mtime_ns, int(inode), int(device))


@dataclass
class DeletionOutcome:
    """What became of each source that was asked for and was marked."""

    deleted: list[UUID] = field(default_factory=list[UUID])
    excluded: list[UUID] = field(default_factory=list[UUID])
    """Out of the corpus; the file stays."""
    changed: list[UUID] = field(default_factory=list[UUID])
    """Deleted, but the file had been changed and stays: the next walk finds it as a new one."""
    failed: dict[UUID, FileNotRemoved] = field(default_factory=dict[UUID, FileNotRemoved])
    """The file could not be removed: still listed, to be tried again."""


def mark_deleting(connection: Connection, source_ids: Sequence[UUID], intent: Intent, *, now: datetime) -> list[UUID]:
    """Take sources out of every scope with all that lies in them, in one transaction; returns those of them that are newly marked, ascending.

    Unknown ones, those being deleted already and, for `vanished`, those whose file is back are left as they are; a deletion that was
    to remove a file which is still there can be turned into one that keeps it. The connection is in autocommit or the caller commits.
    """
    if not source_ids:
        return []
    with connection.transaction():
        held = connection.execute(load_queries("contained")["contents_first"], {"source_ids": list(source_ids)}).fetchall()
        locked = [source_id for (source_id,) in held]
        lock_corpus_and_sources(connection, locked)
        given = {"source_ids": list(source_ids), "locked": locked, "intent": intent, "now": now}
        rows = connection.execute(load_queries("library")["mark_deleting"], given).fetchall()
        _mark_history(connection, [source_id for (source_id,) in rows], now=now)
    marked = sorted({source_id for (source_id,) in rows} & set(source_ids))
    reach("deletion.marked")
    return marked


def pending_deletions(connection: Connection) -> list[UUID]:
    """Sources whose deletion is marked and not finished, ascending."""
    return [deletion.source_id for deletion in _deletions(connection, None)]


def delete_sources(
    pool: Pool, source_ids: Sequence[UUID], remove_sparse: Callable[[list[int]], None], *, library: Path, now: datetime | None = None
) -> DeletionOutcome:
    """Carry out the marked deletions of these sources and of what lies in them, each from its recorded step on; what is not marked is left alone.

    Args:
        remove_sparse: removes the entries of these publication_ids from every keyword index, committed when it returns.
        now: the time to record; by default the clock's.
    Raises:
        StoreUnavailable, StoreBusy, and whatever `remove_sparse` raises: what is done is recorded, the next call goes on.
    """
    now = now or datetime.now(UTC)
    outcome = DeletionOutcome()
    with explained(), autocommitted(pool) as connection:
        rows = connection.execute(load_queries("contained")["contents_first"], {"source_ids": list(source_ids)}).fetchall()
        ordered = [source_id for (source_id,) in rows]
        _remove_entries(connection, ordered, remove_sparse, now=now)
        for some in portions(ordered):
            _remove_files(connection, some, library, outcome, now=now)
            _remove_rows(connection, some, library, outcome, now=now)
        if outcome.deleted:
            _drop_empty_folders(connection)
    return outcome


def _mark_history(connection: Connection, source_ids: list[UUID], *, now: datetime) -> None:
    """Let evidence, quotes and scopes of conversations know what they speak of is going; they keep what they show."""
    queries = load_queries("conversations")
    for query in ("mark_evidence", "mark_citations", "mark_scopes"):
        connection.execute(queries[query], {"source_ids": source_ids, "now": now})


def _deletions(connection: Connection, source_ids: list[UUID] | None) -> list[_Deletion]:
    with connection.cursor(row_factory=class_row(_Deletion)) as cursor:
        return cursor.execute(load_queries("library")["pending_deletions"], {"source_ids": source_ids}).fetchall()


def _remove_entries(connection: Connection, source_ids: list[UUID], remove_sparse: Callable[[list[int]], None], *, now: datetime) -> None:
    """Of all of them at once: a keyword index commits once."""
    queries = load_queries("library")
    marked = [deletion.source_id for deletion in _deletions(connection, source_ids) if deletion.step == "marked"]
    if not marked:
        return
    publications = [publication for (publication,) in connection.execute(queries["publications_of"], {"source_ids": marked})]
    if publications:
        remove_sparse(publications)
    reach("deletion.entries_removed")
    for some in portions(marked):
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, some)
            connection.execute(queries["forget_coverage"], {"source_ids": some, "publication_ids": publications})
            connection.execute(queries["advance_deletions"], {"source_ids": some, "after": "marked", "step": "sparse_removed", "now": now})


def _remove_files(connection: Connection, source_ids: list[UUID], library: Path, outcome: DeletionOutcome, *, now: datetime) -> None:
    queries = load_queries("library")
    due = [d for d in _deletions(connection, source_ids) if d.step == "sparse_removed" and d.intent == "remove_file"]
    failed: dict[UUID, FileNotRemoved] = {}
    places = Places(library)
    for deletion in due:
        if deletion.disk_path is None or is_reserved(deletion.disk_path.split(b"/")[0]):
            continue
        recorded = [known for known in (deletion.seen, deletion.hashed) if known is not None]
        if deletion.seen and places.device(deletion.disk_path.rpartition(b"/")[0]) != deletion.seen.device:
            failed[deletion.source_id] = FileNotRemoved(deletion.source_path, "The file's disk is away")
            continue
        try:
            reach("deletion.before_unlink")
            gone = unlink_source(library, deletion.disk_path, *recorded)
        except OSError as error:
            failed[deletion.source_id] = FileNotRemoved(deletion.source_path, f"The file could not be removed ({error.strerror})")
        else:
            outcome.changed += [] if gone else [deletion.source_id]
    reach("deletion.file_removed")
    done = [deletion.source_id for deletion in due if deletion.source_id not in failed]
    connection.execute(queries["advance_deletions"], {"source_ids": done, "after": "sparse_removed", "step": "file_removed", "now": now})
    shown = {"source_ids": list(failed), "messages": [error.message for error in failed.values()], "code": FileNotRemoved.code, "now": now}
    connection.execute(queries["note_files_not_removed"], shown)
    outcome.failed |= failed


def _remove_rows(connection: Connection, source_ids: list[UUID], library: Path, outcome: DeletionOutcome, *, now: datetime) -> None:
    queries = load_queries("library")
    hashes = {d.source_id: _present_hash(library, d) for d in _deletions(connection, source_ids) if d.ready_for_end and _stays(d)}
    with connection.transaction():
        share_corpus(connection)
        lock_sources(connection, source_ids)
        # Once more under the locks: another process may have ended some of them, and a new life of such a source is not ours to end.
        due = _holding_nothing_else(connection, [deletion for deletion in _deletions(connection, source_ids) if deletion.ready_for_end])
        staying = {d.source_id: hashes[d.source_id] for d in due if _stays(d) and d.source_id in hashes}
        going = [deletion.source_id for deletion in due if not _stays(deletion)]
        ended = {"source_ids": [*staying, *going], "now": now}
        forget_results(connection, [*staying, *going], now=now)
        for query in ("cancel_attempts", "delete_documents", "retire_publications", "forget_stages"):
            connection.execute(queries[query], ended)
        connection.execute(queries["exclude_sources"], {"source_ids": list(staying), "hashes": list(staying.values()), "now": now})
        retired = [key for (key,) in connection.execute(queries["delete_sources"], {"source_ids": going})]
        connection.execute(queries["retire_partitions"], {"partition_keys": retired, "now": now})
        reach("deletion.before_commit")
    reach("deletion.committed")
    outcome.deleted += going
    outcome.excluded += list(staying)


def _holding_nothing_else(connection: Connection, due: list[_Deletion]) -> list[_Deletion]:
    """Those that can end: a container goes with, or after, everything that lies in it."""
    while True:
        asked = {"source_ids": [deletion.source_id for deletion in due]}
        holding = {source_id for (source_id,) in connection.execute(load_queries("contained")["still_holding"], asked)}
        if not holding:
            return due
        due = [deletion for deletion in due if deletion.source_id not in holding]


def _stays(deletion: _Deletion) -> bool:
    """Whether the source stays in the catalog, because a walk, or the listing of its container, would bring it back otherwise."""
    return deletion.intent == "keep_file" and deletion.kind in {"file", "contained"}


def _present_hash(library: Path, deletion: _Deletion) -> str | None:
    """Of the bytes as they are now, so that an edit which nobody ingested does not bring the document back."""
    if deletion.disk_path is None:
        return deletion.content_hash
    try:
        present = FileStat.of((library / os.fsdecode(deletion.disk_path)).lstat())
        if deletion.content_hash is not None and present == deletion.hashed:
            return deletion.content_hash
        return hash_source(library, deletion.disk_path, deletion.source_path)[0]
    except (OSError, DocumentError):
        return deletion.content_hash  # whatever else it holds once it can be read counts as changed


def _drop_empty_folders(connection: Connection) -> None:
    """In the catalog; not while a walk may be filing new documents in them: that one does it itself when it is complete."""
    if not try_session_lock(connection, WALK_LOCK):
        return
    try:
        giving_way(connection, lambda: connection.execute(load_queries("library")["drop_empty_folders"]))
    finally:
        if not connection.closed:
            release_session_lock(connection, WALK_LOCK)
