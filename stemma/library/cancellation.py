"""Cancel and retry per document: what a person stops stays stopped, whatever was live stays live, and a retry sets it going again."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from sql import load_queries
from stemma.errors import RequestError
from stemma.library import claims
from stemma.library.looks import request_look
from stemma.library.restriction import Restriction
from stemma.library.staleness import stale_sources
from stemma.settings import Fingerprints, Settings
from stemma.store.locks import lock_sources, portions, share_corpus
from stemma.store.postgres import Connection


class NothingToCancel(RequestError):
    """The document is neither waiting nor being worked on."""

    code, remedy = (
        "nothing_to_cancel",
        "Its status says what it is; only what is pending, processing or about to be redone can be cancelled.",
    )


class NothingToRetry(RequestError):
    """The document neither failed nor was cancelled, or its file cannot be taken."""

    code, remedy = "nothing_to_retry", "`stemma ingest --reingest` does again what is in order, and brings back what was deleted."


Stopped = Literal["failed", "cancelled"]


@dataclass(frozen=True)
class Chosen:
    """Which documents are meant; each part that is given narrows the choice, and none at all means every document."""

    paths: Sequence[str] | None = None
    """source_paths of files or folders; a folder stands for its subtree."""
    source_id: UUID | None = None
    workspace: str | None = None
    """Key."""
    batch_id: UUID | None = None
    """What is queued or running of this batch."""


@dataclass(frozen=True)
class Cancelled:
    """What a cancellation stopped."""

    source_ids: tuple[UUID, ...]
    idle_runs: tuple[str, ...]
    """Runs that have nothing left to do: the orchestrator may end them."""


def cancel_documents(connection: Connection, chosen: Chosen, settings: Settings, wanted: Fingerprints, *, now: datetime) -> Cancelled:
    """Stop the work on these documents: queued, running, or about to be claimed. What has failed already is left as it is.

    A document that is being published at this moment is live before it is looked at. The others keep their live version, have the status
    `cancelled`, and are taken again after a retry or a change of file, settings or code. The connection is in autocommit.
    """
    stopped: list[UUID] = []
    runs: set[str] = set()
    restriction = Restriction(chosen.paths, chosen.workspace)
    stale = dict(stale_sources(connection, settings, wanted, restriction=restriction, now=now).select("source_id", "version").iter_rows())
    for source_ids in portions(_chosen(connection, chosen)):
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, source_ids)
            closed = claims.cancel_attempts(connection, source_ids, now=now)
            runs.update(run_id for run_id in closed.values() if run_id is not None)
            waiting = [source_id for source_id in source_ids if source_id not in closed and str(source_id) in stale]
            parameters = {"source_ids": waiting, "versions": [stale[str(source_id)] for source_id in waiting], "now": now}
            held_back = connection.execute(load_queries("cancellation")["cancel_waiting"], parameters).fetchall()
            stopped += [*closed, *(source_id for (source_id,) in held_back)]
    return Cancelled(tuple(stopped), _idle(connection, runs))


def retry_documents(
    connection: Connection, chosen: Chosen, settings: Settings, wanted: Fingerprints, *, of: Collection[Stopped], now: datetime
) -> tuple[UUID, ...]:
    """Let these documents be tried again now, as if they had never failed or been cancelled; returns their source_ids.

    What is missing, was deleted with its file kept, or has a path that is too long is passed over. The connection is in autocommit.
    """
    restriction = Restriction(chosen.paths, chosen.workspace)
    stale = [UUID(source_id) for source_id in stale_sources(connection, settings, wanted, restriction=restriction, now=now)["source_id"]]
    retried: list[UUID] = []
    for source_ids in portions(_chosen(connection, chosen)):
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, source_ids)
            parameters = {"source_ids": source_ids, "statuses": list(of), "stale": stale, "now": now}
            retried += [source_id for (source_id,) in connection.execute(load_queries("cancellation")["retry_sources"], parameters)]
    if retried:
        request_look(connection, now=now)
    return tuple(retried)


def _chosen(connection: Connection, chosen: Chosen) -> list[UUID]:
    paths = None if chosen.paths is None else list(chosen.paths)
    rows = connection.execute(load_queries("cancellation")["chosen_sources"], asdict(chosen) | {"paths": paths})
    return [source_id for source_id, _ in rows]


def _idle(connection: Connection, runs: Collection[str]) -> tuple[str, ...]:
    busy = connection.execute("SELECT DISTINCT run_id FROM attempts WHERE run_id = ANY(%s) AND finished_at IS NULL", [list(runs)])
    return tuple(sorted(set(runs) - {run_id for (run_id,) in busy}))
