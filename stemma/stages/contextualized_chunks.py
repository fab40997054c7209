"""Contextualized chunks: the exact strings that are embedded and indexed."""

import hashlib
import json

import polars as pl

from stemma.chunking.frame import CHUNK_SCHEMA, CONTEXT_SCHEMA
from stemma.context.contextualize import contextualize
from stemma.failpoints import reach
from stemma.stages.run import (
    Fact,
    Run,
    StageOutcome,
    Version,
    found_before,
    handed_over,
    keyed,
    now,
    partition_of,
    record,
    redo_without_input,
)
from stemma.store.lake import MissingObject
from stemma.store.stage_results import StageResult, read_results, result_key, store_results

PREVIEW_CHARS = 1_000

CONTEXT_FRAME = pl.Schema({"key": pl.String, **CONTEXT_SCHEMA})


def contextualize_chunks(run: Run, sources: pl.DataFrame) -> StageOutcome:
    """Situate the chunks that were not situated before under this recipe.

    The key of a result is the output hash of the chunks, the document's title and the contextualizing fingerprint.
    """
    with run.pool.connection() as connection:
        documents = handed_over(run, connection, sources, "documents")
        chunks = handed_over(run, connection, sources, "chunks")
        redo_without_input(run, connection, [i for i in sources["source_id"] if i not in chunks or i not in documents], "chunks")
    ready = [i for i in sources["source_id"] if i in chunks and i in documents]
    try:
        titles = _titles(run, [documents[i] for i in ready])
        keys = {i: result_key(chunks[i].output_hash, titles[documents[i].key] or "", run.wanted.contextualizing) for i in ready}
        with run.pool.connection() as connection:
            found = found_before(run, connection, sources, "contextualized_chunks", keys)
        work = {keys[i]: (chunks[i], titles[documents[i].key]) for i in ready if keys[i] not in found}
        frames = _situate(run, work)
    except MissingObject:
        with run.pool.connection() as connection:
            redo_without_input(run, connection, ready, "documents")
        return StageOutcome({}, {})
    stored = keyed(frames, CONTEXT_FRAME)
    with run.pool.connection() as connection:
        outputs = {key: contexts_hash(work[key][0].output_hash, frame) for key, frame in frames.items()}
        fingerprint = run.wanted.contextualizing
        results = found | store_results(connection, run.lake, "contextualized_chunks", stored, outputs, fingerprint=fingerprint, now=now())
        rows = {i: (chunks[i].output_hash, results[keys[i]].output_hash, keys[i]) for i in ready}
        held = record(run, connection, "contextualized_chunks", fingerprint, rows)
    reach("contexts.recorded")
    partitions = partition_of(sources)
    return StageOutcome(
        {partitions[i]: Version(output, {"reused": key in found, "method": run.settings.contextualizer} | (_describe(frames[key]) if key in frames else {})) for i, (_, output, key) in rows.items() if i in held},
        {},
    )  # fmt: skip


def _describe(contexts: pl.DataFrame) -> dict[str, Fact]:
    """What a person may want to know of the contexts (CONTEXT_SCHEMA) of a document."""
    if contexts.is_empty():
        return {"contexts": 0}
    return {
        "contexts": contexts.height - contexts["context"].null_count(),
        "preview": contexts["contextualized_content"][0][:PREVIEW_CHARS],
    }


def _titles(run: Run, documents: list[StageResult]) -> dict[str, str | None]:
    """Key of the document -> the title that its content states, or None."""
    if not documents:
        return {}
    titles = dict(read_results(run.lake, documents, ["title"]).unique("key").select("key", "title").iter_rows())
    if missing := [document.object for document in documents if document.key not in titles]:
        raise MissingObject(missing[0])
    return titles


def _situate(run: Run, work: dict[str, tuple[StageResult, str | None]]) -> dict[str, pl.DataFrame]:
    """Key of the contexts -> frame (CONTEXT_SCHEMA)."""
    if not work:
        return {}
    chunks = read_results(run.lake, {result.key: result for result, _ in work.values()}.values())
    chunks = chunks.match_to_schema({"key": pl.String, **CHUNK_SCHEMA}, missing_columns="insert")  # an earlier release had fewer
    return {
        key: contextualize(
            chunks.filter(pl.col("key") == result.key).drop("key").sort("chunk_index"), method=run.settings.contextualizer, title=title
        )
        for key, (result, title) in work.items()
    }


def contexts_hash(chunks_output: str, contexts: pl.DataFrame) -> str:
    """sha256 (hex) over the hash of the chunks and every context in order: the data version of the contextualized chunks."""
    digest = hashlib.sha256(chunks_output.encode())
    for row in contexts.select("chunk_index", "context").iter_rows():
        digest.update(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()
