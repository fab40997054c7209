"""What the service answers, as types; a test holds them against its OpenAPI description, which says what each field means."""

from typing import Any, Literal, NotRequired, TypedDict


class Trace(TypedDict):
    """Why a hit stands where it stands (`RetrievalTrace`)."""

    semantic_rank: int | None
    semantic_score: float | None
    bm25_rank: int | None
    bm25_score: float | None
    fused_score: float
    fused_rank: int
    rerank_score: float | None
    rerank_delta: int | None
    final_rank: int


class Place(TypedDict):
    """Another place at which a passage stands (`Place`)."""

    chunk_id: str
    doc_id: str
    source_id: str
    source_path: str
    char_start: int
    char_end: int
    page_start: int | None
    page_end: int | None


class Hit(TypedDict):
    """A passage with all that is needed to cite it (`Hit`)."""

    chunk_id: str
    chunk_ids: list[str]
    doc_id: str
    source_id: str
    publication_id: int
    source_path: str
    workspace: str
    title: str
    file_type: str
    content: str
    context: str | None
    char_start: int
    char_end: int
    start_line: int
    end_line: int
    page_start: int | None
    page_end: int | None
    section_path: list[str]
    chunk_type: str
    n_tokens: int
    extraction: str
    also_at: list[Place]
    score: float
    trace: Trace | None


class SearchAnswer(TypedDict):
    """Hits, best first (`SearchAnswer`)."""

    query: str
    method: str
    searched: list[str]
    hits: list[Hit]
    degraded: list[str]


class Source(TypedDict):
    """A document of the library with its status (`SourceBody`)."""

    source_id: str
    source_path: str
    workspace: str
    kind: str
    title: str
    doc_id: str | None
    content_hash: str | None
    status: Literal["pending", "processing", "ready", "failed", "cancelled"]
    stage: str | None
    progress: float | None
    error_code: str | None
    error_message: str | None
    failure: str | None
    warning_code: str | None
    retry_at: str | None
    presence: str
    deletion_intent: str | None
    excluded: bool
    file_type: str
    size: int | None
    n_pages: int | None
    n_chars: int | None
    n_chunks: int | None
    parser: str | None
    used_ocr: bool | None
    file_modified_at: str | None
    ingested_at: str | None
    updated_at: str
    media_type: str | None
    container_id: str | None
    container_path: str | None


class Document(Source):
    """A document with those that lie in it (`DocumentBody`)."""

    contained: list[Source]


class DocumentList(TypedDict):
    """A page of documents, by path (`SourceList`)."""

    documents: list[Source]
    next_cursor: str | None


class Chunk(TypedDict):
    """A published chunk (`ChunkBody`)."""

    chunk_id: str
    chunk_index: int
    publication_id: int
    content: str
    context: str | None
    contextualized_content: str
    char_start: int
    char_end: int
    start_line: int
    end_line: int
    page_start: int | None
    page_end: int | None
    section_path: list[str]
    chunk_type: str
    n_tokens: int
    text_hash: str
    extraction: str


class ChunkList(TypedDict):
    """The chunks of a document (`ChunkList`)."""

    doc_id: str
    source_id: str
    chunks: list[Chunk]


class Problem(TypedDict):
    """Why a request was refused (`Problem`)."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    remedy: str
    request_id: NotRequired[str | None]
    present_doc_id: NotRequired[str | None]
    source_id: NotRequired[str | None]
    expected: NotRequired[int | None]
    invalid: NotRequired[list[dict[str, str]] | None]


class Event(TypedDict):
    """A server-sent event of `POST /api/chat`."""

    name: Literal["retrieval", "token", "reasoning", "citations", "done", "error"]
    data: dict[str, Any]


Scope = dict[str, Any]
"""Where to look, as `ScopeBody` describes it."""
