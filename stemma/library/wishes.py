"""Wishes: what a person wants done, recorded for the reconciler, which claims and launches it."""

from collections.abc import Sequence
from datetime import datetime

from sql import load_queries
from stemma.library.looks import request_look
from stemma.library.restriction import Restriction
from stemma.library.staleness import wish_stale
from stemma.settings import Fingerprints, Settings
from stemma.store.postgres import Connection
from stemma.store.rows import AssetStage


def wish(
    connection: Connection, settings: Settings, wanted: Fingerprints, restriction: Restriction, *,
    stage: AssetStage | None = None, force: bool = False, now: datetime,
) -> int:  # fmt: skip
    """Ask for a look at the library now, and for what it is to bring up to date; returns the number of sources asked for.

    Without `force` these are the stale ones among those, from `stage` on (None: any): no policy holds them back, a wait
    after a failure ends, and what was made before is used. With `force` it is every one, stale or not, made
    again from `stage` on (None: from the stage that `made_by` names, or from `documents`) whatever was made before. A wish
    lapses when something else is wanted; a run that had already begun does not settle a forced one. What was deleted with its file
    kept comes back if a path names it or a folder above it, and in no other way.
    """
    request_look(connection, now=now)
    n_back = bring_back(connection, restriction, now=now)
    if not force:  # what comes back is stale, and counted there
        return wish_stale(connection, settings, wanted, restriction, stage=stage, now=now)
    return n_back + force_stage(connection, restriction, stage or restriction.first_stage or "documents", now=now)


def bring_back(connection: Connection, restriction: Restriction, *, now: datetime) -> int:
    """Have what was deleted with its file kept made anew where a path names it; returns the number of sources."""
    queries = load_queries("restriction")
    return connection.execute(queries["selected"] + "\n" + queries["wish_excluded"], restriction.parameters | {"now": now}).rowcount


def force_stage(connection: Connection, restriction: Restriction, stage: AssetStage, *, now: datetime) -> int:
    """Have every document that it leaves made again from `stage` on; returns the number of sources."""
    queries = load_queries("restriction")
    query = queries["selected"] + "\n" + queries["wish_stage"]
    return connection.execute(query, restriction.parameters | {"stage": stage, "now": now}).rowcount


def request_ingest(connection: Connection, *, paths: Sequence[str] | None, force: bool, now: datetime) -> int:
    """Ask for a look at the library now; with `force`, have what lies under the paths (None: all) made again from its bytes on.

    What was deleted with its file kept comes back if a path names it or a folder above it, and in no other way.

    Args:
        paths: source paths of files or folders; a folder stands for its subtree, "" for the library.
    Returns:
        The number of sources that were wished for; without `force`, of those that come back.
    """
    request_look(connection, now=now)
    restriction = Restriction(paths=paths)
    n_wished = bring_back(connection, restriction, now=now)
    return n_wished + force_stage(connection, restriction, "documents", now=now) if force else n_wished
