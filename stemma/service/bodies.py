"""What requests carry and operations return, beside the search answer; one name per thing, the same as in SQL and on the command line."""

from datetime import datetime
from typing import Annotated, Any, cast
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from stemma.lexical.index import Scope
from stemma.library.listing import Status
from stemma.retrieval.passages import Shape
from stemma.retrieval.question import SearchRequest
from stemma.retrieval.scope import EVERYWHERE, LAST_PAGE, is_storable, without_unstorable
from stemma.store.rows import AssetStage


def cleaned(value: object) -> object:
    """A string without what no text can hold; anything else as it is."""
    return without_unstorable(value) if isinstance(value, str) else value


def _storable(values: object) -> object:
    """Without the values that nothing stored can equal; cut short, they could come to mean something else."""
    if not isinstance(values, list):
        return values
    return [value for value in cast(list[object], values) if not isinstance(value, str) or is_storable(value)]


# Both before pydantic looks: JSON may carry lone surrogates, which no str of pydantic may hold.
Text = Annotated[str, BeforeValidator(cleaned)]
Names = Annotated[list[str], BeforeValidator(_storable)]


class PageRange(BaseModel):
    """Pages, slides or sheets, numbered from 1."""

    model_config = ConfigDict(extra="forbid")

    first: int = Field(1, strict=True)
    last: int | None = Field(None, strict=True, description="Included; null: to the end.")

    def pages(self) -> tuple[int, int]:
        """First and last."""
        return self.first, LAST_PAGE if self.last is None else self.last


class ScopeBody(BaseModel):
    """Where to look; values of a part are joined by OR, the parts by AND. An absent or null part restricts nothing, an empty list matches
    nothing."""

    model_config = ConfigDict(extra="forbid")  # a misspelt restriction must not become none

    workspaces: Names | None = Field(None, description="Keys of workspaces.")
    folders: Names | None = Field(None, description="Folders relative to the library; each stands for its subtree.")
    documents: Names | None = Field(None, description="source_ids or doc_ids.")
    file_types: Names | None = Field(None, description="Extensions without the dot.")
    document_types: Names | None = Field(None, description="FILE, NOTE, ARTIFACT or THREAD_DAY.")
    languages: Names | None = Field(None, description="ISO 639-1 codes; an empty one stands for what has no known language.")
    pages: list[PageRange] | None = Field(None, description="Passages that touch one of these; formats without pages have none.")
    sections: Names | None = Field(None, description="Headings, as they are written; passages below one of them, however deep.")
    modified_from: datetime | None = Field(None, description="By the document's own clock, its file's mtime; without a zone, UTC.")
    modified_before: datetime | None = Field(None, description="Excluded.")
    ingested_from: datetime | None = Field(None, description="By the clock of the ingest.")
    ingested_before: datetime | None = Field(None, description="Excluded.")

    def scope(self) -> Scope:
        """The scope that a search takes."""
        parts = {name: _as_tuple(part) for name, part in self if name != "pages"}
        return Scope(**parts, pages=None if self.pages is None else tuple(pages.pages() for pages in self.pages))


def _as_tuple(part: Any) -> Any:
    return tuple(cast(list[str], part)) if isinstance(part, list) else part


class ShapeBody(BaseModel):
    """How ranked chunks become passages. By default each chunk is a passage of its own."""

    model_config = ConfigDict(extra="forbid")

    merge: bool = Field(False, strict=True, description="Chunks that follow each other in a document become one passage.")
    fold: bool = Field(False, strict=True, description="Equal texts become one passage, which lists the other places in `also_at`.")
    diversity: float = Field(
        0.0, description="0 to 1: how much likeness to better passages, and being of their document, counts against relevance."
    )
    max_tokens: int | None = Field(None, strict=True, description="Tokens of all passages together; what does not fit is passed over.")


class SearchBody(BaseModel):
    """A search."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"query": "how often are backups tested", "method": "hybrid", "k": 5},
                {
                    "query": "holiday carry-over",
                    "k": 10,
                    "scope": {
                        "workspaces": ["handbook"],
                        "folders": None,
                        "file_types": ["pdf", "docx"],
                        "modified_from": "2024-01-01T00:00:00Z",
                    },
                    "shape": {"merge": True, "fold": True, "max_tokens": 2000},
                },
            ]
        },
    )

    query: Text = Field(description="Plain words; no character of it is an operator unless `operators` says so. At most 10,000 characters.")
    method: Text | None = Field(None, description="semantic, bm25, hybrid, reranked, hyde or expanded; null: the setting RETRIEVAL_METHOD.")
    k: int = Field(
        10,
        strict=True,
        description="Passages wanted, 1 to 1000, counted after neighbours were merged and duplicates folded.",
        json_schema_extra={"minimum": 1, "maximum": 1000},
    )
    scope: ScopeBody | None = None
    operators: bool = Field(
        False,
        strict=True,
        description='Read the query as `+needed -unwanted "as it stands" begin*` in the keyword arm; without it no character is an operator.',
    )
    shape: ShapeBody | None = None

    def request(self) -> SearchRequest:
        """What the search is asked."""
        return SearchRequest(
            self.query,
            method=self.method,
            k=self.k,
            scope=self.scope.scope() if self.scope else EVERYWHERE,
            operators=self.operators,
            shape=Shape(**self.shape.model_dump()) if self.shape else Shape(),
        )


class Health(BaseModel):
    """Whether the service lives and whether it would answer a search."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"live": True, "ready": False, "reason": "loading the model"}]})

    live: bool
    ready: bool
    reason: str | None = Field(description="Why it is not ready; null when it is.")


class DocumentCounts(BaseModel):
    """Sources of the library."""

    total: int
    by_status: dict[str, int]
    by_stage: dict[str, int] = Field(description="Of those being processed.")


class WorkspaceStatus(BaseModel):
    """A workspace and its published documents."""

    key: str
    name: str
    n_documents: int


class EmbeddingIndexStatus(BaseModel):
    """Vectors of one model."""

    model_config = ConfigDict(from_attributes=True)

    embedding_index_id: int
    model: str
    dimension: int
    n_chunks: int = Field(description="Published chunks.")
    n_covered: int = Field(description="Those of them that have their vector.")


class SparseIndexStatus(BaseModel):
    """A keyword index."""

    model_config = ConfigDict(from_attributes=True)

    sparse_index_id: int
    backend: str
    name: str
    incomplete_since: datetime | None = Field(
        description="Since when it is being made again, and full-text search answers in its place; null when it is whole."
    )
    n_documents: int = Field(description="Published documents with chunks.")
    n_covered: int = Field(description="Those of them whose entries it holds.")


class IndexesStatus(BaseModel):
    """What searches read, null before the first ingest, and what is being built beside it."""

    embedding: EmbeddingIndexStatus | None
    sparse: SparseIndexStatus | None
    building_embedding: list[EmbeddingIndexStatus]
    building_sparse: list[SparseIndexStatus]


class ScanStatus(BaseModel):
    """The latest walk of the library."""

    scan_id: int
    state: str
    n_seen: int
    n_new: int
    n_changed: int
    n_vanished: int
    n_renamed: int
    started_at: datetime
    finished_at: datetime | None


class Links(BaseModel):
    """Addresses beside this service."""

    dagster: str


class StatusReport(BaseModel):
    """What the library and the corpus look like now."""

    documents: DocumentCounts
    workspaces: list[WorkspaceStatus]
    indexes: IndexesStatus
    epoch: int
    scan: ScanStatus | None
    notices: list[str] = Field(description="What the last look at the library found worth your attention, a sentence each.")
    links: Links


class SourceBody(BaseModel):
    """A source with its status; what describes the document is that of the live version, null while there is none."""

    model_config = ConfigDict(from_attributes=True)

    source_id: UUID = Field(description="The document across edits and renames.")
    source_path: str = Field(description="Path relative to the library.")
    workspace: str
    kind: str = Field(description="file, note, artifact, thread_day, or contained: an attachment or a member of an archive.")
    title: str = Field(description="The document's title, or the file's name.")
    doc_id: str | None = Field(description="The live version.")
    content_hash: str | None = Field(description="sha256 of the file's bytes, as hashed last.")
    status: Status
    stage: str | None = Field(description="Where it is while processing, or where it failed.")
    progress: float | None = Field(description="Of the last attempt, 0 to 1.")
    error_code: str | None = Field(description="Stable; why it failed.")
    error_message: str | None
    failure: str | None = Field(description="How the last attempt failed, as a sentence: its number, stage, code and duration.")
    warning_code: str | None
    retry_at: datetime | None
    presence: str = Field(description="present, missing or detached.")
    deletion_intent: str | None = Field(description="Not null while it is being deleted.")
    excluded: bool = Field(
        description="Deleted with its file kept: not brought back until its bytes change or `stemma ingest PATH` names it."
    )
    file_type: str
    size: int | None = Field(description="Bytes.")
    n_pages: int | None
    n_chars: int | None
    n_chunks: int | None
    parser: str | None
    used_ocr: bool | None
    file_modified_at: datetime | None
    ingested_at: datetime | None
    updated_at: datetime
    media_type: str | None = Field(description="Of a contained document, as its container says.")
    container_id: UUID | None = Field(description="source_id of the mail or archive that holds it.")
    container_path: str | None


class DocumentBody(SourceBody):
    """A source with the documents that lie in it: attachments of a mail, members of an archive."""

    contained: list[SourceBody] = Field(description="By path; what lies in one of these, its own answer says.")


class SourceList(BaseModel):
    """A page of sources, by path."""

    documents: list[SourceBody]
    next_cursor: str | None = Field(description="Give it as `cursor` to get the next page; null after the last.")


class ChunkBody(BaseModel):
    """A published chunk. Offsets count code points; ends are exclusive."""

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


class ChunkList(BaseModel):
    """The chunks of a document, in the order of its text."""

    doc_id: str
    source_id: str
    chunks: list[ChunkBody]


class AssetBody(BaseModel):
    """A table or figure of a published document. Offsets count code points; ends are exclusive."""

    asset_index: int
    kind: str = Field(description="table or figure.")
    page: int | None
    char_start: int
    char_end: int
    caption: str | None
    sha256: str | None = Field(description="Of the figure's picture, where one is kept: `/assets/{asset_index}/picture` is it.")
    mime_type: str | None
    width: int | None = Field(description="Pixels.")
    height: int | None = Field(description="Pixels.")


class AssetList(BaseModel):
    """The tables and figures of a document, in the order of its text."""

    doc_id: str
    source_id: str
    assets: list[AssetBody]


class DeleteBody(BaseModel):
    """What to delete; the parts add up, and an empty request deletes nothing."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"documents": ["0f8fad5b-d9cb-469f-a165-70867728950e", "5c0b7a4e21f09d83"], "remove_file": False},
                {"folders": ["handbook/old"], "expected": 12},
            ]
        },
    )

    documents: Names = Field(default_factory=list, description="source_ids, or doc_ids of live versions.")
    folders: Names = Field(default_factory=list, description="Folders relative to the library, each with its subtree; needs `expected`.")
    workspaces: Names = Field(default_factory=list, description="Keys of workspaces; needs `expected`.")
    remove_file: bool = Field(
        False, strict=True, description="Remove the files from the library too; without it they stay and are not read again."
    )
    dry_run: bool = Field(False, strict=True, description="Delete nothing; `selected` has what would be.")
    expected: int | None = Field(
        None, strict=True, description="How many documents this deletes, as a dry run says; a wrong number deletes nothing."
    )


class NamedSource(BaseModel):
    """A document of a deletion."""

    model_config = ConfigDict(from_attributes=True)

    source_id: UUID
    source_path: str


class FailedDeletion(NamedSource):
    """A document that is out of every search, but whose file could not be removed."""

    error_code: str
    error_message: str


class DeletionBody(BaseModel):
    """What became of each document that was selected, by path. When this is answered, none of them is found by any search."""

    selected: list[NamedSource]
    deleted: list[NamedSource] = Field(default_factory=list[NamedSource], description="Gone from the corpus and from the list.")
    excluded: list[NamedSource] = Field(
        default_factory=list[NamedSource], description="Gone from the corpus; the file stays, and so does the entry in the list."
    )
    changed: list[NamedSource] = Field(
        default_factory=list[NamedSource], description="Of those deleted: the file had been changed and stays, as a new document."
    )
    failed: list[FailedDeletion] = Field(
        default_factory=list[FailedDeletion], description="The file could not be removed; it is tried again."
    )
    pending: list[NamedSource] = Field(default_factory=list[NamedSource], description="Another process is carrying the deletion out.")
    not_found: list[str] = Field(default_factory=list[str], description="Names that stand for nothing that is left to delete.")


class FolderBody(BaseModel):
    """A folder of the library that holds documents."""

    path: str = Field(description="Relative to the library; as a scope's `folders` takes it.")
    parent: str | None = Field(description="The path of the folder above; null for a first folder.")
    name: str
    workspace: str = Field(description="Key.")
    depth: int = Field(description="1 for a first folder.")
    n_documents: int = Field(description="In its subtree, whatever their status.")
    n_ready: int = Field(description="Of them, those that searches find.")


class FolderList(BaseModel):
    """The folders of the library, each above what it holds."""

    folders: list[FolderBody]


class StaleKind(BaseModel):
    """Documents that are stale in the same way."""

    stage: AssetStage = Field(description="The first stage that has to be done again.")
    reason: str
    waits_for: str | None = Field(
        description="null: taken as soon as a run is free; else run, retry, change, walk, file, wish, backfill or deletion."
    )
    documents: int


class LayerBody(BaseModel):
    """A stage of the corpus over the whole library."""

    model_config = ConfigDict(from_attributes=True)

    asset: AssetStage
    sources: int = Field(description="Documents of the library.")
    stale: int = Field(description="Those of which this stage, or one above it, is out of date.")
    stale_from_here: int = Field(description="Those of which it is the first that is.")
    reasons: dict[str, int]
    sentence: str


class StaleDocument(BaseModel):
    """A document that is not up to date."""

    source_id: UUID
    source_path: str
    partition_key: str
    stage: AssetStage
    reason: str
    waits_for: str | None


class StaleReport(BaseModel):
    """What is not what its file and the wanted settings give."""

    stale: int
    kinds: list[StaleKind]
    layers: list[LayerBody]
    documents: list[StaleDocument] = Field(description="A page, by path.")
    next_cursor: str | None = Field(description="Give it as `cursor` to get the next page; null after the last.")


class IngestBody(BaseModel):
    """What to bring up to date; the parts of the selection are joined by AND, an absent one restricts nothing."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{}, {"paths": ["handbook"], "reingest": True}, {"made_by": {"parser": "pdfium"}}]},
    )

    paths: Names | None = Field(None, description="Files or folders relative to the library; a folder stands for its subtree.")
    workspace: Text | None = Field(None, description="Key of a workspace.")
    made_by: dict[str, Text] = Field(
        default_factory=dict[str, str], description="parser, parser_version, chunker, embedding_model: make again whatever this made."
    )
    stage: AssetStage | None = Field(None, description="Only what is stale from this stage on; with `reingest`, where to begin again.")
    reingest: bool = Field(False, description="Make it again, from the bytes or from `stage` on, whatever is already known.")


class Accepted(BaseModel):
    """What was asked for."""

    documents: int
    asked_at: datetime


class ExportBody(BaseModel):
    """What to export."""

    model_config = ConfigDict(extra="forbid")

    label: Text | None = Field(None, description="A part of the bundle's name; such a bundle is always made, and kept by the retention.")
    with_files: bool = Field(False, description="Take along the files that the documents were made of.")
    with_conversations: bool = Field(False, description="Take along the conversations, with evidence and quotes.")
    force: bool = Field(False, description="Also when nothing changed since the last bundle.")


class RestoreBody(BaseModel):
    """How to restore."""

    model_config = ConfigDict(extra="forbid")

    replace: bool = Field(False, description="Has to be true unless it is a dry run: everything that is published is replaced.")
    into_empty: bool = Field(False, description="Only if no document is published.")
    with_conversations: bool = Field(False, description="Bring back the bundle's conversations too; one that is here stays as it is.")
    dry_run: bool = Field(False, description="Prove the bundle, and say what would become of the corpus.")


class DifferenceBody(BaseModel):
    """A setting, or a stage's code or model, that is otherwise here than where the bundle was made."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    bundle: str
    here: str


class BundleBody(BaseModel):
    """A bundle, or what lies among them and is none."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    size_bytes: int
    verdict: str = Field(description="`ok`, `bundle_invalid`, `bundle_incompatible` or `bundle_locked`; rows are judged by a verification.")
    field: str | None = Field(description="What the verdict is about.")
    reason: str | None
    locked: bool = Field(description="Encrypted: `stemma restore --passphrase-file` restores it.")
    format: str | None
    created_at: str | None
    documents: int | None
    chunks: int | None
    embedding_model: str | None
    embedding_dim: int | None
    stale: bool | None = Field(description="Whether something was stale when it was made.")
    drift: list[DifferenceBody] = Field(description="What would be stale after a restore, and why.")


class WorkBody(BaseModel):
    """Work on bundles."""

    model_config = ConfigDict(from_attributes=True)

    kind: str
    bundle: str | None
    state: str = Field(description="`running`, `done` or `failed`.")
    begun_at: datetime
    done: int = Field(description="Bytes of an export, documents of a restore.")
    whole: int
    ended_at: datetime | None
    result: dict[str, object] | None = Field(description="What it did, as the command's `--json` says it.")
    code: str | None
    message: str | None


class BackupList(BaseModel):
    """The bundles, and the work on them that was begun last."""

    bundles: list[BundleBody]
    work: WorkBody | None
