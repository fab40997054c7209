"""Lineage: from a chunk, or a document, back to the bytes it came from and the settings that made it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from psycopg.rows import dict_row
from pydantic import BaseModel, Field

from sql import load_queries
from stemma.errors import MovedWhileReading, RequestError, UnreadableFile
from stemma.library.listing import source_of
from stemma.library.spool import hash_source
from stemma.settings import SETTINGS, Stage
from stemma.store.postgres import Connection

OnDisk = Literal["same", "changed", "gone", "unreadable", "contained"]


class UnknownChunk(RequestError):
    """The document has no chunk of this number."""

    code, remedy = "unknown_chunk", "`stemma show` with the document's id lists its chunks."


class NothingToTrace(RequestError):
    """The document has no published version, so that nothing in the corpus came from it."""

    code, remedy = "nothing_to_trace", "Its status says whether it is being processed or why it failed."


class TracedChunk(BaseModel):
    """A published chunk and its place in the text. Offsets count code points; ends are exclusive."""

    chunk_id: str
    chunk_index: int
    original_index: int = Field(description="Unique over all that was ever published.")
    content: str
    context: str | None = Field(description="What is put before it for search.")
    char_start: int
    char_end: int
    is_exact: bool = Field(description="Whether the text between the offsets is the content, compared just now.")
    start_line: int
    end_line: int
    page_start: int | None
    page_end: int | None
    section_path: list[str]
    chunk_type: str
    n_tokens: int
    text_hash: str = Field(description="sha256 of the content.")
    input_hash: str = Field(description="sha256 of the exact string that was embedded.")
    created_at: datetime


class TracedDocument(BaseModel):
    """The version that readers see, and its publication."""

    doc_id: str
    source_id: str = Field(description="The document across edits and renames.")
    title: str
    document_type: str
    n_chars: int
    n_chunks: int
    document_output_hash: str = Field(description="Of the parsed text with its blocks and pages.")
    output_hash: str = Field(description="Of everything that a reader sees.")
    publication_id: int
    published_at: datetime | None
    ingested_at: datetime
    partition_key: str = Field(description="Its partition in Dagster.")
    run_id: str = Field(description="The run that made this version, or found that it would make the same.")
    warning_code: str | None


class TracedFile(BaseModel):
    """The bytes that the text was read from."""

    source_path: str = Field(description="Path relative to the library.")
    content_hash: str = Field(description="sha256 of the bytes that were read.")
    on_disk: OnDisk = Field(description="What lies there now, hashed just now; `contained`: no file of its own, it lies in its container.")
    content_hash_on_disk: str | None = Field(
        description="sha256 of what lies there now; null when it could not be read, or lies in a container."
    )
    container_path: str | None = Field(description="Path of the mail or archive that it lies in; null for a file of its own.")


class TracedStage(BaseModel):
    """How one stage made its part."""

    stage: str
    fingerprint: str | None = Field(description="Of its settings, code and models; null when the run that knew it is not recorded here.")
    made_by: str = Field(description="In words: parser and version, strategy, model and revision, engine.")
    settings: dict[str, Any] = Field(description="As the run had frozen them.")


class Lineage(BaseModel):
    """Every step between a passage and the bytes it came from."""

    chunk: TracedChunk | None = Field(description="Null when a document was asked for.")
    document: TracedDocument
    file: TracedFile | None = Field(description="Null for what is no file.")
    recipe: list[TracedStage] = Field(description="From the bytes to the indexes, in this order.")


@dataclass(frozen=True)
class StoredLineage:
    """What the database knows of a lineage."""

    chunk: TracedChunk | None
    document: TracedDocument
    recipe: list[TracedStage]
    source_path: str
    content_hash: str | None
    """None for what is no file."""
    disk_path: bytes | None
    """None when no file was ever seen here, and of what lies in a container."""
    container_path: str | None
    """Of the mail or archive that it lies in; None for a file of its own."""

    def compared(self, library: Path) -> Lineage:
        """The whole lineage, the file hashed once more. It takes as long as reading the file: hold no transaction meanwhile."""
        return Lineage(chunk=self.chunk, document=self.document, file=self._file(library), recipe=self.recipe)

    def _file(self, library: Path) -> TracedFile | None:
        if self.content_hash is None:
            return None
        found: str | None = None
        state: OnDisk = "gone" if self.container_path is None else "contained"
        if self.disk_path is not None:
            try:
                found, _ = hash_source(library, self.disk_path, self.source_path)
                state = "same" if found == self.content_hash else "changed"
            except MovedWhileReading:
                state = "gone"
            except UnreadableFile:
                state = "unreadable"
        return TracedFile(
            source_path=self.source_path,
            content_hash=self.content_hash,
            on_disk=state,
            content_hash_on_disk=found,
            container_path=self.container_path,
        )


def trace(connection: Connection, identifier: str) -> StoredLineage:
    """The lineage of a chunk_id, a doc_id or a source_id, of the live version.

    Raises:
        UnknownDocument, SupersededDocument: as for the document that the id begins with.
        UnknownChunk: the live version has no chunk of this number.
        NothingToTrace: no version of the document is live.
    """
    document_id, separator, _ = identifier.rpartition("::")
    source = source_of(connection, document_id if separator else identifier)
    queries = load_queries("lineage")
    with connection.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(queries["trace_document"], {"source_id": source.source_id}).fetchone()
        if row is None:
            raise NothingToTrace(f"{source.source_path} is {source.status}")
        chunk = None
        if separator:
            chunk_id = f"{row['doc_id']}::{identifier.rpartition('::')[2]}"
            chunk = cursor.execute(queries["trace_chunk"], {"publication_id": row["publication_id"], "chunk_id": chunk_id}).fetchone()
            if chunk is None:
                raise UnknownChunk(f"{source.source_path} has no chunk {identifier}")
    return StoredLineage(
        chunk=TracedChunk(**chunk) if chunk else None,
        document=TracedDocument(**row),
        recipe=_recipe(row),
        source_path=row["source_path"],
        content_hash=row["content_hash"],
        disk_path=row["disk_path"],
        container_path=source.container_path,
    )


def _recipe(row: Mapping[str, Any]) -> list[TracedStage]:
    frozen: Mapping[str, Any] = row["settings"] or {}
    fingerprints: Mapping[str, str] = row["fingerprints"] or {}
    spec: Mapping[str, Any] = row["spec"] or {}
    made_by: dict[Stage, tuple[str | None, str]] = {
        "parsing": (row["parsing_fingerprint"], f"{row['parser']} {row['parser_version']}, from {_WORDS[row['extraction']]}"),
        "chunking": (row["chunking_fingerprint"], row["chunker"]),
        "contextualizing": (row["contextualizing_fingerprint"], str(frozen.get("CONTEXTUALIZER", "not recorded"))),
        "embedding": (
            fingerprints.get("embedding"),
            f"{spec['model']} revision {spec['revision'][:12]}, {spec['dimension']} dimensions, index {row['embedding_index_id']}"
            if spec
            else "no index",
        ),
        "bm25": (
            row["sparse_fingerprint"],
            f"{row['backend']} index {row['sparse_index']}, {row['n_entries'] or 0} entries" if row["backend"] else "no index",
        ),
    }
    return [
        TracedStage(
            stage=stage,
            fingerprint=fingerprint,
            made_by=words,
            settings={name: value for name, value in sorted(frozen.items()) if name in SETTINGS and SETTINGS[name].stage == stage},
        )
        for stage, (fingerprint, words) in made_by.items()
    ]


_WORDS = {"text": "its text", "ocr": "pictures by OCR", "ocr_fallback": "its text and, where it had none, by OCR"}
