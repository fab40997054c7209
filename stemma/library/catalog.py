"""The catalog of sources: what a walk of the library sees is written down batch by batch, and decided on once it is complete."""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TypedDict
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from sql import load_queries
from stemma.library.folders import ensure_default_workspace
from stemma.library.new_files import insert_new
from stemma.library.paths import fitted
from stemma.library.vanished import Renamed, decide
from stemma.library.walk import Entry, Found, LibraryUnavailable, Skipped, Unlistable, walk
from stemma.settings import Settings
from stemma.store.locks import WALK_LOCK, giving_way, release_session_lock, try_session_lock
from stemma.store.postgres import Connection, Pool, autocommitted, explained

BATCH_FILES = 10_000
"""Files written at once: a transaction of a few tenths of a second, which others who want the same rows can wait for."""

LISTED_FOLDERS = 5
"""Folders named in one sentence."""

LISTED_SKIPS = 100
"""Paths kept per reason; beyond them skipped entries are only counted."""


@dataclass(frozen=True)
class WalkOutcome:
    """What a walk has seen and decided so far; counts are those of the whole walk, however many calls it took."""

    scan_id: int | None = None
    """None when nothing was walked: another walker is at work, or the library cannot be listed."""
    busy: bool = False
    """Another walker holds the lock."""
    complete: bool = False
    """Every entry was seen, and what vanished or was renamed is decided (unless a notice says why not)."""
    n_seen: int = 0
    n_new: int = 0
    """Files at new paths, without those that were renamed."""
    n_changed: int = 0
    n_vanished: int = 0
    """Files that this walk was the first to miss."""
    n_renamed: int = 0
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """Reason -> number of entries."""
    unlistable: tuple[str, ...] = ()
    """Folders whose contents are unknown."""
    renamed: tuple[Renamed, ...] = ()
    """By this call; the old partition keys are in `retired_partitions`."""
    marked: tuple[UUID, ...] = ()
    """Sources that this call marked for deletion, because their file has vanished for good."""
    notices: tuple[str, ...] = ()
    """Sentences for the operator: why something was not walked or not decided."""

    @property
    def n_unchanged(self) -> int:
        """Files seen as they were before, at the path where they were."""
        return self.n_seen - self.n_new - self.n_changed - self.n_renamed

    @property
    def message(self) -> str:
        """What a person is told, in one line."""
        counts = (
            f"{self.n_seen} files seen, {self.n_new} new, {self.n_changed} changed, {self.n_renamed} renamed, {self.n_vanished} vanished"
        )
        gone = f"; {len(self.marked)} are gone for good and leave the corpus" if self.marked else ""
        walked = [f"{counts}{gone}{'' if self.complete else '; the walk goes on'}"] if self.scan_id is not None else []
        return "; ".join(walked + [notice.rstrip(".") for notice in self.notices])


class _Skips(TypedDict):
    count: int
    paths: list[str]  # the first LISTED_SKIPS of them


@dataclass(frozen=True)
class _Scan:
    """A row of `scans`."""

    scan_id: int
    library: str
    cursor: bytes | None
    n_seen: int
    n_new: int
    n_changed: int
    n_vanished: int
    n_renamed: int
    skipped: dict[str, _Skips]
    unlistable: list[dict[str, str]]
    """{"path", "disk_path" in hex, "reason"} of each folder."""


@dataclass
class _Batch:
    """What is written at once."""

    found: list[Found] = field(default_factory=list[Found])
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    unlistable: list[Unlistable] = field(default_factory=list[Unlistable])
    cursor: bytes | None = None
    is_last: bool = False
    """The walk has met every entry."""


def walk_library(pool: Pool, settings: Settings, *, budget_s: float, now: datetime) -> WalkOutcome:
    """Walk the library for about `budget_s` seconds, going on where the last call stopped; a complete walk decides what was renamed or vanished.

    At least one entry is walked per call. Of sources only identity, presence and `seen_*` are written, never `hashed_*`.

    Raises:
        StoreUnavailable, StoreBusy: nothing is lost, the next call goes on.
    """
    deadline = time.monotonic() + budget_s
    with explained(), autocommitted(pool) as connection:
        if not try_session_lock(connection, WALK_LOCK):
            return WalkOutcome(busy=True, notices=("Another process is walking the library.",))
        try:
            return _walk(connection, settings, deadline=deadline, now=now)
        finally:
            if not connection.closed:
                release_session_lock(connection, WALK_LOCK)


def _walk(connection: Connection, settings: Settings, *, deadline: float, now: datetime) -> WalkOutcome:
    ensure_default_workspace(connection, now=now)
    library = settings.library
    scan_id, cursor = _current_scan(connection, library_name(library), now=now)
    try:
        entries = walk(library, after=cursor, own_folders=settings.own_folders)
        first = next(entries, None)  # the library itself is listed here: from now on only what lies below it can fail
    except LibraryUnavailable as error:
        return WalkOutcome(notices=(str(error),))
    connection.execute(load_queries("library")["create_walked"])
    for batch in _batches(chain([first] if first else [], entries), deadline=deadline):
        giving_way(connection, lambda batch=batch: _record(connection, scan_id, batch, now=now))
        if not batch.is_last:
            continue
        verdict = decide(connection, settings, scan_id, deadline=deadline, now=now)
        scan = _scan(connection, scan_id)
        return _outcome(
            scan,
            complete=verdict.complete, renamed=verdict.renamed, marked=verdict.marked, notices=_about(scan, library) + verdict.notices,
        )  # fmt: skip
    return _outcome(_scan(connection, scan_id))


def _about(scan: _Scan, library: Path) -> tuple[str, ...]:
    """What an operator should know of the places that the walk looked at."""
    empty = (f"The library {library} holds no file.",) if scan.n_seen == 0 and not scan.unlistable else ()
    folders = [f"{folder['path'] or library} ({folder['reason'].replace('_', ' ')})" for folder in scan.unlistable]
    more = f" and {len(folders) - LISTED_FOLDERS} more" if len(folders) > LISTED_FOLDERS else ""
    listed = f"Cannot be listed: {', '.join(folders[:LISTED_FOLDERS])}{more}. What is known of such a folder stays as it is."
    return (*empty, listed) if folders else empty


def library_name(library: Path) -> str:
    """What `scans.library` tells libraries apart by: the path, with backslashes for bytes that are not UTF-8."""
    return os.fsencode(library).decode("utf-8", "backslashreplace")


def _current_scan(connection: Connection, name: str, *, now: datetime) -> tuple[int, bytes | None]:
    """The walk under way, or a new one; a walk of another library is given up."""
    with connection.transaction():
        connection.execute("UPDATE scans SET state = 'abandoned', finished_at = %s WHERE state = 'walking' AND library <> %s", [now, name])
        row = connection.execute("SELECT scan_id, cursor FROM scans WHERE state = 'walking'").fetchone()
        row = row or connection.execute(load_queries("library")["begin_scan"], {"library": name, "now": now}).fetchone()
    assert row is not None, "the insert returns its row"
    return row[0], row[1]


def _scan(connection: Connection, scan_id: int) -> _Scan:
    with connection.cursor(row_factory=class_row(_Scan)) as rows:
        scan = rows.execute(load_queries("library")["scan"], {"scan_id": scan_id}).fetchone()
    assert scan is not None, "only `begin_scan` removes scans, and only old ones"
    return scan


def _batches(entries: Iterator[Entry], *, deadline: float) -> Iterator[_Batch]:
    """The entries in batches; the last one says whether they all were met or the time was up."""
    batch = _Batch()
    for entry in entries:
        match entry:
            case Unlistable():
                batch.unlistable.append(entry)
                continue  # no place to go on from: it would be met again
            case Found():
                batch.found.append(entry)
            case Skipped():
                batch.skipped.append(entry)
            case _:
                pass
        batch.cursor = entry.disk_path
        if len(batch.found) == BATCH_FILES or time.monotonic() >= deadline:
            yield batch
            if time.monotonic() >= deadline:
                return
            batch = _Batch()
    batch.is_last = True
    yield batch


def _record(connection: Connection, scan_id: int, batch: _Batch, *, now: datetime) -> None:
    queries, given = load_queries("library"), {"scan_id": scan_id, "now": now}
    scan = _scan(connection, scan_id)
    n_changed = n_new = 0
    if batch.found:
        listed = {fitted(found.source_path, found.disk_path)[0]: found for found in batch.found}
        with connection.cursor() as cursor:
            with cursor.copy("COPY walked (source_path, disk_path, size, mtime_ns, inode, device) FROM STDIN") as copy:
                for source_path, found in listed.items():
                    copy.write_row((source_path, found.disk_path, *found.stat))
            n_known, n_changed = cursor.execute(queries["stamp_seen"], given).fetchall()[0]
            unknown = cursor.execute(queries["unknown_paths"]).fetchall() if n_known < len(listed) else []
        n_new = insert_new(connection, [listed[source_path] for (source_path,) in unknown], scan_id, now=now)
    unlistable = {folder["disk_path"]: folder for folder in scan.unlistable} | {
        folder.disk_path.hex(): {"path": folder.source_path, "disk_path": folder.disk_path.hex(), "reason": folder.reason}
        for folder in batch.unlistable
    }
    connection.execute(
        queries["advance_scan"],
        {
            "scan_id": scan_id, "cursor": batch.cursor or scan.cursor, "n_seen": scan.n_seen + len(batch.found), "n_new": scan.n_new + n_new,
            "n_changed": scan.n_changed + n_changed, "skipped": Jsonb(_with_skips(scan.skipped, batch.skipped)),
            "unlistable": Jsonb(list(unlistable.values())),
        },
    )  # fmt: skip


def _with_skips(known: dict[str, _Skips], skipped: list[Skipped]) -> dict[str, _Skips]:
    counted = {reason: _Skips(count=kind["count"], paths=list(kind["paths"])) for reason, kind in known.items()}
    for entry in skipped:
        kind = counted.setdefault(entry.reason, _Skips(count=0, paths=[]))
        kind["count"] += 1
        if len(kind["paths"]) < LISTED_SKIPS:
            kind["paths"].append(entry.source_path)
    return counted


def _outcome(
    scan: _Scan, *, complete: bool = False, renamed: tuple[Renamed, ...] = (), marked: tuple[UUID, ...] = (), notices: tuple[str, ...] = ()
) -> WalkOutcome:
    return WalkOutcome(
        scan_id=scan.scan_id, complete=complete, n_seen=scan.n_seen, n_new=scan.n_new, n_changed=scan.n_changed, n_vanished=scan.n_vanished,
        n_renamed=scan.n_renamed, skipped={reason: kind["count"] for reason, kind in sorted(scan.skipped.items())},
        unlistable=tuple(folder["path"] for folder in scan.unlistable), renamed=renamed, marked=marked, notices=notices,
    )  # fmt: skip
