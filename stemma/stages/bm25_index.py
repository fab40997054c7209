"""BM25 index: keyword entries of each publication, written before it goes live and never over a live one."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from stemma.failpoints import reach
from stemma.lexical.errors import DocumentNotIndexed, EntriesRefused
from stemma.lexical.index import ENTRY_SCHEMA, LexicalIndex
from stemma.library.claims import OpenSource, open_source_rows
from stemma.library.paths import document_id, folders_of
from stemma.parsing.language import language_of
from stemma.stages.keyword_rebuild import replace_lost_indexes
from stemma.stages.run import PUBLISHED_ANEW, Run, StageOutcome, Version, now, partition_of, record, wished_for
from stemma.stages.situated import Situated, situated_chunks
from stemma.store.chunk_record import chunk_id
from stemma.store.postgres import autocommitted, explained
from stemma.store.publications import live_publications, reserve_original_indexes
from stemma.store.sparse_coverage import covered_publications, record_coverage
from stemma.store.sparse_indexes import Recipe, SparseIndex, ensure_sparse_index, open_sparse_indexes
from stemma.store.stage_results import result_key


@dataclass(frozen=True)
class _Target:
    """The publication whose entries a source needs in an index: its new one, or the live one if nothing that a reader sees changed."""

    publication_id: int
    first_original_index: int


@explained()
def index_chunks(run: Run, sources: pl.DataFrame, *, index_of: Callable[[SparseIndex], LexicalIndex]) -> StageOutcome:
    """Write the entries of the batch to every keyword index that is active or building, one commit each, and record the coverage.

    Args:
        index_of: opens the engine of an index.
    """
    situated = situated_chunks(run, sources)
    with autocommitted(run.pool) as connection:
        recipe = Recipe(backend=run.settings.bm25_backend, fingerprint=run.wanted.bm25, language=run.settings.bm25_language)
        replace_lost_indexes(connection, index_of, recipe)  # a writer would begin a lost one anew, and it would pass for whole
        ensure_sparse_index(connection, **recipe)
        indexes = open_sparse_indexes(connection)
    targets = _targets(run, sources, situated)
    held_sources = {source.source_id: source for source in open_source_rows(sources)}
    entries_of = {i: _entries(held_sources[i], situated.frames[i], target) for i, target in targets.items()}
    written = dict.fromkeys(targets, 0)
    refused: dict[str, str] = {}
    for index in indexes:
        uncovered = [i for i in _uncovered(run, index, targets) if i not in refused]
        frames = [entries_of[source_id] for source_id in uncovered]
        if any(not frame.is_empty() for frame in frames):
            try:
                with contextlib.closing(index_of(index)) as engine:
                    engine.add(pl.concat(frames))
            except EntriesRefused as error:
                refused |= {i: error.reasons[p] for i in uncovered if (p := targets[i].publication_id) in error.reasons}
                uncovered = [i for i in uncovered if i not in refused]
            reach("keywords.committed")
        with run.pool.connection() as connection:
            record_coverage(connection, index, {targets[i].publication_id: entries_of[i].height for i in uncovered}, now=now())
        reach("coverage.recorded")
        for source_id in uncovered:
            written[source_id] += entries_of[source_id].height
    rows = {
        i: (situated.contexts[i].output_hash, result_key(situated.output_hash(held_sources[i])), "") for i in targets if i not in refused
    }
    with run.pool.connection() as connection:
        held = record(run, connection, "bm25_index", run.wanted.bm25, rows)
    partitions = partition_of(sources)
    return StageOutcome(
        {partitions[i]: Version(output, {"entries": entries_of[i].height, "written": written[i]}) for i, (_, output, _) in rows.items() if i in held},
        {partitions[i]: DocumentNotIndexed(held_sources[i].source_path, reason) for i, reason in refused.items()},
    )  # fmt: skip


def _targets(run: Run, sources: pl.DataFrame, situated: Situated) -> dict[str, _Target]:
    """source_id -> what to cover: the live publication where a reader would see no difference and none is wished. New publications get a block of original indexes, reserved for the batch at once."""
    ids = list(situated.frames)
    held_sources = {source.source_id: source for source in open_source_rows(sources)}
    with run.pool.connection() as connection:
        live = live_publications(connection, ids)
        anew = wished_for(sources, *PUBLISHED_ANEW)
        unchanged = {i for i in ids if i not in anew and i in live and live[i].output_hash == situated.output_hash(held_sources[i])}
        pending = {i: held_sources[i].publication_id for i in ids if i not in unchanged}
        firsts = reserve_original_indexes(connection, {pending[i]: situated.frames[i].height for i in pending})
    return {
        i: _Target(pending[i], firsts[pending[i]]) if i in pending else _Target(live[i].publication_id, live[i].first_original_index)
        for i in ids
    }


def _uncovered(run: Run, index: SparseIndex, targets: dict[str, _Target]) -> list[str]:
    with run.pool.connection() as connection:
        covered = covered_publications(connection, index, {target.publication_id for target in targets.values()})
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
        pl.lit("FILE").alias("document_type"),
        pl.lit(language_of(chunks["content"])).alias("language"),
        pl.lit(source.file_modified_at, ENTRY_SCHEMA["file_modified_at"]).alias("file_modified_at"),
        pl.lit(now(), ENTRY_SCHEMA["ingested_at"]).alias("ingested_at"),
        "page_start",
        "page_end",
        pl.col("section_path").alias("sections"),
        "content",
        "contextualized_content",
    ).cast(dict(ENTRY_SCHEMA))  # type: ignore[arg-type]
