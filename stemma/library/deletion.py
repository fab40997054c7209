"""Deleting: a source leaves every scope at once, then the keyword indexes, the disk if asked, and the corpus; each step is recorded.

Killed anywhere, the next call goes on at the recorded step; every step may be repeated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import DocumentError
from stemma.failpoints import reach
from stemma.library.files import FileStat, unlink_source
from stemma.library.spool import hash_source
from stemma.library.walk import is_reserved
from stemma.store.locks import lock_sources, portions, share_corpus
from stemma.store.postgres import Connection, Pool, autocommitted, explained

Intent = Literal["keep_file", "remove_file", "vanished"]
"""The file stays and is not brought back until its bytes change; it goes; or it went by itself."""

Step = Literal["marked", "sparse_removed", "file_removed"]


@dataclass(frozen=True)
class _Deletion:
    """A source that is being deleted."""

    source_id: UUID
    source_path: str
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
    def recorded(self) -> list[FileStat]:
        """The file as it was seen last, and as it was hashed: a file that is removed must be both."""
        seen = (self.seen_size, self.seen_mtime_ns, self.seen_inode, self.seen_device)
        hashed = (self.hashed_size, self.hashed_mtime_ns, self.hashed_inode, self.hashed_device)
        return [FileStat(*map(int, known)) for known in (seen, hashed) if None not in known]  # pyright: ignore[reportArgumentType]


@dataclass
class DeletionOutcome:
    """What became of each source that was asked for and was marked."""

    deleted: list[UUID] = field(default_factory=list[UUID])
    excluded: list[UUID] = field(default_factory=list[UUID])
    """Out of the corpus; the file stays."""
    changed: list[UUID] = field(default_factory=list[UUID])
    """Deleted, but the file had been changed and stays: the next walk finds it as a new one."""
    failed: dict[UUID, str] = field(default_factory=dict[UUID, str])
    """The file could not be removed, and why: still listed, to be tried again."""


def mark_deleting(connection: Connection, source_ids: Sequence[UUID], intent: Intent, *, now: datetime) -> list[UUID]:
    """Take sources out of every scope; returns those that are newly marked. The connection is in autocommit or the caller commits.

    Unknown ones, those being deleted already and, for `vanished`, those whose file is back are left as they are.
    """
    marked: list[UUID] = []
    for some in portions(sorted(set(source_ids))):
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, some)
            rows = connection.execute(load_queries("library")["mark_deleting"], {"source_ids": some, "intent": intent, "now": now})
            marked += [source_id for (source_id,) in rows]
        reach("deletion.marked")
    return marked


def pending_deletions(connection: Connection) -> list[UUID]:
    """Sources whose deletion is marked and not finished, ascending."""
    return [deletion.source_id for deletion in _deletions(connection, None)]


def delete_sources(
    pool: Pool, source_ids: Sequence[UUID], remove_sparse: Callable[[list[int]], None], *, library: Path, now: datetime | None = None
) -> DeletionOutcome:
    """Carry out the marked deletions of these sources, each from its recorded step on; what is not marked is left alone.

    Args:
        remove_sparse: removes the entries of these publication_ids from every keyword index, committed when it returns.
        now: the time to record; by default the clock's.
    Raises:
        StoreUnavailable, StoreBusy, and whatever `remove_sparse` raises: what is done is recorded, the next call goes on.
    """
    now = now or datetime.now(UTC)
    outcome = DeletionOutcome()
    for some in portions(sorted(set(source_ids))):
        with explained(), autocommitted(pool) as connection:
            _remove_entries(connection, some, remove_sparse, now=now)
            _remove_files(connection, some, library, outcome, now=now)
            _remove_rows(connection, some, library, outcome, now=now)
    return outcome


def _deletions(connection: Connection, source_ids: list[UUID] | None) -> list[_Deletion]:
    with connection.cursor(row_factory=class_row(_Deletion)) as cursor:
        return cursor.execute(load_queries("library")["pending_deletions"], {"source_ids": source_ids}).fetchall()


def _remove_entries(connection: Connection, source_ids: list[UUID], remove_sparse: Callable[[list[int]], None], *, now: datetime) -> None:
    queries = load_queries("library")
    marked = [deletion.source_id for deletion in _deletions(connection, source_ids) if deletion.step == "marked"]
    if not marked:
        return
    publications = [publication for (publication,) in connection.execute(queries["publications_of"], {"source_ids": marked})]
    if publications:
        remove_sparse(publications)
    reach("deletion.entries_removed")
    with connection.transaction():
        share_corpus(connection)
        lock_sources(connection, marked)
        connection.execute(queries["forget_coverage"], {"publication_ids": publications})
        connection.execute(queries["advance_deletions"], {"source_ids": marked, "after": "marked", "step": "sparse_removed", "now": now})


def _remove_files(connection: Connection, source_ids: list[UUID], library: Path, outcome: DeletionOutcome, *, now: datetime) -> None:
    due = [d for d in _deletions(connection, source_ids) if d.step == "sparse_removed" and d.intent == "remove_file"]
    for deletion in due:
        if deletion.disk_path is None or is_reserved(deletion.disk_path.split(b"/")[0]):
            continue
        try:
            reach("deletion.before_unlink")
            gone = unlink_source(library, deletion.disk_path, *deletion.recorded)
        except OSError as error:
            outcome.failed[deletion.source_id] = f"The file could not be removed: {error.strerror}"
        else:
            outcome.changed += [] if gone else [deletion.source_id]
    reach("deletion.file_removed")
    done = [deletion.source_id for deletion in due if deletion.source_id not in outcome.failed]
    parameters = {"source_ids": done, "after": "sparse_removed", "step": "file_removed", "now": now}
    connection.execute(load_queries("library")["advance_deletions"], parameters)


def _remove_rows(connection: Connection, source_ids: list[UUID], library: Path, outcome: DeletionOutcome, *, now: datetime) -> None:
    queries = load_queries("library")
    due = [d for d in _deletions(connection, source_ids) if d.step == ("file_removed" if d.intent == "remove_file" else "sparse_removed")]
    staying = {d.source_id: d.content_hash or _hash(library, d) for d in due if d.intent == "keep_file"}
    going = [deletion.source_id for deletion in due if deletion.source_id not in staying]
    source_ids = [deletion.source_id for deletion in due]
    with connection.transaction():
        share_corpus(connection)
        lock_sources(connection, source_ids)
        for query in ("cancel_attempts", "delete_documents", "retire_publications", "forget_stages"):
            connection.execute(queries[query], {"source_ids": source_ids, "now": now})
        excluded = {"source_ids": list(staying), "hashes": list(staying.values()), "now": now}
        connection.execute(queries["exclude_sources"], excluded)
        retired = [key for (key,) in connection.execute(queries["delete_sources"], {"source_ids": going})]
        connection.execute(queries["retire_partitions"], {"partition_keys": retired, "now": now})
        reach("deletion.before_commit")
    reach("deletion.committed")
    outcome.deleted += going
    outcome.excluded += list(staying)


def _hash(library: Path, deletion: _Deletion) -> str | None:
    """Of a file that was never ingested: it, too, is not brought back before its bytes change."""
    if deletion.disk_path is None:
        return None
    try:
        return hash_source(library, deletion.disk_path, deletion.source_path)[0]
    except DocumentError:
        return None  # whatever it holds once it can be read counts as changed
