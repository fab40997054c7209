"""What a complete walk decides: which files were renamed, which are missing, and which have vanished for good.

A file that was not seen is missing only if its place could be looked at: no folder above it refused to be listed, and the nearest
folder above it that exists lies on the device on which the file was last seen.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.failpoints import reach
from stemma.library.deletion import mark_deleting
from stemma.library.renames import Renamed, Unseen, apply_renames, find_renames
from stemma.store.locks import giving_way
from stemma.store.postgres import Connection


@dataclass(frozen=True)
class Verdict:
    """What was decided."""

    complete: bool
    """False when the time was up before every candidate for a rename was hashed: the next call goes on."""
    renamed: tuple[Renamed, ...] = ()
    marked: tuple[UUID, ...] = ()
    """Sources marked for deletion."""
    notices: tuple[str, ...] = ()


def decide(connection: Connection, library: Path, scan_id: int, *, prune_grace_s: float, deadline: float, now: datetime) -> Verdict:
    """Decide on everything that a walk did not meet, now that it has met every entry, and close the walk.

    Each step is a transaction of its own, and repeatable: killed in between, the next call ends in the same state.
    """
    n_seen, unlistable = _reach(connection, scan_id)
    with connection.cursor(row_factory=class_row(Unseen)) as cursor:
        unseen = cursor.execute(load_queries("library")["unseen_sources"], {"scan_id": scan_id}).fetchall()
    if unseen and not n_seen:
        _close(connection, scan_id, [], n_vanished=0, now=now)
        return Verdict(complete=True, notices=(f"The library holds no file, though {len(unseen)} are known: nothing is decided.",))
    missing = list(_missing(library, unseen, unlistable))
    reach("walk.before_decision")
    pairs = find_renames(connection, library, scan_id, missing, deadline=deadline)
    if pairs is None:
        return Verdict(complete=False)
    renamed = apply_renames(connection, scan_id, pairs, now=now)
    reach("walk.after_renames")
    followed = {file.source_id for file in renamed}
    missing = [file for file in missing if file.source_id not in followed]
    _close(connection, scan_id, missing, n_vanished=sum(file.presence == "present" for file in missing), now=now)
    missing_before = now - timedelta(seconds=prune_grace_s)
    marked, notices = _prune(connection, scan_id, [file.source_id for file in missing], missing_before=missing_before, now=now)
    return Verdict(complete=True, renamed=renamed, marked=marked, notices=notices)


def _reach(connection: Connection, scan_id: int) -> tuple[int, list[bytes]]:
    """How many files the walk met, and the folders that it could not list."""
    row = connection.execute("SELECT n_seen, unlistable FROM scans WHERE scan_id = %s", [scan_id]).fetchone()
    assert row is not None, "the walk's own row"
    return row[0], [bytes.fromhex(folder["disk_path"]) for folder in row[1]]


def _missing(library: Path, unseen: Iterable[Unseen], unlistable: Sequence[bytes]) -> Iterator[Unseen]:
    unknown = tuple(folder + b"/" if folder else b"" for folder in unlistable)
    places = _Places(library)
    for file in unseen:
        folder = file.disk_path.rpartition(b"/")[0]
        if not file.disk_path.startswith(unknown) and places.device(folder) == int(file.device):
            yield file


class _Places:
    """Which folders of the library exist, and on which device; each is looked at once."""

    def __init__(self, library: Path) -> None:
        self._library = library
        self._found: dict[bytes, tuple[bool, int | None]] = {b"": self._look_at(library.resolve(), above=None)}

    def device(self, folder: bytes) -> int | None:
        """Of the nearest folder at or above this one that exists; links do not count. None if it cannot be told."""
        names = folder.split(b"/") if folder else []
        exists, device = self._found[b""]
        for depth in range(1, len(names) + 1):
            path = b"/".join(names[:depth])
            if path not in self._found:
                folder_at = self._library / os.fsdecode(path)
                self._found[path] = self._look_at(folder_at, above=device) if exists else (False, device)
            exists, device = self._found[path]
        return device

    @staticmethod
    def _look_at(folder: Path, *, above: int | None) -> tuple[bool, int | None]:
        try:
            found = folder.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False, above
        except OSError:
            return False, None
        return (True, found.st_dev) if stat.S_ISDIR(found.st_mode) else (False, above)


def _close(connection: Connection, scan_id: int, missing: Sequence[Unseen], *, n_vanished: int, now: datetime) -> None:
    queries = load_queries("library")

    def close() -> None:
        connection.execute(queries["mark_missing"], {"source_ids": [file.source_id for file in missing], "now": now})
        connection.execute(queries["forget_rename_hashes"])
        connection.execute(queries["complete_scan"], {"scan_id": scan_id, "n_vanished": n_vanished, "now": now})
        connection.execute(queries["drop_empty_folders"])

    giving_way(connection, close)


def _prune(
    connection: Connection, scan_id: int, missing: Sequence[UUID], *, missing_before: datetime, now: datetime
) -> tuple[tuple[UUID, ...], tuple[str, ...]]:
    """Mark what vanished for good, except where a whole workspace has: that looks like a disk that is away."""
    parameters = {"scan_id": scan_id, "source_ids": list(missing), "missing_before": missing_before}
    due = connection.execute(load_queries("library")["prunable_sources"], parameters).fetchall()
    emptied: dict[str, int] = defaultdict(int)
    for _, workspace, lives in due:
        emptied[workspace] += not lives
    notices = tuple(
        f"All {n} files of the workspace {workspace} are missing, as when a disk is away: they stay searchable."
        for workspace, n in sorted(emptied.items()) if n
    )  # fmt: skip
    return tuple(mark_deleting(connection, [source_id for source_id, _, lives in due if lives], "vanished", now=now)), notices
