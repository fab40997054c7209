"""A run: the settings it froze, the sources it holds, and how its stages hand keys to each other."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Literal
from uuid import UUID

import polars as pl
from psycopg.types.json import Jsonb

from sql import load_queries
from stemma.errors import DocumentError
from stemma.failpoints import reach
from stemma.library import claims
from stemma.settings import Fingerprints, Settings
from stemma.store.lake import Lake
from stemma.store.postgres import Connection, Pool
from stemma.store.stage_results import ResultStage, StageResult, find_results

StageAsset = Literal["documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus"]

Fact = str | int | float | bool

SHOWN: dict[StageAsset, tuple[claims.StageShown, float]] = {
    "documents": ("parsing", 0.05),
    "chunks": ("chunking", 0.4),
    "contextualized_chunks": ("contextualizing", 0.5),
    "embeddings": ("embedding", 0.55),
    "bm25_index": ("indexing", 0.9),
    "corpus": ("publishing", 0.95),
}
"""What a person sees while an asset is made: the stage, and the share of the attempt that lies behind."""


PUBLISHED_ANEW: tuple[StageAsset, ...] = ("embeddings", "bm25_index", "corpus")
"""A wish for one of these makes a new publication even of an equal document: its vectors and keyword entries are those of the new one."""


@dataclass(frozen=True)
class Run:
    """One run of the pipeline. Its settings and fingerprints are those it began with, whatever is set meanwhile."""

    run_id: str
    epoch: int
    settings: Settings
    wanted: Fingerprints
    pool: Pool
    lake: Lake

    def sources(self) -> pl.DataFrame:
        """The sources (claims.OPEN_SOURCE_SCHEMA) that this run still holds and may still publish; the others' attempts are closed."""
        with self.pool.connection() as connection:
            held = claims.open_sources(connection, self.run_id)
            gone = held.filter(~pl.col("claimable"))
            if not gone.is_empty():
                claims.abandon_attempts(connection, self.run_id, gone["source_id"].to_list(), now=now())
        return held.filter("claimable")


@dataclass(frozen=True)
class Version:
    """What a stage made of one document: the hash of its output, and what a person may want to know of it."""

    data_version: str
    metadata: Mapping[str, Fact] = field(default_factory=dict[str, Fact])


@dataclass(frozen=True)
class StageOutcome:
    """What a stage did to a batch, by partition key; a key in neither was dropped because its source changed hands."""

    versions: dict[str, Version]
    failures: dict[str, DocumentError]


def now() -> datetime:
    """The clock of everything a run records."""
    return datetime.now(UTC)


def open_run(
    pool: Pool, lake: Lake, run_id: str, *, settings: Settings, wanted: Fingerprints, batch_id: UUID | None, partitions: Sequence[str]
) -> Run:
    """Begin a run, or join the one that an earlier step of it began.

    The first call freezes settings and fingerprints and binds the batch; a run without a batch (started by hand) claims
    its partitions. Every open attempt then has its pending publication.
    """
    with pool.connection() as connection:
        first = connection.execute(
            """
            INSERT INTO run_settings (run_id, settings, fingerprints, epoch)
            SELECT %s, %s, %s, epoch FROM corpus_state
            ON CONFLICT DO NOTHING
            """,
            [run_id, Jsonb(settings.frozen()), Jsonb(asdict(wanted))],
        ).rowcount
        if first and batch_id:
            claims.bind_batch(connection, batch_id, run_id, settings, now=now())
        elif first:
            claims.claim_partitions(connection, partitions, run_id, settings, wanted, now=now())
        claims.begin_publications(connection, run_id, now=now())
        connection.commit()
        reach("run.begun")
        row = connection.execute("SELECT settings, fingerprints, epoch FROM run_settings WHERE run_id = %s", [run_id]).fetchone()
    assert row is not None
    frozen, fingerprints, epoch = row
    return Run(run_id, epoch, settings.thawed(frozen), Fingerprints(**fingerprints), pool, lake)


def enter(run: Run, stage: StageAsset) -> None:
    """Show that the run's documents are at this stage."""
    with run.pool.connection() as connection:
        claims.enter_stage(connection, run.run_id, *SHOWN[stage], now=now())


def handed_over(run: Run, connection: Connection, sources: pl.DataFrame, stage: ResultStage) -> dict[str, StageResult]:
    """source_id -> what the stage before made of it; a source without one is missing here.

    Only this run may write the stage states of the sources it holds, so these are the keys of the step before, or of the
    last run that made that stage where this run was not asked for it.
    """
    rows = connection.execute(
        "SELECT source_id::text, result_key FROM stage_state WHERE stage = %s AND source_id = ANY(%s::uuid[]) ORDER BY source_id",
        [stage, sources["source_id"].to_list()],
    ).fetchall()
    results = find_results(connection, run.lake, stage, [key for _, key in rows], now=now())
    return {source_id: results[key] for source_id, key in rows if key in results}


def found_before(
    run: Run, connection: Connection, sources: pl.DataFrame, stage: ResultStage, keys: Mapping[str, str]
) -> dict[str, StageResult]:
    """Key -> result, of source_id -> key: what was done before and still lies in the lake, without what is wished to be done again."""
    wished = {keys[i] for i, wanted in sources.select("source_id", "wanted_stage").iter_rows() if wanted == stage and i in keys}
    return find_results(connection, run.lake, stage, [key for key in keys.values() if key not in wished], now=now())


def wished_for(sources: pl.DataFrame, *stages: StageAsset) -> set[str]:
    """The source_ids of those that are wished to be made again from one of these stages on."""
    return set(sources.filter(pl.col("wanted_stage").is_in(list(stages)))["source_id"])


def keyed(frames: Mapping[str, pl.DataFrame], schema: pl.Schema) -> pl.DataFrame:
    """The frames below each other, the key of each as the first column; `schema` is that of the whole, where there is no frame."""
    named = [frame.select(pl.lit(key).alias("key"), pl.all()) for key, frame in frames.items()]
    return pl.concat(named) if named else schema.to_frame()


def record(run: Run, connection: Connection, stage: StageAsset, fingerprint: str, rows: Mapping[str, tuple[str, str, str]]) -> set[str]:
    """Record source_id -> (input version, output hash, result key) of a stage; returns the sources that this run still holds."""
    parameters = {
        "stage": stage,
        "fingerprint": fingerprint,
        "run_id": run.run_id,
        "source_ids": list(rows),
        "inputs": [row[0] for row in rows.values()],
        "outputs": [row[1] for row in rows.values()],
        "keys": [row[2] for row in rows.values()],
        "now": now(),
    }
    return {str(source_id) for (source_id,) in connection.execute(load_queries("claims")["record_stages"], parameters).fetchall()}


def count_calls(
    run: Run, connection: Connection, *, parsed: Mapping[str, int] | None = None, contexts: Mapping[str, int] | None = None,
    embedded: Mapping[str, int] | None = None,
) -> None:  # fmt: skip
    """Add source_id -> number of calls that no cache answered to the attempts of this run."""
    parsed, contexts, embedded = parsed or {}, contexts or {}, embedded or {}
    source_ids = sorted({*parsed, *contexts, *embedded})
    parameters = {
        "run_id": run.run_id,
        "source_ids": source_ids,
        "parsed": [parsed.get(source_id, 0) for source_id in source_ids],
        "contexts": [contexts.get(source_id, 0) for source_id in source_ids],
        "embedded": [embedded.get(source_id, 0) for source_id in source_ids],
    }
    connection.execute(load_queries("claims")["count_calls"], parameters)


def redo_without_input(run: Run, connection: Connection, source_ids: Sequence[str], stage: ResultStage) -> None:
    """The lake lost what the stage before made: forget that stage, so that the next attempt computes it from the file's bytes."""
    if source_ids:
        connection.execute("DELETE FROM stage_state WHERE stage = %s AND source_id = ANY(%s::uuid[])", [stage, list(source_ids)])
        claims.abandon_attempts(connection, run.run_id, source_ids, now=now())


def partition_of(sources: pl.DataFrame) -> dict[str, str]:
    """source_id -> partition key."""
    return dict(zip(sources["source_id"], sources["partition_key"], strict=True))
