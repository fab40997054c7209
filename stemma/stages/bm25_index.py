"""BM25 index: keyword entries of each publication, written before it goes live and never over a live one."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from stemma.lexical.index import ENTRY_SCHEMA, LexicalIndex
from stemma.library.claims import OpenSource, open_source_rows
from stemma.library.paths import chunk_id, document_id, folders_of
from stemma.stages.run import Run, StageOutcome, Version, now, partition_of, record
from stemma.stages.situated import Situated, situated_chunks
from stemma.store.publications import reserve_original_indexes
from stemma.store.sparse_indexes import SparseIndex, ensure_sparse_index, open_sparse_indexes
from stemma.store.stage_results import result_key


@dataclass(frozen=True)
class _Target:
    """The publication whose entries a source needs in an index: its new one, or the live one if nothing that a reader sees changed."""

    publication_id: int
    first_original_index: int


def index_chunks(run: Run, sources: pl.DataFrame, *, index_of: Callable[[SparseIndex], LexicalIndex]) -> StageOutcome:
    """Write the entries of the batch to every keyword index that is active or building, one commit each, and record the coverage.

    Args:
        index_of: opens the engine of an index.
    """
    situated = situated_chunks(run, sources)
    with run.pool.connection() as connection:
        ensure_sparse_index(connection, backend=run.settings.bm25_backend, fingerprint=run.wanted.bm25)
        indexes = open_sparse_indexes(connection)
    targets = _targets(run, sources, situated)
    held_sources = {source.source_id: source for source in open_source_rows(sources)}
    entries_of = {i: _entries(held_sources[i], situated.frames[i], target) for i, target in targets.items()}
    written = dict.fromkeys(targets, 0)
    for index in indexes:
        uncovered = _uncovered(run, index, targets)
        frames = [entries_of[source_id] for source_id in uncovered]
        if any(not frame.is_empty() for frame in frames):
            engine = index_of(index)
            engine.add(pl.concat(frames))
            engine.close()
        with run.pool.connection() as connection:
            connection.execute(
                """
                INSERT INTO sparse_coverage (publication_id, sparse_index_id, n_entries)
                SELECT c.publication_id, %s, c.n_entries FROM unnest(%s::bigint[], %s::integer[]) AS c (publication_id, n_entries)
                ON CONFLICT DO NOTHING
                """,
                [index.sparse_index_id, [targets[i].publication_id for i in uncovered], [entries_of[i].height for i in uncovered]],
            )
        for source_id in uncovered:
            written[source_id] += entries_of[source_id].height
    rows = {i: (situated.contexts[i].output_hash, result_key(situated.output_hash(held_sources[i])), "") for i in targets}
    with run.pool.connection() as connection:
        held = record(run, connection, "bm25_index", run.wanted.bm25, rows)
    partitions = partition_of(sources)
    return StageOutcome(
        {partitions[i]: Version(output, {"entries": entries_of[i].height, "written": written[i]}) for i, (_, output, _) in rows.items() if i in held},
        {},
    )  # fmt: skip


def _targets(run: Run, sources: pl.DataFrame, situated: Situated) -> dict[str, _Target]:
    """source_id -> what to cover. New publications get a block of original indexes, reserved for the batch at once."""
    ids = list(situated.frames)
    held_sources = {source.source_id: source for source in open_source_rows(sources)}
    with run.pool.connection() as connection:
        live = {
            source_id: (output_hash, _Target(publication_id, first))
            for source_id, output_hash, publication_id, first in connection.execute(
                """
                SELECT source_id::text, output_hash, publication_id, first_original_index
                  FROM publications WHERE state = 'live' AND source_id = ANY(%s::uuid[])
                """,
                [ids],
            ).fetchall()
        }
        targets = {i: live[i][1] for i in ids if i in live and live[i][0] == situated.output_hash(held_sources[i])}
        new = [i for i in ids if i not in targets]
        next_index = reserve_original_indexes(connection, sum(situated.frames[i].height for i in new))
        for i in new:
            targets[i] = _Target(held_sources[i].publication_id, next_index)
            next_index += situated.frames[i].height
        connection.execute(
            """
            UPDATE publications AS p SET first_original_index = t.first
              FROM unnest(%s::bigint[], %s::bigint[]) AS t (publication_id, first)
             WHERE p.publication_id = t.publication_id AND p.state = 'pending'
            """,
            [[targets[i].publication_id for i in new], [targets[i].first_original_index for i in new]],
        )
    return {i: targets[i] for i in ids}


def _uncovered(run: Run, index: SparseIndex, targets: dict[str, _Target]) -> list[str]:
    with run.pool.connection() as connection:
        covered = {
            publication_id
            for (publication_id,) in connection.execute(
                "SELECT publication_id FROM sparse_coverage WHERE sparse_index_id = %s AND publication_id = ANY(%s)",
                [index.sparse_index_id, [target.publication_id for target in targets.values()]],
            ).fetchall()
        }
    return [source_id for source_id, target in targets.items() if target.publication_id not in covered]


def _entries(source: OpenSource, chunks: pl.DataFrame, target: _Target) -> pl.DataFrame:
    document = document_id(source.source_path, source.content_hash or "")
    return chunks.select(
        pl.Series("chunk_id", [chunk_id(document, index) for index in chunks["chunk_index"]], dtype=pl.String),
        pl.lit(target.publication_id, pl.Int64).alias("publication_id"),
        pl.lit(source.source_id).alias("source_id"),
        pl.lit(document).alias("doc_id"),
        (pl.col("chunk_index").cast(pl.Int64) + target.first_original_index).alias("original_index"),
        pl.lit(source.workspace).alias("workspace"),
        pl.lit(pl.Series([folders_of(source.source_path)], dtype=pl.List(pl.String))).first().alias("folders"),
        pl.lit(source.file_type).alias("file_type"),
        pl.lit("").alias("language"),
        pl.lit(source.file_modified_at, ENTRY_SCHEMA["file_modified_at"]).alias("file_modified_at"),
        pl.lit(now(), ENTRY_SCHEMA["ingested_at"]).alias("ingested_at"),
        "content",
        "contextualized_content",
    ).cast(dict(ENTRY_SCHEMA))  # type: ignore[arg-type]
