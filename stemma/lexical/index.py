"""The interface of a keyword index: entries addressed by chunk and publication, so that a live version is never overwritten."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import polars as pl

ENTRY_SCHEMA = pl.Schema(
    {
        "chunk_id": pl.String,
        "publication_id": pl.Int64,
        "source_id": pl.String,
        "doc_id": pl.String,
        "original_index": pl.Int64,
        "workspace": pl.String,  # key
        "folders": pl.List(pl.String),  # every folder above the file, e.g. ["a", "a/b"]
        "file_type": pl.String,
        "document_type": pl.String,
        "language": pl.String,  # "" when unknown
        "file_modified_at": pl.Datetime("us", "UTC"),
        "ingested_at": pl.Datetime("us", "UTC"),
        "page_start": pl.Int64,  # null for formats without pages, as page_end
        "page_end": pl.Int64,
        "sections": pl.List(pl.String),  # the headings above the passage, outermost first
        "content": pl.String,
        "contextualized_content": pl.String,
    }
)

HIT_SCHEMA = pl.Schema({"chunk_id": pl.String, "publication_id": pl.Int64, "score": pl.Float64})
"""Best first; ties by chunk_id."""


@dataclass(frozen=True)
class Scope:
    """Where a search looks. None restricts nothing; an empty tuple matches nothing; values of a part are joined by OR, the parts by AND."""

    workspaces: tuple[str, ...] | None = None
    """Workspace keys."""
    folders: tuple[str, ...] | None = None
    """Folders relative to the library, without a slash at the end; each stands for its whole subtree."""
    documents: tuple[str, ...] | None = None
    """source_ids or doc_ids."""
    file_types: tuple[str, ...] | None = None
    """Extensions without the dot, lower case."""
    document_types: tuple[str, ...] | None = None
    """Values of `documents.document_type`, upper case."""
    languages: tuple[str, ...] | None = None
    """Values of `documents.language`: ISO 639-1 codes, lower case; "" is what has no known language."""
    pages: tuple[tuple[int, int], ...] | None = None
    """First and last page, slide or sheet, from 1; a passage that touches one of them matches, one without pages does not."""
    sections: tuple[str, ...] | None = None
    """Headings; a passage matches that has one of them in its `section_path`, whatever its depth."""
    modified_from: datetime | None = None
    """Documents whose own clock, `documents.file_modified_at`, is at this moment or later; those without one do not match."""
    modified_before: datetime | None = None
    ingested_from: datetime | None = None
    """Documents that came into the corpus, `documents.ingested_at`, at this moment or later."""
    ingested_before: datetime | None = None


class LexicalIndex(Protocol):
    """One keyword index. Every write is committed, and visible to the next search, when the call returns."""

    def add(self, entries: pl.DataFrame) -> None:
        """Write entries (ENTRY_SCHEMA); an entry of the same chunk and publication is replaced."""
        ...

    def remove(self, publication_ids: Sequence[int]) -> None:
        """Remove every entry of these publications; unknown ones are no error."""
        ...

    def search(self, query: str, *, k: int, scope: Scope, offset: int = 0, operators: bool = False) -> pl.DataFrame:
        """The entries (HIT_SCHEMA) ranked offset+1 to offset+k of all that match.

        The query is data, never syntax, unless `operators` asks for `stemma.lexical.query_language`.
        """
        ...

    def publications(self) -> dict[int, int]:
        """publication_id -> number of entries, of everything in the index."""
        ...

    def close(self) -> None:
        """Release what is open; the index stays usable by others."""
        ...
