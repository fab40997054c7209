"""The rows of every table as pydantic models: the schema as Python sees it. A test holds them against the migrated catalogue.

A column that a model lacks, or the other way round, a `None` that the column cannot be, or another closed set of values is drift, and
the next migration has to bring both together.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any, ClassVar, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

Json = dict[str, Any] | list[Any]
Vector = list[float]
AssetStage = Literal["documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus"]
AttemptStage = Literal["queued", "parsing", "chunking", "contextualizing", "embedding", "indexing", "publishing"]
IndexState = Literal["building", "active", "retired"]


class Row(BaseModel):
    """A row of `table`, with a field per column in the column's order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    table: ClassVar[str]


class AppSetting(Row):
    """An override of a setting, or, under a key with an underscore, a note of Stemma's own."""

    table = "app_settings"

    key: str
    value: str
    updated_at: datetime


class Attempt(Row):
    """One try to bring one source up to date; the open one is the claim."""

    table = "attempts"

    attempt_id: int
    source_id: UUID
    attempt_number: int
    batch_id: UUID
    run_id: str | None
    state: Literal["queued", "running", "succeeded", "failed", "abandoned", "interrupted", "cancelled", "launch_failed"]
    stage: AttemptStage
    reason: str
    wanted_version: str
    from_stage: str | None
    progress: float
    publication_id: int | None
    n_parsed: int
    n_contexts: int
    n_embedded: int
    error_code: str | None
    error_message: str | None
    n_requests: int
    queued_at: datetime
    requested_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    bound_under: str | None


class Chunk(Row):
    """A published retrieval unit: an exact slice of its document's text, and what is searched of it."""

    table = "chunks"

    publication_id: int
    chunk_index: int
    chunk_id: str
    doc_id: str
    original_index: int
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
    chunk_type: Literal["prose", "table", "code", "formula"]
    n_tokens: int
    text_hash: str
    input_hash: str
    metadata: Json
    content_tsv: str | None
    created_at: datetime


class CachedContext(Row):
    """A context that a model wrote, by everything it depends on."""

    table = "context_cache"

    key: str
    context: str
    model: str
    created_at: datetime
    last_used_at: datetime


class Citation(Row):
    """A quote of an answer, in the coordinates of the document's version that it was taken from; the references are soft."""

    table = "citations"

    message_id: str
    position: int
    marker: str
    chunk_id: str
    doc_id: str
    source_id: UUID
    source_deleted_at: datetime | None
    source_path: str
    title: str
    page_start: int | None
    page_end: int | None
    section_path: list[str]
    quote: str
    quote_char_start: int
    quote_char_end: int


class Conversation(Row):
    """What was asked and answered on one subject, and where answers are looked for."""

    table = "conversations"

    conversation_id: str
    workspace_id: int
    group_id: str | None
    title: str
    source_scope: Json | None
    """None: the whole library; empty: nothing."""
    document_ids: list[UUID]
    deleted_document_ids: list[UUID]
    document_id: UUID | None
    """The source, where the scope is exactly one and it was not deleted."""
    cloud_id: int | None
    agent_session_id: str | None
    history_start_message_id: str | None
    history_start_turn_index: int | None
    created_at: datetime
    updated_at: datetime


class ConversationGroup(Row):
    """A folder of conversations."""

    table = "conversation_groups"

    group_id: str
    name: str
    created_at: datetime


class CorpusState(Row):
    """The one row that says what is active; every publication locks it."""

    table = "corpus_state"

    corpus_state_id: int
    epoch: int
    active_embedding_index: int | None
    active_sparse_index: int | None


class DocumentAsset(Row):
    """A table or figure, addressed by offsets into its document's text."""

    table = "document_assets"

    publication_id: int
    asset_index: int
    kind: Literal["table", "figure"]
    page: int | None
    char_start: int
    char_end: int
    caption: str | None
    picture: str | None


class Figure(Row):
    """A picture of a file's, by its place in the bytes; without a hash, there is none that can be shown."""

    table = "figures"

    content_hash: str
    picture: str
    revision: int
    sha256: str | None
    mime_type: str | None
    width: int | None
    height: int | None
    made_at: datetime


class Document(Row):
    """A published document: its text, how it was made, and by which recipe."""

    table = "documents"

    publication_id: int
    doc_id: str
    source_id: UUID
    workspace_id: int
    source_path: str
    source: str
    file_name: str
    file_type: str
    document_type: Literal["FILE", "NOTE", "ARTIFACT", "THREAD_DAY"]
    content_hash: str | None
    title: str
    text: str
    blocks: bytes
    pages: bytes
    document_metadata: Json
    parser: str
    parser_version: str
    chunker: str
    extraction: Literal["text", "ocr", "ocr_fallback"]
    used_ocr: bool
    ocr_pages: list[int]
    warning_code: str | None
    n_chars: int
    n_pages: int
    n_chunks: int
    parsing_fingerprint: str
    chunking_fingerprint: str
    contextualizing_fingerprint: str
    document_output_hash: str
    output_hash: str
    run_id: str
    file_created_at: datetime | None
    file_modified_at: datetime | None
    ingested_at: datetime
    language: str
    """ISO 639-1; empty: not known."""


class CachedEmbedding(Row):
    """The vector of one exact string under one frozen spec."""

    table = "embedding_cache"

    spec_hash: str
    input_hash: str
    embedding: Vector
    created_at: datetime
    last_used_at: datetime


class EmbeddingIndex(Row):
    """One way of turning text into vectors, with a vector table of its own."""

    table = "embedding_indexes"

    embedding_index_id: int
    spec: Json
    spec_hash: str
    dimension: int
    vector_table: str
    state: IndexState
    created_at: datetime
    location: str | None
    """The value of EMBEDDING_MODEL that opens its model on this machine."""
    retired_at: datetime | None


class Folder(Row):
    """A folder of the library, derived from paths."""

    table = "folders"

    folder_id: int
    workspace_id: int
    parent_id: int | None
    name: str
    name_key: str
    disk_name: str
    depth: int
    role: Literal["library", "evidence", "target", "playbook"]
    state: Literal["ready", "deleting", "placeholder", "trashed"]
    trash_kind: Literal["user", "vanished"] | None
    trashed_at: datetime | None
    created_at: datetime
    updated_at: datetime


class Message(Row):
    """A question, or an answer with how it was made."""

    table = "messages"

    message_id: str
    conversation_id: str
    turn_index: int
    role: Literal["user", "assistant", "system"]
    content: str
    content_parts: Json
    created_at: datetime
    completed_at: datetime | None
    retrieval_method: str | None
    latency_ms: Json | None
    reasoning: str | None
    condensed_query: str | None
    chat_engine: str | None
    target_corpus: Literal["rag", "graph"] | None
    graph_evidence: Json | None
    model: str | None
    degraded: list[str]
    n_quotes_dropped: int


class MessageSource(Row):
    """Evidence of an answer, as it was shown; the references are soft."""

    table = "message_sources"

    message_id: str
    rank: int
    chunk_id: str
    source_id: UUID | None
    source_deleted_at: datetime | None
    trace: Json


class OriginalIndexCounter(Row):
    """The next number that no chunk ever had."""

    table = "original_index_counter"

    original_index_counter_id: int
    next: int


class Publication(Row):
    """A version of a source, from the moment its making begins until nothing of it is left."""

    table = "publications"

    publication_id: int
    source_id: UUID
    doc_id: str | None
    source_path: str
    run_id: str
    content_hash: str | None
    output_hash: str | None
    n_chunks: int | None
    first_original_index: int | None
    state: Literal["pending", "live", "superseded", "abandoned", "retired"]
    created_at: datetime
    published_at: datetime | None
    superseded_at: datetime | None


class RetiredPartition(Row):
    """A partition key of a source that is gone, kept in Dagster for a while."""

    table = "retired_partitions"

    partition_key: str
    retired_at: datetime


class RunSettings(Row):
    """The settings that a run froze at its start."""

    table = "run_settings"

    run_id: str
    settings: Json
    fingerprints: Json
    epoch: int
    created_at: datetime


class Scan(Row):
    """A walk of the library."""

    table = "scans"

    scan_id: int
    library: str
    state: Literal["walking", "complete", "abandoned"]
    cursor: bytes | None
    n_seen: int
    n_new: int
    n_changed: int
    n_vanished: int
    n_renamed: int
    skipped: Json
    unlistable: Json
    started_at: datetime
    finished_at: datetime | None


class AppliedMigration(Row):
    """A migration that this database has."""

    table = "schema_migrations"

    name: str
    sha256: str
    applied_at: datetime


class Source(Row):
    """A file of the library, or what stands in for one: what was seen, what was hashed, and what is being done."""

    table = "sources"

    source_id: UUID
    workspace_id: int
    folder_id: int | None
    kind: Literal["file", "note", "artifact", "thread_day", "contained"]
    source_path: str
    partition_key: str
    disk_path: bytes | None
    file_type: str
    seen_size: int | None
    seen_mtime_ns: int | None
    seen_inode: Decimal | None
    seen_device: Decimal | None
    last_seen_scan: int | None
    first_seen_scan: int | None
    rename_hash: str | None
    hashed_size: int | None
    hashed_mtime_ns: int | None
    hashed_inode: Decimal | None
    hashed_device: Decimal | None
    hashed_at: datetime | None
    content_hash: str | None
    presence: Literal["present", "missing", "detached"]
    missing_since: datetime | None
    missing_scans: int
    deletion_intent: Literal["keep_file", "remove_file", "vanished"] | None
    deletion_step: Literal["marked", "sparse_removed", "file_removed"] | None
    excluded_hash: str | None
    wanted_stage: AssetStage | None
    last_publication_id: int
    status: Literal["pending", "processing", "ready", "failed", "cancelled"]
    stage: Literal["uploading", "queued", "parsing", "chunking", "contextualizing", "embedding", "indexing", "publishing"] | None
    error_code: str | None
    error_message: str | None
    warning_code: str | None
    failed_version: str | None
    n_failures: int
    retry_at: datetime | None
    dedup_key: str | None
    file_created_at: datetime | None
    file_modified_at: datetime | None
    created_at: datetime
    updated_at: datetime
    wished_at: datetime | None
    wished_version: str | None
    container_id: UUID | None
    file_id: UUID | None
    member_path: str | None
    media_type: str | None
    member_hash: str | None
    listed_output: str | None


class SourceRoot(Row):
    """Where files of a workspace lie: its folder of the library, which every workspace has, or a folder elsewhere."""

    table = "source_roots"

    root_id: int
    workspace_id: int
    kind: Literal["managed", "linked"]
    name: str
    name_key: str
    disk_path: str
    state: Literal["ready", "deleting", "scanning", "unavailable", "paused"]
    created_at: datetime
    updated_at: datetime


class SparseCoverage(Row):
    """A keyword index that holds the entries of a publication."""

    table = "sparse_coverage"

    publication_id: int
    sparse_index_id: int
    n_entries: int


class SparseIndex(Row):
    """A keyword index: its engine, its name and the settings it was built with."""

    table = "sparse_indexes"

    sparse_index_id: int
    backend: Literal["tantivy", "elasticsearch"]
    name: str
    fingerprint: str
    state: IndexState
    created_at: datetime
    retired_at: datetime | None
    incomplete_since: datetime | None
    """Null: searches may read it. Else the active one is being made again, and full-text search answers."""
    language: str
    """Whose stems and stop words it was made with."""


class StageResult(Row):
    """Where the result of a piece of work lies in the lake, by everything it depends on."""

    table = "stage_results"

    stage: Literal["documents", "chunks", "contextualized_chunks"]
    key: str
    fingerprint: str
    output_hash: str
    object: str
    last_used_at: datetime


class StageState(Row):
    """What a stage of a source was last made from, by which recipe, with which result."""

    table = "stage_state"

    source_id: UUID
    stage: AssetStage
    input_version: str
    fingerprint: str
    output_hash: str
    result_key: str
    run_id: str
    updated_at: datetime


class Workspace(Row):
    """A first folder of the library, or `default` for files at its root."""

    table = "workspaces"

    workspace_id: int
    key: str
    name: str
    cloud_id: int | None
    has_unkeyed_imported_threads: bool
    created_at: datetime
    updated_at: datetime


ROWS: dict[str, type[Row]] = {row.table: row for row in Row.__subclasses__()}
"""Table -> its model, for every table that the migrations make."""
