"""The record of one chunk, complete and valid before it is written: stored whole in `chunks.metadata`, mirrored in typed columns."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


def chunk_id(doc_id: str, chunk_index: int) -> str:
    """The address of a chunk of one version of a document."""
    return f"{doc_id}::{chunk_index}"


class ChunkRecord(BaseModel):
    """Immutable facts of the ingest; nothing computed by a query is ever stored here."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    doc_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    chunk_id: str
    original_index: int = Field(ge=0)
    chunk_index: int = Field(ge=0)
    source: str
    """Absolute path of the file when it was read: provenance, never identity."""
    source_path: str
    file_name: str
    file_type: str
    page: int | None
    """First page that contributed text; null for formats without pages."""
    content: str
    context: str | None
    contextualized_content: str
    char_start: int = Field(ge=0)
    char_end: int = Field(gt=0)
    start_line: int = Field(ge=1)
    end_line: int = Field(ge=1)
    page_start: int | None
    page_end: int | None
    section_path: list[str]
    heading_path: str | None
    """`section_path` joined by " > "; null without structure."""
    chunk_type: Literal["prose", "table", "code", "formula"]
    chunk_size: int
    chunk_overlap: int
    chunking_strategy: str
    embedding_model: str
    n_tokens: int = Field(ge=0)
    token_counter: str
    content_hash: str | None
    """sha256 of the file's bytes; null for what is no file."""
    text_hash: str
    extraction: Literal["text", "ocr", "ocr_fallback"]
    created_at: datetime
    file_created_at: datetime | None
    file_modified_at: datetime | None
