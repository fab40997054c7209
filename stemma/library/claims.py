"""Claims: one open attempt per source says who works on it; every change of hands is one statement in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID, uuid4

import polars as pl
import structlog
from psycopg.rows import dict_row

from sql import load_queries
from stemma.errors import DocumentError, Unavailable
from stemma.settings import Fingerprints, Settings
from stemma.store.locks import lock_sources, portions, share_corpus
from stemma.store.postgres import Connection

log = structlog.get_logger(__name__)

MAX_REQUESTS = 3
"""A batch requested this often without a run is closed as launch_failed."""

StageShown = Literal["queued", "parsing", "chunking", "contextualizing", "embedding", "indexing", "publishing"]

OPEN_SOURCE_SCHEMA = pl.Schema(
    {
        "source_id": pl.String,
        "partition_key": pl.String,
        "source_path": pl.String,
        "disk_path": pl.Binary,  # relative to the library, as the file system spells it; null for what is no file
        "kind": pl.String,
        "file_type": pl.String,
        "content_hash": pl.String,
        "excluded_hash": pl.String,
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
    excluded_hash: str | None
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


def first_batch(stale: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """The leading claimable rows (STALE_SCHEMA) that fit a batch by count and by estimated text; one document is always taken."""
    file_type = pl.col("source_path").str.extract(r"\.([^./]+)$").str.to_lowercase()
    text = pl.col("size") * file_type.replace_strict(TEXT_SHARE, default=1.0, return_dtype=pl.Float64)
    return stale.filter("claimable").filter(text.cum_sum() - text < settings.batch_text_bytes).head(settings.batch_size)


def claim_batch(connection: Connection, stale: pl.DataFrame, settings: Settings, *, now: datetime) -> UUID | None:
    """Open attempts for the first batch of the stale sources (STALE_SCHEMA) and return its id; None when nothing was left to claim."""
    taken = first_batch(stale, settings)
    if taken.is_empty():
        return None
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


def claim_partitions(connection: Connection, partitions: Sequence[str], run_id: str, wanted: Fingerprints, *, now: datetime) -> None:
    """Claim and bind for a run that was started by hand: those of the partitions that nobody holds, stale or not."""
    batch_id = uuid4()
    rows = connection.execute(load_queries("claims")["partitions_to_claim"], asdict(wanted) | {"partitions": list(partitions)}).fetchall()
    taken = pl.DataFrame(rows, schema={"source_id": pl.String, "stage": pl.String, "reason": pl.String, "version": pl.String}, orient="row")
    _claim(connection, taken, batch_id, now=now)
    bind_batch(connection, batch_id, run_id, now=now)


def batches_to_request(connection: Connection, *, requested_before: datetime, now: datetime) -> list[Batch]:
    """Batches without a run that are due to be requested, oldest first; claims whose source is gone are closed first."""
    connection.execute(load_queries("claims")["close_unclaimable"], {"now": now})
    rows = connection.execute(load_queries("claims")["batches_to_request"], {"requested_before": requested_before}).fetchall()
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


def bind_batch(connection: Connection, batch_id: UUID, run_id: str, *, now: datetime) -> None:
    """Take the batch for this run; nothing happens when another run has."""
    connection.execute(load_queries("claims")["bind_batch"], {"batch_id": batch_id, "run_id": run_id, "now": now})


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


def run_partitions(connection: Connection, run_id: str) -> list[str]:
    """The partition keys of everything that the run ever held, sorted."""
    return [key for key, _ in connection.execute(load_queries("claims")["run_partitions"], {"run_id": run_id})]


def failed_partitions(connection: Connection, run_id: str) -> list[str]:
    """The partition keys of what failed in this run so far, sorted."""
    return [key for key, state in connection.execute(load_queries("claims")["run_partitions"], {"run_id": run_id}) if state == "failed"]


def interrupt_run(connection: Connection, run_id: str, settings: Settings, *, now: datetime) -> int:
    """Close what a dead run held and return the number of sources; they become claimable again after a wait.

    The connection is in autocommit. The locks of the sources are taken first: what the run is publishing at this moment, alive
    after all, is either live before its claim is looked at, or abandoned whole.
    Raises LockNotAvailable when a source stays locked; what was closed before it stays closed.
    """
    held = connection.execute("SELECT source_id FROM attempts WHERE run_id = %s AND finished_at IS NULL ORDER BY source_id", [run_id])
    n_sources = 0
    for source_ids in portions([source_id for (source_id,) in held.fetchall()]):
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, source_ids)
            parameters = {"run_id": run_id, "source_ids": source_ids, "backoff_s": settings.retry_backoff_s, "now": now}
            n_sources += connection.execute(load_queries("claims")["interrupt_run"], parameters).rowcount
    return n_sources
