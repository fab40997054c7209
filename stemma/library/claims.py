"""Claims: one open attempt per source says who works on it; every change of hands is one statement in PostgreSQL."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID, uuid4

import polars as pl
import structlog
from psycopg.rows import class_row, dict_row

from sql import load_queries
from stemma.errors import DocumentError, Unavailable, WorkerDied
from stemma.library.clock import LOOKS_OVERLAP
from stemma.settings import Fingerprints, Settings
from stemma.store.locks import SOURCES_PER_TRANSACTION, lock_sources, portions, share_corpus
from stemma.store.postgres import Connection

log = structlog.get_logger(__name__)

MAX_REQUESTS = 3
"""A batch requested this often without a run is closed as launch_failed."""

MAX_LONE_INTERRUPTIONS = 3
"""A document whose run ended this often while it was alone in its batch ends them itself."""

Ending = Literal["cancelled", "unavailable", "interrupted"]
"""How a run that left something unfinished ended: by a person, because something around it was away, or for a reason that may be a document."""

StageShown = Literal["queued", "parsing", "chunking", "contextualizing", "embedding", "indexing", "publishing"]

OPEN_SOURCE_SCHEMA = pl.Schema(
    {
        "source_id": pl.String,
        "partition_key": pl.String,
        "source_path": pl.String,
        "disk_path": pl.Binary,  # of the file, or of the file it lies in, as the file system spells it; null for what is neither
        "kind": pl.String,
        "file_type": pl.String,
        "content_hash": pl.String,
        "member_hash": pl.String,  # of a contained document's bytes, as its container's listing says
        "listed_output": pl.String,  # of a container: the output hash of the document whose members were listed
        "excluded_hash": pl.String,
        "detached": pl.Boolean,  # its file was never seen here: it has no bytes, only what is published of it
        "file_created_at": pl.Datetime("us", "UTC"),
        "file_modified_at": pl.Datetime("us", "UTC"),
        "workspace": pl.String,
        "publication_id": pl.Int64,
        "first_original_index": pl.Int64,  # 0 until a block is reserved
        "wanted_stage": pl.String,  # "" unless a stage is to be redone whatever its cached result
        "claimable": pl.Boolean,  # still present, not deleting, under the path that the attempt began with
    }
)


@dataclass(frozen=True)
class OpenSource:
    """One row of OPEN_SOURCE_SCHEMA."""

    source_id: str
    partition_key: str
    source_path: str
    disk_path: bytes | None
    kind: str
    file_type: str
    content_hash: str | None
    member_hash: str | None
    listed_output: str | None
    excluded_hash: str | None
    detached: bool
    file_created_at: datetime | None
    file_modified_at: datetime | None
    workspace: str
    publication_id: int
    first_original_index: int
    wanted_stage: str
    claimable: bool


def open_source_rows(sources: pl.DataFrame) -> list[OpenSource]:
    """The rows of an OPEN_SOURCE_SCHEMA frame, in its order."""
    return [OpenSource(**row) for row in sources.iter_rows(named=True)]


class LaunchFailed(Unavailable):
    """A batch was requested from Dagster several times and no run came."""

    code, remedy = "launch_failed", "Check the Dagster daemon and its run queue; the batch is tried again later."


@dataclass(frozen=True)
class Batch:
    """Claimed sources that one run is to take."""

    batch_id: UUID
    partitions: tuple[str, ...]
    n_requests: int
    """How often it was requested before."""


TEXT_SHARE = {"pdf": 0.05, "docx": 0.1, "pptx": 0.02, "xlsx": 0.3, "odt": 0.1, "odp": 0.02, "ods": 0.3, "epub": 0.5} | dict.fromkeys(
    ("png", "jpg", "jpeg", "tif", "tiff", "webp", "gif", "bmp", "zip", "gz"), 0.001
)
"""How much of a file of this type is text, roughly; of every other type, all of it."""


def cut_batches(stale: pl.DataFrame, settings: Settings, limits: Mapping[str, int]) -> Iterator[pl.DataFrame]:
    """The claimable rows (STALE_SCHEMA) as batches bounded by count and by estimated text; one document is always taken.

    Args:
        limits: source_id -> most documents in its batch, of sources that were interrupted. They come last and keep to themselves: what
            was never interrupted does not share their fate.
    """
    ready = stale.filter("claimable")
    limit = pl.Series("limit", [limits.get(source_id, settings.batch_size) for source_id in ready["source_id"]], dtype=pl.Int64)
    ready = ready.with_columns(limit, suspect=pl.col("source_id").is_in(list(limits))).sort(
        "suspect", "limit", descending=[False, True], maintain_order=True
    )
    file_type = pl.col("source_path").str.extract(r"\.([^./]+)$").str.to_lowercase()
    text = pl.col("size") * file_type.replace_strict(TEXT_SHARE, default=1.0, return_dtype=pl.Float64)
    while not ready.is_empty():
        alike = (pl.col("suspect") == ready["suspect"][0]) & (pl.col("limit") == ready["limit"][0])
        fitting = ready.filter(alike).filter(text.cum_sum() - text < settings.batch_text_bytes)
        taken = fitting.head(min(settings.batch_size, ready["limit"][0]))
        ready = ready.slice(taken.height)
        yield taken.drop("limit", "suspect")


def batch_limits(connection: Connection) -> dict[str, int]:
    """source_id -> most documents in its next batch, of those whose last attempt was interrupted: half of what was interrupted with it."""
    return dict(connection.execute(load_queries("claims")["batch_limits"]).fetchall())


def claim_batch(connection: Connection, taken: pl.DataFrame, *, now: datetime) -> UUID | None:
    """Open attempts for these rows (STALE_SCHEMA) and return the id of their batch; None when others hold them all."""
    batch_id = uuid4()
    return batch_id if _claim(connection, taken, batch_id, now=now) else None


def _claim(connection: Connection, taken: pl.DataFrame, batch_id: UUID, *, now: datetime) -> int:
    parameters = {
        "source_ids": taken["source_id"].to_list(),
        "stages": taken["stage"].to_list(),
        "reasons": taken["reason"].to_list(),
        "versions": taken["version"].to_list(),
        "batch_id": batch_id,
        "now": now,
    }
    return connection.execute(load_queries("claims")["claim_sources"], parameters).rowcount


def claim_partitions(
    connection: Connection, partitions: Sequence[str], run_id: str, settings: Settings, wanted: Fingerprints, *, now: datetime
) -> None:
    """Claim and bind for a run that was started by hand: those of the partitions that nobody holds, stale or not."""
    batch_id = uuid4()
    rows = connection.execute(
        load_queries("claims")["partitions_to_claim"],
        asdict(wanted) | {"partitions": list(partitions), "zip_archives": settings.zip_archives},
    ).fetchall()
    taken = pl.DataFrame(rows, schema={"source_id": pl.String, "stage": pl.String, "reason": pl.String, "version": pl.String}, orient="row")
    _claim(connection, taken, batch_id, now=now)
    bind_batch(connection, batch_id, run_id, settings, now=now)


def unanswered_requests(connection: Connection) -> dict[UUID, int]:
    """Batch -> how often it was requested, of those that no run has taken."""
    query = (
        "SELECT batch_id, max(n_requests) FROM attempts WHERE finished_at IS NULL AND run_id IS NULL AND n_requests > 0 GROUP BY batch_id"
    )
    return dict(connection.execute(query).fetchall())


def batches_to_request(connection: Connection, *, requested_before: datetime, lost: Collection[UUID], now: datetime) -> list[Batch]:
    """Batches without a run that are due to be requested, oldest first; claims whose source is gone are closed first.

    Args:
        lost: batches whose requests are known to have come to nothing, however short ago they were made.
    """
    connection.execute(load_queries("claims")["close_unclaimable"], {"now": now})
    parameters = {"requested_before": requested_before, "lost": list(lost), "future": now + LOOKS_OVERLAP}
    rows = connection.execute(load_queries("claims")["batches_to_request"], parameters).fetchall()
    return [Batch(batch_id, tuple(partitions), n_requests) for batch_id, n_requests, partitions in rows]


def mark_requested(connection: Connection, batch_id: UUID, *, now: datetime) -> None:
    """Count one more request of the batch."""
    connection.execute(
        "UPDATE attempts SET n_requests = n_requests + 1, requested_at = %s WHERE batch_id = %s AND run_id IS NULL AND finished_at IS NULL",
        [now, batch_id],
    )


def close_unlaunched(connection: Connection, batch_id: UUID, settings: Settings, *, now: datetime) -> None:
    """Close a batch that never got a run; its sources fail as launch_failed and are tried again after a wait."""
    message = f"No run was started after {MAX_REQUESTS} requests. {LaunchFailed.remedy}"
    parameters = {"batch_id": batch_id, "message": message, "backoff_s": settings.retry_backoff_s, "now": now}
    connection.execute(load_queries("claims")["close_unlaunched"], parameters)


def bind_batch(connection: Connection, batch_id: UUID, run_id: str, settings: Settings, *, now: datetime) -> None:
    """Take the batch for this run; nothing happens when another run has. It notes under which supervisor and which PostgreSQL it did."""
    parameters = {"batch_id": batch_id, "run_id": run_id, "supervisor": settings.supervisor, "now": now}
    connection.execute(load_queries("claims")["bind_batch"], parameters)


def give_back(connection: Connection, batch_id: UUID, run_id: str, settings: Settings, *, now: datetime) -> None:
    """Take the batch for this run and close it at once without a verdict: its sources may be claimed again."""
    bind_batch(connection, batch_id, run_id, settings, now=now)
    parameters = {"run_id": run_id, "source_ids": None, "state": "cancelled", "now": now}
    connection.execute(load_queries("claims")["release_attempts"], parameters)


def begin_publications(connection: Connection, run_id: str, *, now: datetime) -> None:
    """Give every open attempt of the run a pending publication, before any of their files is opened."""
    connection.execute(load_queries("claims")["begin_publications"], {"run_id": run_id, "now": now})


def open_sources(connection: Connection, run_id: str) -> pl.DataFrame:
    """The sources (OPEN_SOURCE_SCHEMA) whose attempt this run still holds, by partition key."""
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(load_queries("claims")["open_sources"], {"run_id": run_id}).fetchall()
    return pl.DataFrame(rows, schema=OPEN_SOURCE_SCHEMA, orient="row")


def enter_stage(connection: Connection, run_id: str, stage: StageShown, progress: float, *, now: datetime) -> None:
    """Show that the run's open documents are at this stage; `progress` is in 0..1."""
    connection.execute(load_queries("claims")["enter_stage"], {"run_id": run_id, "stage": stage, "progress": progress, "now": now})


def fail_attempts(
    connection: Connection, run_id: str, stage: StageShown, failures: dict[str, DocumentError], settings: Settings, *, now: datetime
) -> None:
    """Close attempts (source_id -> error) as failed at this stage; what was live stays live."""
    if not failures:
        return
    for error in failures.values():
        log.warning("document failed", source_path=error.source_path, run_id=run_id, stage=stage, code=error.code, detail=error.detail)
    parameters = {
        "source_ids": list(failures),
        "codes": [error.code for error in failures.values()],
        "messages": [error.message for error in failures.values()],
        "retryable": [error.retryable for error in failures.values()],
        "run_id": run_id,
        "stage": stage,
        "max_attempts": settings.max_attempts,
        "backoff_s": settings.retry_backoff_s,
        "now": now,
    }
    connection.execute(load_queries("claims")["fail_attempts"], parameters)


def abandon_attempts(
    connection: Connection, run_id: str, source_ids: Sequence[str], *, now: datetime, state: Literal["abandoned", "cancelled"] = "abandoned"
) -> None:
    """Close attempts without a verdict; the next walk finds what is stale."""
    parameters = {"run_id": run_id, "source_ids": list(source_ids), "state": state, "now": now}
    connection.execute(load_queries("claims")["release_attempts"], parameters)


def finish_unpublished(connection: Connection, run_id: str, *, now: datetime) -> None:
    """Close what is still open at the end of a run that was not asked to publish."""
    parameters = {"run_id": run_id, "source_ids": None, "state": "succeeded", "now": now}
    connection.execute(load_queries("claims")["release_attempts"], parameters)


def run_source_ids(connection: Connection, run_id: str) -> dict[str, str]:
    """Partition key -> source_id of everything that the run ever held, by partition key."""
    return {key: source_id for key, source_id, _ in connection.execute(load_queries("claims")["run_partitions"], {"run_id": run_id})}


def failed_partitions(connection: Connection, run_id: str) -> list[str]:
    """The partition keys of what failed in this run so far, sorted."""
    return [key for key, _, state in connection.execute(load_queries("claims")["run_partitions"], {"run_id": run_id}) if state == "failed"]


def close_run(connection: Connection, run_id: str, ending: Ending, settings: Settings, *, now: datetime) -> int:
    """Close what a run that is over still held, and return the number of sources.

    `interrupted`: the documents wait, then go in batches of half the size. One that was alone in its batch three times, at the same bytes
    and recipe, has failed as `worker_died`. Where the supervisor or PostgreSQL ended meanwhile, nothing is known of the documents: they are
    taken again at once, and it counts for nothing; so it does, after a wait, where something around the run was `unavailable`.

    The connection is in autocommit. The locks of the sources are taken first: what the run is publishing at this moment, alive
    after all, is either live before its claim is looked at, or abandoned whole.
    Raises LockNotAvailable when a source stays locked; what was closed before it stays closed.
    """
    n_sources = 0
    while held := _held_by(connection, run_id, settings)[:SOURCES_PER_TRANSACTION]:
        source_ids = [attempt.source_id for attempt in held]
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, source_ids)
            if ending == "cancelled":
                n_sources += len(cancel_attempts(connection, source_ids, run_id=run_id, now=now))
            elif ending == "unavailable" or not all(attempt.stayed for attempt in held):
                n_sources += _release(connection, run_id, source_ids, settings, waits=ending == "unavailable", now=now)
            else:
                n_sources += _interrupt(connection, run_id, held, settings, now=now)
    return n_sources


def cancel_attempts(
    connection: Connection, source_ids: Sequence[UUID], *, run_id: str | None = None, now: datetime
) -> dict[UUID, str | None]:
    """Close the open attempts of these sources because a person wants it: they wait for a retry or a change. Returns source_id -> run.

    The caller holds the locks of the sources. `run_id`: only attempts of that run.
    """
    parameters = {"source_ids": list(source_ids), "run_id": run_id, "now": now}
    return dict(connection.execute(load_queries("claims")["cancel_attempts"], parameters).fetchall())


def failures_of_run(connection: Connection, run_id: str) -> dict[str, str]:
    """Partition key -> how its attempt in this run failed, as a sentence."""
    return dict(connection.execute(load_queries("claims")["failures_of_run"], {"run_id": run_id}).fetchall())


def held_batches(connection: Connection, run_id: str) -> list[UUID]:
    """The batches of which the run has not finished everything."""
    rows = connection.execute(
        "SELECT DISTINCT batch_id FROM attempts WHERE run_id = %s AND finished_at IS NULL ORDER BY batch_id", [run_id]
    )
    return [batch_id for (batch_id,) in rows]


def cancel_batch(connection: Connection, batch_id: UUID, *, now: datetime) -> int:
    """Close the claims of a batch that no run has taken, because a person cancelled its run in the queue; returns the number of sources."""
    rows = connection.execute("SELECT source_id FROM attempts WHERE batch_id = %s AND run_id IS NULL AND finished_at IS NULL", [batch_id])
    source_ids = sorted(source_id for (source_id,) in rows)
    n_sources = 0
    for portion in portions(source_ids):
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, portion)
            n_sources += len(cancel_attempts(connection, portion, now=now))
    return n_sources


@dataclass(frozen=True)
class _Held:
    source_id: UUID
    stage: StageShown
    wanted_version: str
    stayed: bool
    alone: bool


def _held_by(connection: Connection, run_id: str, settings: Settings) -> list[_Held]:
    with connection.cursor(row_factory=class_row(_Held)) as cursor:
        parameters = {"run_id": run_id, "supervisor": settings.supervisor}
        return cursor.execute(load_queries("claims")["held_by_run"], parameters).fetchall()


def _release(connection: Connection, run_id: str, source_ids: Sequence[UUID], settings: Settings, *, waits: bool, now: datetime) -> int:
    parameters = {"run_id": run_id, "source_ids": list(source_ids), "state": "cancelled", "now": now}
    n_sources = connection.execute(load_queries("claims")["release_attempts"], parameters).rowcount
    if waits:
        retry_at = now + timedelta(seconds=settings.retry_backoff_s)
        connection.execute("UPDATE sources SET retry_at = %s WHERE source_id = ANY(%s)", [retry_at, list(source_ids)])
    return n_sources


def _interrupt(connection: Connection, run_id: str, held: Sequence[_Held], settings: Settings, *, now: datetime) -> int:
    before = 0
    if len(held) == 1 and held[0].alone:
        parameters = {"source_id": held[0].source_id, "version": held[0].wanted_version}
        row = connection.execute(load_queries("claims")["lone_interruptions"], parameters).fetchone()
        before = row[0] if row else 0
        if before + 1 >= MAX_LONE_INTERRUPTIONS:
            died = WorkerDied(
                str(held[0].source_id), f"The process that worked on it ended {before + 1} times while it worked on nothing else"
            )
            fail_attempts(connection, run_id, held[0].stage, {str(held[0].source_id): died}, settings, now=now)
            return 1
    source_ids = [attempt.source_id for attempt in held]
    wait_s = settings.retry_backoff_s * 2**before
    return connection.execute(
        load_queries("claims")["interrupt_run"], {"run_id": run_id, "source_ids": source_ids, "wait_s": wait_s, "now": now}
    ).rowcount
