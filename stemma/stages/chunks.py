"""Chunks: the retrieval units of each document, addressed by exact offsets into its text."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import polars as pl

from stemma.chunking.chunk import chunk_document
from stemma.chunking.frame import CHUNK_SCHEMA
from stemma.chunking.promises import broken_promises
from stemma.chunking.tokenizer import minilm_tokenizer
from stemma.embedding.embedder import Embedder, EmbeddingSpec
from stemma.embedding.models import embedding_spec
from stemma.embedding.sentence_transformers_embedder import UnsoundVector
from stemma.errors import DocumentError, EmbeddingMissing, InvalidChunks
from stemma.failpoints import reach
from stemma.library import claims
from stemma.parsing.document import ParsedDocument
from stemma.stages.run import (
    Fact,
    Run,
    StageOutcome,
    Version,
    count_calls,
    found_before,
    handed_over,
    keyed,
    now,
    partition_of,
    record,
    redo_without_input,
)
from stemma.stages.sentence_vectors import CachedEmbed
from stemma.store.lake import MissingObject
from stemma.store.stage_results import StageResult, read_results, result_key, store_results

PREVIEW_CHUNKS, PREVIEW_CHARS = 5, 200

CHUNK_FRAME = pl.Schema({"key": pl.String, **CHUNK_SCHEMA})


def chunk_documents(run: Run, sources: pl.DataFrame, *, embedder_of: Callable[[EmbeddingSpec], Embedder]) -> StageOutcome:
    """Chunk what was not chunked before under this recipe.

    The key of a result is the output hash of the document and the chunking fingerprint.

    Args:
        embedder_of: the model of a spec, loaded at its first use; `semantic` alone asks it, for sentences that no cache holds.
    """
    with run.pool.connection() as connection:
        documents = handed_over(run, connection, sources, "documents")
        redo_without_input(run, connection, [i for i in sources["source_id"] if i not in documents], "documents")
        keys = {source_id: result_key(document.output_hash, run.wanted.chunking) for source_id, document in documents.items()}
        found = found_before(run, connection, sources, "chunks", keys)
    work = {keys[source_id]: document for source_id, document in documents.items() if keys[source_id] not in found}
    try:
        chunked = _chunk(run, work, embedder_of)
    except MissingObject:
        with run.pool.connection() as connection:
            redo_without_input(run, connection, list(documents), "documents")
        return StageOutcome({}, {})
    paths = dict(sources.select("source_id", "source_path").iter_rows())
    failures: dict[str, DocumentError] = {
        i: chunked.refusals[key](paths[i], chunked.details[key]) for i, key in keys.items() if key in chunked.refusals
    }
    frames = chunked.frames
    first_of = {key: i for i, key in reversed(keys.items())}  # sentences that several documents share are counted for the first
    stored = keyed(frames, CHUNK_FRAME)
    with run.pool.connection() as connection:
        outputs = {key: chunks_hash(frame) for key, frame in frames.items()}
        results = found | store_results(connection, run.lake, "chunks", stored, outputs, fingerprint=run.wanted.chunking, now=now())
        rows = {
            source_id: (document.output_hash, results[keys[source_id]].output_hash, keys[source_id])
            for source_id, document in documents.items()
            if keys[source_id] in results
        }
        held = record(run, connection, "chunks", run.wanted.chunking, rows)
        count_calls(run, connection, embedded={first_of[key]: n for key, n in chunked.embedded.items()})
        claims.fail_attempts(connection, run.run_id, "chunking", failures, run.settings, now=now())
    reach("chunks.recorded")
    partitions = partition_of(sources)
    return StageOutcome(
        {
            partitions[source_id]: Version(output, {"reused": key in found, "strategy": run.settings.chunking_strategy} | (_describe(frames[key]) if key in frames else {}))
            for source_id, (_, output, key) in rows.items()
            if source_id in held
        },
        {partitions[source_id]: error for source_id, error in failures.items()},
    )  # fmt: skip


def _describe(chunks: pl.DataFrame) -> dict[str, Fact]:
    """What a person may want to know of the chunks (CHUNK_SCHEMA) of a document."""
    if chunks.is_empty():
        return {"chunks": 0, "tokens": 0}
    tokens = chunks["n_tokens"]
    beginnings = [" ".join(content[:PREVIEW_CHARS].split()) for content in chunks["content"].head(PREVIEW_CHUNKS)]
    return {
        "chunks": chunks.height,
        "tokens": int(tokens.sum()),
        "longest_chunk_tokens": int(cast("int", tokens.max())),
        "preview": "\n".join(f"{number}: {beginning}" for number, beginning in enumerate(beginnings)),
    }


@dataclass(frozen=True)
class _Chunked:
    """What came of the work, by the key of the chunks."""

    frames: dict[str, pl.DataFrame] = field(default_factory=dict[str, pl.DataFrame])
    """CHUNK_SCHEMA."""
    refusals: dict[str, type[DocumentError]] = field(default_factory=dict[str, type[DocumentError]])
    """What is wrong with those that have no chunks fit to publish."""
    details: dict[str, str] = field(default_factory=dict[str, str])
    """The same in words."""
    embedded: dict[str, int] = field(default_factory=dict[str, int])
    """How many sentences the model was asked for."""


def _chunk(run: Run, work: dict[str, StageResult], embedder_of: Callable[[EmbeddingSpec], Embedder]) -> _Chunked:
    chunked = _Chunked()
    if not work:
        return chunked
    settings = run.settings
    tokenizer = minilm_tokenizer()
    embed = CachedEmbed(run, embedding_spec(settings.embedding_model), embedder_of) if settings.chunking_strategy == "semantic" else None
    documents = read_results(run.lake, work.values(), ["document"])
    text_of = dict(documents.unique("key").select("key", "document").iter_rows())
    for key, result in work.items():
        if result.key not in text_of:
            raise MissingObject(result.object)
        document = ParsedDocument.from_json(text_of[result.key])
        embedded_before = embed.n_embedded if embed else 0
        try:
            frame = chunk_document(
                document,
                strategy=settings.chunking_strategy,
                size=settings.chunk_size,
                overlap=settings.chunk_overlap,
                tokenizer=tokenizer,
                embed=embed,
            )
        except UnsoundVector as error:
            chunked.refusals[key] = EmbeddingMissing
            chunked.details[key] = f"{settings.embedding_model} gives no sound vector for {len(error.positions)} of its sentences"
            continue
        if embed:
            chunked.embedded[key] = embed.n_embedded - embedded_before
        if problems := broken_promises(document.text, frame):
            chunked.refusals[key], chunked.details[key] = InvalidChunks, problems[0]
        else:
            chunked.frames[key] = frame
    return chunked


def chunks_hash(chunks: pl.DataFrame) -> str:
    """sha256 (hex) over every column of a CHUNK_SCHEMA frame, row by row: the data version of the chunks."""
    digest = hashlib.sha256()
    for row in chunks.select(list(CHUNK_SCHEMA)).iter_rows():
        digest.update(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()
