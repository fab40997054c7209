"""The chunks of a batch as the last stages need them: read from the lake, joined, with the hash of what a reader would see."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from stemma.library.claims import OpenSource
from stemma.stages.run import Run, handed_over, redo_without_input
from stemma.store.lake import MissingObject
from stemma.store.stage_results import StageResult, read_results


@dataclass(frozen=True)
class Situated:
    """The contextualized chunks of each source of a batch that has them."""

    documents: Mapping[str, StageResult]
    """source_id -> the document."""
    contexts: Mapping[str, StageResult]
    """source_id -> the contextualized chunks."""
    frames: Mapping[str, pl.DataFrame]
    """source_id -> CHUNK_SCHEMA without `table_header`, which the context has said, joined with CONTEXT_SCHEMA, by chunk_index."""

    def output_hash(self, source: OpenSource) -> str:
        """sha256 (hex) of everything that a reader would see; staleness.sql computes the same."""
        outputs = self.documents[source.source_id].output_hash, self.contexts[source.source_id].output_hash
        return reader_hash(source.source_path, source.content_hash, *outputs)


def reader_hash(source_path: str, content_hash: str | None, document_output: str, contexts_output: str) -> str:
    """sha256 (hex) of the lines path, bytes, document and contexts; what is null has no line."""
    return hashlib.sha256(
        "\n".join(part for part in (source_path, content_hash, document_output, contexts_output) if part is not None).encode()
    ).hexdigest()


def situated_chunks(run: Run, sources: pl.DataFrame) -> Situated:
    """Read what the batch's stages made; sources whose results are gone are dropped and made stale from there."""
    with run.pool.connection() as connection:
        documents = handed_over(run, connection, sources, "documents")
        chunks = handed_over(run, connection, sources, "chunks")
        contexts = handed_over(run, connection, sources, "contextualized_chunks")
        ready = [i for i in sources["source_id"] if i in documents and i in chunks and i in contexts]
        redo_without_input(run, connection, [i for i in sources["source_id"] if i not in ready], "contextualized_chunks")
    if not ready:
        return Situated({}, {}, {})
    try:
        chunk_rows = read_results(run.lake, {chunks[i].key: chunks[i] for i in ready}.values()).drop("table_header", strict=False)
        context_rows = read_results(run.lake, {contexts[i].key: contexts[i] for i in ready}.values())
    except MissingObject:
        with run.pool.connection() as connection:
            redo_without_input(run, connection, ready, "documents")
        return Situated({}, {}, {})
    chunks_of = {str(key): frame.drop("key") for (key,), frame in chunk_rows.partition_by("key", as_dict=True).items()}
    contexts_of = {str(key): frame.drop("key") for (key,), frame in context_rows.partition_by("key", as_dict=True).items()}
    frames = {
        i: chunks_of.get(chunks[i].key, chunk_rows.drop("key").clear())
        .join(contexts_of.get(contexts[i].key, context_rows.drop("key").clear()), on="chunk_index", how="left", maintain_order="left")
        .sort("chunk_index")
        for i in ready
    }
    return Situated({i: documents[i] for i in ready}, {i: contexts[i] for i in ready}, frames)
