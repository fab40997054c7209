"""Chunks: the retrieval units of each document, addressed by exact offsets into its text."""

import hashlib
import json

import polars as pl

from stemma.chunking.chunk import chunk_document
from stemma.chunking.frame import CHUNK_SCHEMA
from stemma.chunking.promises import broken_promises
from stemma.chunking.tokenizer import minilm_token_counter
from stemma.errors import DocumentError, InvalidChunks
from stemma.library import claims
from stemma.parsing.document import ParsedDocument
from stemma.stages.run import Run, StageOutcome, Version, handed_over, now, partition_of, record, redo_without_input
from stemma.store.lake import MissingObject
from stemma.store.stage_results import StageResult, find_results, read_results, result_key, store_results

CHUNK_FRAME = pl.Schema({"key": pl.String, **CHUNK_SCHEMA})


def chunk_documents(run: Run, sources: pl.DataFrame) -> StageOutcome:
    """Chunk what was not chunked before under this recipe.

    The key of a result is the output hash of the document and the chunking fingerprint.
    """
    with run.pool.connection() as connection:
        documents = handed_over(run, connection, sources, "documents")
        redo_without_input(run, connection, [i for i in sources["source_id"] if i not in documents], "documents")
        keys = {source_id: result_key(document.output_hash, run.wanted.chunking) for source_id, document in documents.items()}
        forced = {keys[i] for i, wanted in sources.select("source_id", "wanted_stage").iter_rows() if wanted == "chunks" and i in keys}
        found = find_results(connection, run.lake, "chunks", [key for key in keys.values() if key not in forced], now=now())
    work = {keys[source_id]: document for source_id, document in documents.items() if keys[source_id] not in found}
    try:
        frames, broken = _chunk(run, work)
    except MissingObject:
        with run.pool.connection() as connection:
            redo_without_input(run, connection, list(documents), "documents")
        return StageOutcome({}, {})
    paths = dict(sources.select("source_id", "source_path").iter_rows())
    failures: dict[str, DocumentError] = {i: InvalidChunks(paths[i], broken[key]) for i, key in keys.items() if key in broken}
    counts = {key: frame.height for key, frame in frames.items()}
    stored = pl.concat(
        [frame.with_columns(pl.lit(key).alias("key")).select("key", pl.exclude("key")) for key, frame in frames.items()]
        or [CHUNK_FRAME.to_frame()]
    )
    with run.pool.connection() as connection:
        outputs = {key: chunks_hash(frame) for key, frame in frames.items()}
        results = found | store_results(connection, run.lake, "chunks", stored, outputs, fingerprint=run.wanted.chunking, now=now())
        rows = {
            source_id: (document.output_hash, results[keys[source_id]].output_hash, keys[source_id])
            for source_id, document in documents.items()
            if keys[source_id] in results
        }
        held = record(run, connection, "chunks", run.wanted.chunking, rows)
        claims.fail_attempts(connection, run.run_id, "chunking", failures, run.settings, now=now())
    partitions = partition_of(sources)
    return StageOutcome(
        {
            partitions[source_id]: Version(output, {"reused": key in found} | ({"chunks": counts[key], "tokens": int(frames[key]["n_tokens"].sum())} if key in counts else {}))
            for source_id, (_, output, key) in rows.items()
            if source_id in held
        },
        {partitions[source_id]: error for source_id, error in failures.items()},
    )  # fmt: skip


def _chunk(run: Run, work: dict[str, StageResult]) -> tuple[dict[str, pl.DataFrame], dict[str, str]]:
    """Key of the chunks -> frame (CHUNK_SCHEMA), and key -> the broken promise of those that must not be published."""
    if not work:
        return {}, {}
    settings = run.settings
    count_tokens = minilm_token_counter()
    documents = read_results(run.lake, work.values(), ["document"])
    text_of = dict(documents.unique("key").select("key", "document").iter_rows())
    frames: dict[str, pl.DataFrame] = {}
    broken: dict[str, str] = {}
    for key, result in work.items():
        if result.key not in text_of:
            raise MissingObject(result.object)
        document = ParsedDocument.from_json(text_of[result.key])
        frame = chunk_document(
            document,
            strategy=settings.chunking_strategy,
            size=settings.chunk_size,
            overlap=settings.chunk_overlap,
            count_tokens=count_tokens,
        )
        if problems := broken_promises(document.text, frame):
            broken[key] = problems[0]
        else:
            frames[key] = frame
    return frames, broken


def chunks_hash(chunks: pl.DataFrame) -> str:
    """sha256 (hex) over every column of a CHUNK_SCHEMA frame, row by row: the data version of the chunks."""
    digest = hashlib.sha256()
    for row in chunks.select(list(CHUNK_SCHEMA)).iter_rows():
        digest.update(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return digest.hexdigest()
