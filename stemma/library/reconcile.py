"""Reconciling: one look at the library and at the runs, and what follows from it. Everything here may be repeated safely."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Protocol
from uuid import UUID

import polars as pl

from sql import load_queries
from stemma.errors import StemmaError
from stemma.failpoints import reach
from stemma.library import claims
from stemma.library.catalog import WalkOutcome, library_name, walk_library
from stemma.library.clock import follow_clock
from stemma.library.contained import follow_containers
from stemma.library.deletion import delete_sources, pending_deletions
from stemma.library.looks import LastLook, last_look, last_request, note_look
from stemma.library.staleness import claimable_sources, n_sources, settling_sources, stale_counts
from stemma.settings import Fingerprints, Settings
from stemma.store.locks import batch_lock_key, release_session_lock, try_session_lock
from stemma.store.postgres import Connection, Pool, autocommitted, explained
from stemma.store.sparse_coverage import mark_retired, publications_to_retire

MAX_OPEN_BATCHES = 3
"""Batches claimed at once: one that runs and two that wait, so that the queue never runs dry and little is claimed early."""

SETTLING_S = 30.0
"""A file that is written to all the time is taken after this long, as it is then; what vouches for it never settles, so each look takes it again."""

MAX_SETTLING = 1_000
"""Of more files that settle, these are remembered; the others' turn comes as these settle."""


class Runs(Protocol):
    """What reconciling asks of the orchestrator."""

    def unfinished_batches(self, batch_ids: Collection[UUID]) -> set[UUID]:
        """Those of the batches that have a run which has not ended."""
        ...

    def ended_runs(self, batch_ids: Collection[UUID]) -> Mapping[UUID, int]:
        """How many runs of each batch have ended, however they did; one that has none may be missing."""
        ...

    def cancelled_batches(self, batch_ids: Collection[UUID]) -> set[UUID]:
        """Those of the batches of which a person cancelled a run before it began."""
        ...

    def ending(self, run_id: str) -> claims.Ending | None:
        """How the run ended, None while it goes on; one that is unknown was cancelled by whoever removed it."""
        ...

    def report_failed(self, run_id: str, message: str) -> None:
        """Mark a run whose process is gone as failed."""
        ...


@dataclass(frozen=True)
class Look:
    """What one look found and did, and what the orchestrator is to do now."""

    batches: tuple[claims.Batch, ...]
    """To be requested, each as one run."""
    retired_partitions: tuple[str, ...]
    """Partition keys that belong to no source any more, for longer than the retention time."""
    message: str
    """One sentence for a person."""
    stale: pl.DataFrame | None
    """What was stale (COUNT_SCHEMA); None when this look did not ask."""


@explained()
def reconcile(
    pool: Pool, settings: Settings, wanted: Fingerprints, runs: Runs, *, remove_sparse: Callable[[Sequence[int]], None], now: datetime
) -> Look:
    """Look at the library and the runs once.

    Closes what dead runs held, walks the library if a walk is due (within WALK_BUDGET_S), carries out deletions, retires
    keyword entries, claims stale sources in batches and names the batches to request.

    Raises:
        StoreUnavailable, StoreBusy: the look ends where it was; the next one goes on.
    """
    said: list[str] = []
    with autocommitted(pool) as connection:
        if follow_clock(connection, now=now):
            said.append("the clock was set back since the last look")
    if n_closed := close_dead_runs(pool, settings, runs, now=now):
        said.append(f"{n_closed} documents were left unfinished by runs that are over")
    if n_cancelled := cancel_queued(pool, runs, now=now):
        said.append(f"{n_cancelled} documents were cancelled with their run in the queue")
    with pool.connection() as connection:
        due = _walk_is_due(connection, settings, now=now)
    walk = None
    if due:
        walk = walk_library(pool, settings, budget_s=settings.walk_budget_s, now=now)
        said.append(walk.message)
    with autocommitted(pool) as connection:
        follow_containers(connection, now=now)
    said += _delete(pool, settings, remove_sparse, now=now)
    said += _retire(pool, settings, remove_sparse, now=now)
    stale = None
    if walk is not None:
        claimed, stale = _claim(pool, settings, wanted, walk, now=now)
        said += claimed
    with pool.connection() as connection:
        batches = _requests(connection, settings, runs, now=now)
        retired_before = now - timedelta(seconds=settings.partition_retention_s)
        retired = connection.execute(load_queries("reconcile")["forgettable_partitions"], {"retired_before": retired_before}).fetchall()
    reach("look.done")
    if batches:
        said.append(f"{sum(len(batch.partitions) for batch in batches)} documents requested in {len(batches)} runs")
    return Look(tuple(batches), tuple(key for (key,) in retired), "; ".join(said) or "nothing is due", stale)


def close_dead_runs(pool: Pool, settings: Settings, runs: Runs, *, now: datetime) -> int:
    """Close what runs held whose lock is free: ended ones at once, others RUN_DEAD_S after they took their batch. Returns the sources."""
    n_sources = 0
    with pool.connection() as connection:
        bound = connection.execute(load_queries("claims")["bound_batches"]).fetchall()
    for batch_id, run_id, bound_at in bound:
        # A binding in the future: the clock was set back since.
        if not bound_at <= now < bound_at + timedelta(seconds=settings.run_dead_s) or runs.ending(run_id) is not None:
            n_sources += close_dead_run(pool, settings, runs, batch_id, run_id, now=now)
    return n_sources


def close_dead_run(pool: Pool, settings: Settings, runs: Runs, batch_id: UUID, run_id: str, *, now: datetime) -> int:
    """Close what the run still holds of its batch, unless its process lives: then it holds the batch's lock. Returns the sources.

    One that is not known to be over is reported as failed: nobody holds its lock.
    """
    ending = runs.ending(run_id)
    with autocommitted(pool) as connection:
        key = batch_lock_key(batch_id)
        if not try_session_lock(connection, key):
            return 0
        try:
            if ending is None:
                runs.report_failed(run_id, "its process is gone; Stemma closes what it held and tries again")
            return claims.close_run(connection, run_id, ending or "interrupted", settings, now=now)
        finally:
            if not connection.closed:
                release_session_lock(connection, key)


def cancel_queued(pool: Pool, runs: Runs, *, now: datetime) -> int:
    """Close the claims whose run a person cancelled before it began. Returns the sources."""
    with autocommitted(pool) as connection:
        cancelled = runs.cancelled_batches(claims.unanswered_requests(connection))
        return sum(claims.cancel_batch(connection, batch_id, now=now) for batch_id in sorted(cancelled))


def _walk_is_due(connection: Connection, settings: Settings, *, now: datetime) -> bool:
    """A walk is going on, was asked for, or the interval has passed; or work is left from the last look and a batch is free."""
    row = connection.execute(
        "SELECT started_at, state = 'walking' FROM scans WHERE library = %s ORDER BY scan_id DESC LIMIT 1", [library_name(settings.library)]
    ).fetchone()
    started_at, walking = row if row else (None, None)
    # A last walk in the future: the clock was set back since.
    if started_at is None or walking or not started_at <= now < started_at + timedelta(seconds=settings.reconcile_interval_s):
        return True
    requested_at = last_request(connection)
    if requested_at and requested_at > started_at:
        return True
    return last_look(connection).remaining > 0 and _n_open_batches(connection) < MAX_OPEN_BATCHES


def _n_open_batches(connection: Connection) -> int:
    row = connection.execute("SELECT count(DISTINCT batch_id) FROM attempts WHERE finished_at IS NULL").fetchone()
    return row[0] if row else 0


def _claim(pool: Pool, settings: Settings, wanted: Fingerprints, walk: WalkOutcome, *, now: datetime) -> tuple[list[str], pl.DataFrame]:
    """Claim as many batches as there is room for; returns what to say and what was stale before (COUNT_SCHEMA)."""
    library_away = walk.scan_id is None and not walk.busy
    with pool.connection() as connection:
        last = last_look(connection)
        notices = walk.notices if walk.complete or library_away else last.notices
        counts = stale_counts(connection, settings, wanted, now=now)
        ready = counts.filter(pl.col("waits_for").is_null())
        settling, overdue = _settling(connection, settings, wanted, counts, last, now=now)
        n_ready, n_settling = n_sources(ready), n_sources(ready.filter("settling"))
        n_left = n_ready - n_settling + len(overdue)
        claimed = 0
        limits = claims.batch_limits(connection) if n_left > 0 else {}
        while n_left > 0 and (n_free := MAX_OPEN_BATCHES - _n_open_batches(connection)) > 0:
            page = claimable_sources(
                connection, settings, wanted, overdue=overdue, last=list(limits), limit=n_free * settings.batch_size, now=now
            )
            if page.is_empty():
                break
            for taken in islice(claims.cut_batches(page, settings, limits), n_free):
                claimed += taken.height if claims.claim_batch(connection, taken, now=now) else 0
                n_left -= taken.height
        reach("claim.before_commit")
        note_look(connection, LastLook(now, n_ready - claimed, library_away, settling, notices))
    n_held = n_sources(counts.filter(pl.col("waits_for") == "backfill"))
    said = [f"{n_held} documents wait for a backfill: the policy of a stage is manual"] if n_held else []
    if claimed:
        reasons = ready.group_by("reason").agg(pl.col("sources").sum()).sort("sources", "reason", descending=[True, False])
        said.append(f"{claimed} claimed (" + ", ".join(f"{count} {reason}" for reason, count in reasons.iter_rows()) + ")")
    return said, counts


def _settling(
    connection: Connection, settings: Settings, wanted: Fingerprints, counts: pl.DataFrame, last: LastLook, *, now: datetime
) -> tuple[dict[str, str], list[str]]:
    """source_id -> since when it settles, of at most MAX_SETTLING; and those that have settled for too long to wait on."""
    if not counts["settling"].any():
        return {}, []
    found = settling_sources(connection, settings, wanted, limit=MAX_SETTLING, now=now)
    settling = {source_id: min(last.settling.get(source_id, now.isoformat()), now.isoformat()) for source_id in found}
    latest = (now - timedelta(seconds=SETTLING_S)).isoformat()
    return settling, [source_id for source_id, since in settling.items() if since <= latest]


def _requests(connection: Connection, settings: Settings, runs: Runs, *, now: datetime) -> list[claims.Batch]:
    unanswered = claims.unanswered_requests(connection)
    ended = runs.ended_runs(unanswered)
    # A run that ended without having taken its batch died on the way.
    lost = [batch_id for batch_id, n_requests in unanswered.items() if ended.get(batch_id, 0) >= n_requests]
    due = claims.batches_to_request(connection, requested_before=now - timedelta(seconds=settings.launch_timeout_s), lost=lost, now=now)
    waiting = runs.unfinished_batches([batch.batch_id for batch in due if batch.n_requests])
    requested: list[claims.Batch] = []
    for batch in due:
        if batch.batch_id in waiting:
            continue
        if batch.n_requests >= claims.MAX_REQUESTS:
            claims.close_unlaunched(connection, batch.batch_id, settings, now=now)
            continue
        claims.mark_requested(connection, batch.batch_id, now=now)
        reach("request.before_commit")
        requested.append(batch)
    return requested


def _delete(pool: Pool, settings: Settings, remove_sparse: Callable[[Sequence[int]], None], *, now: datetime) -> list[str]:
    """What it did, in words. Deletions that a store holds up wait, and hold up nothing else."""
    with pool.connection() as connection:
        pending = pending_deletions(connection)
    try:
        outcome = delete_sources(pool, pending, remove_sparse, library=settings.library, now=now)
    except StemmaError as error:
        return [f"{len(pending)} deleted documents are out of every search, but still in the stores: {error}".rstrip(".")]
    n_gone = len(outcome.deleted) + len(outcome.excluded)
    gone = [f"{n_gone} vanished or deleted documents were removed"] if n_gone else []
    return gone + [f"{len(outcome.failed)} files could not be removed and are tried again"] * bool(outcome.failed)


def _retire(pool: Pool, settings: Settings, remove_sparse: Callable[[Sequence[int]], None], *, now: datetime) -> list[str]:
    with pool.connection() as connection:
        due = publications_to_retire(connection, settings, now=now)
    if not due:
        return []
    reach("retire.before_entries")
    try:
        remove_sparse(due)
    except StemmaError as error:
        return [f"keyword entries of {len(due)} old versions wait to be removed: {error}".rstrip(".")]
    reach("retire.entries_removed")
    with pool.connection() as connection:
        mark_retired(connection, due)
    return []


def retire_partition(pool: Pool, partition_key: str, *, now: datetime) -> None:
    """Let the orchestrator forget this partition after the retention time, unless a source has it."""
    with pool.connection() as connection:
        connection.execute(
            """
            INSERT INTO retired_partitions (partition_key, retired_at)
            SELECT %(key)s, %(now)s WHERE NOT EXISTS (SELECT FROM sources WHERE partition_key = %(key)s)
            ON CONFLICT DO NOTHING
            """,
            {"key": partition_key, "now": now},
        )


def forget_retired(pool: Pool, partition_keys: Sequence[str]) -> None:
    """The orchestrator has forgotten these partitions; a key that came back meanwhile is no longer retired and is not touched."""
    with pool.connection() as connection:
        connection.execute("DELETE FROM retired_partitions WHERE partition_key = ANY(%s)", [list(partition_keys)])
