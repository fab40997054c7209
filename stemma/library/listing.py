"""Listing: every source with its status, and the source that an id stands for."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import RequestError
from stemma.library.contained import MAX_PER_FILE
from stemma.store.postgres import Connection

_DOC_ID = re.compile(r"[0-9a-f]{16}")

Status = Literal["pending", "processing", "ready", "failed", "cancelled"]


class UnknownDocument(RequestError):
    """No source or document has this id."""

    code, remedy = "unknown_document", "`stemma documents` lists every document with its id."


class SupersededDocument(RequestError):
    """The doc_id is that of an older version of a document."""

    code, remedy = "superseded_document", "Ask for the present version."

    def __init__(self, doc_id: str, source_id: UUID, present_doc_id: str) -> None:
        super().__init__(doc_id, source_id, present_doc_id)
        self.doc_id, self.source_id, self.present_doc_id = doc_id, source_id, present_doc_id

    def __str__(self) -> str:
        return f"{self.doc_id} was superseded by {self.present_doc_id}. {self.remedy}"


@dataclass(frozen=True)
class SourceRow:
    """One source; what describes the document is that of the live version, and None while there is none."""

    source_id: UUID
    source_path: str
    workspace: str
    """Key."""
    kind: Literal["file", "note", "artifact", "thread_day", "contained"]
    partition_key: str
    doc_id: str | None
    content_hash: str | None
    """Of the bytes hashed last, which the live version may be older than."""
    status: Status
    stage: str | None
    error_code: str | None
    error_message: str | None
    warning_code: str | None
    retry_at: datetime | None
    presence: Literal["present", "missing", "detached"]
    deletion_intent: Literal["keep_file", "remove_file", "vanished"] | None
    """Not None while it is being deleted."""
    excluded: bool
    """Deleted with its file kept: out of the corpus until its bytes change or it is asked for by its path."""
    title: str
    """The document's, or the file's name."""
    file_type: str
    size: int | None
    """Bytes, as last seen."""
    n_pages: int | None
    n_chars: int | None
    n_chunks: int | None
    parser: str | None
    used_ocr: bool | None
    file_modified_at: datetime | None
    ingested_at: datetime | None
    attempt_number: int | None
    progress: float | None
    """Of the last attempt, in 0..1."""
    updated_at: datetime
    failure: str | None
    """How the last attempt failed, as a sentence: its number, stage, code and duration."""
    media_type: str | None
    """Of a contained document, as its container says."""
    container_id: UUID | None
    """The source of the mail or archive that holds it."""
    container_path: str | None


def list_sources(
    connection: Connection, *, status: Status | None = None, workspace: str | None = None, folder: str | None = None,
    after: str | None = None, limit: int,
) -> tuple[list[SourceRow], str | None]:  # fmt: skip
    """A page of at most `limit` (>= 1) sources by path, and the cursor of the next page, None after the last.

    Args:
        workspace: key.
        folder: relative to the library, with all below it; "" is the whole library.
        after: the cursor that the page before gave; a source that comes or goes meanwhile moves no other across pages.
    """
    rows = _rows(connection, status=status, workspace=workspace, folder=folder or None, after=after, limit=limit + 1)
    page = rows[:limit]
    return page, page[-1].source_path if len(rows) > limit else None


def contained_sources(connection: Connection, source_id: UUID) -> list[SourceRow]:
    """What lies in a mail or archive, by path; not what lies in that again."""
    return _rows(connection, container_id=source_id, limit=MAX_PER_FILE)


def count_by_status(connection: Connection) -> dict[str, int]:
    """Status -> number of sources; a status that no source has is absent."""
    return dict(connection.execute(load_queries("library")["count_by_status"]).fetchall())


def content_hashes(connection: Connection) -> dict[str, str]:
    """Partition key -> sha256 (hex) of the bytes as hashed last, of every source that was hashed."""
    return dict(connection.execute("SELECT partition_key, content_hash FROM sources WHERE content_hash IS NOT NULL").fetchall())


def source_of(connection: Connection, document: str) -> SourceRow:
    """The source that a source_id or the doc_id of a live document stands for.

    Raises:
        SupersededDocument: a doc_id that was live once, of a source that is live under another.
        UnknownDocument: any other id.
    """
    source_id = _source_id(document) or _live_source(connection, document)
    rows = _rows(connection, source_id=source_id, limit=1)
    if not rows:
        raise UnknownDocument(f"No document has the id {document!r}")
    return rows[0]


def _live_source(connection: Connection, doc_id: str) -> UUID:
    queries, well_formed = load_queries("library"), _DOC_ID.fullmatch(doc_id)
    row = connection.execute(queries["published_under"], {"doc_id": doc_id}).fetchone() if well_formed else None
    if row is None or row[1] is None:
        raise UnknownDocument(f"No document has the id {doc_id!r}")
    source_id, present_doc_id = row
    if present_doc_id != doc_id:
        raise SupersededDocument(doc_id, source_id, present_doc_id)
    return source_id


def _source_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _rows(
    connection: Connection, *, status: str | None = None, workspace: str | None = None, folder: str | None = None, after: str | None = None,
    source_id: UUID | None = None, container_id: UUID | None = None, limit: int,
) -> list[SourceRow]:  # fmt: skip
    parameters = {
        "status": status,
        "workspace": workspace,
        "folder": folder,
        "after": after,
        "source_id": source_id,
        "container_id": container_id,
        "limit": limit,
    }
    with connection.cursor(row_factory=class_row(SourceRow)) as cursor:
        return cursor.execute(load_queries("library")["list_sources"], parameters).fetchall()
