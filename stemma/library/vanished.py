"""What a complete walk decides: which files were renamed, which are missing, and which have vanished for good.

A file that was not seen is missing only if its place could be looked at: no folder above it refused to be listed, and the nearest
folder above it that exists lies on the device on which the file was last seen.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.failpoints import reach
from stemma.library.places import Places
from stemma.library.pruning import prune
from stemma.library.renames import Renamed, Unseen, apply_renames, find_renames
from stemma.settings import Settings
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


def decide(connection: Connection, settings: Settings, scan_id: int, *, deadline: float, now: datetime) -> Verdict:
    """Decide on everything that a walk did not meet, now that it has met every entry, and close the walk.

    Each step is a transaction of its own, and repeatable: killed in between, the next call ends in the same state.
    """
    library = settings.library
    with connection.cursor(row_factory=class_row(Unseen)) as cursor:
        unseen = cursor.execute(load_queries("library")["unseen_sources"], {"scan_id": scan_id}).fetchall()
    missing = list(_missing(library, unseen, _unlistable(connection, scan_id)))
    reach("walk.before_decision")
    pairs = find_renames(connection, library, scan_id, missing, deadline=deadline)
    if pairs is None:
        return Verdict(complete=False)
    renamed = apply_renames(connection, scan_id, pairs, now=now)
    reach("walk.after_renames")
    followed = {file.source_id for file in renamed}
    missing = [file for file in missing if file.source_id not in followed]
    _close(connection, scan_id, missing, n_vanished=sum(file.presence == "present" for file in missing), now=now)
    if not missing:
        return Verdict(complete=True, renamed=renamed)
    pruned = prune(connection, settings, now=now)
    return Verdict(complete=True, renamed=renamed, marked=pruned.marked, notices=pruned.notices)


def _unlistable(connection: Connection, scan_id: int) -> list[bytes]:
    """The folders that the walk could not list."""
    ((folders,),) = connection.execute("SELECT unlistable FROM scans WHERE scan_id = %s", [scan_id]).fetchall()
    return [bytes.fromhex(folder["disk_path"]) for folder in folders]


def _missing(library: Path, unseen: Iterable[Unseen], unlistable: Sequence[bytes]) -> Iterator[Unseen]:
    unknown = tuple(folder + b"/" if folder else b"" for folder in unlistable)
    places = Places(library)
    for file in unseen:
        folder = file.disk_path.rpartition(b"/")[0]
        if not file.disk_path.startswith(unknown) and places.device(folder) == int(file.device):
            yield file


def _close(connection: Connection, scan_id: int, missing: Sequence[Unseen], *, n_vanished: int, now: datetime) -> None:
    queries = load_queries("library")

    def close() -> None:
        given = {"source_ids": [file.source_id for file in missing], "scan_id": scan_id, "now": now}
        connection.execute(queries["mark_missing"], given)
        connection.execute(queries["mark_unknown"], given)
        connection.execute(queries["forget_rename_hashes"])
        connection.execute(queries["complete_scan"], {"scan_id": scan_id, "n_vanished": n_vanished, "now": now})
        connection.execute(queries["drop_empty_folders"])

    giving_way(connection, close)
