"""What requests about the library's files, workspaces and settings carry and return."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from stemma.service.bodies import Text, cleaned


class UploadedFile(BaseModel):
    """What became of one file."""

    name: str = Field(description="As it was sent.")
    outcome: Literal["stored", "duplicate", "refused"] = Field(
        description="duplicate: the folder holds the same bytes; nothing was stored."
    )
    source_id: UUID | None = Field(default=None, description="The document, or the one that was there.")
    source_path: str | None = None
    code: str | None = Field(default=None, description="Why it was refused.")
    message: str | None = None


class UploadReport(BaseModel):
    """What became of each file, in the order in which they were sent."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "files": [
                        {
                            "name": "travel.md",
                            "outcome": "stored",
                            "source_id": "0f8fad5b-d9cb-469f-a165-70867728950e",
                            "source_path": "handbook/travel.md",
                        },
                        {"name": "..", "outcome": "refused", "code": "unsafe_path", "message": "'..' is no name."},
                    ]
                }
            ]
        }
    )

    files: list[UploadedFile]


Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), BeforeValidator(cleaned)]


class WorkspaceBody(BaseModel):
    """A workspace with what it holds."""

    model_config = ConfigDict(from_attributes=True)

    key: str = Field(description="Its first folder; `default` is that of files at the root.")
    name: str
    created_at: datetime
    updated_at: datetime
    n_sources: int
    n_documents: int = Field(description="Published.")


class WorkspaceList(BaseModel):
    """Every workspace, by name."""

    workspaces: list[WorkspaceBody]


class WorkspaceName(BaseModel):
    """What a workspace is called."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "Handbook"}]})

    name: Name = Field(description="1 to 200 characters after trimming.")


class RootBody(BaseModel):
    """Where files of a workspace lie."""

    model_config = ConfigDict(from_attributes=True)

    root_id: int
    kind: Literal["managed", "linked"] = Field(description="managed: a folder of the library.")
    name: str
    disk_path: str = Field(description="Of a managed root, relative to the library; empty: the library's own files.")
    state: str


class RootList(BaseModel):
    """The roots of a workspace, the managed one first."""

    roots: list[RootBody]


class NewRoot(BaseModel):
    """A folder elsewhere on disk."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "Shared drive", "disk_path": "/srv/shared"}]})

    name: Name
    disk_path: Text


class PageBody(BaseModel):
    """A page, slide or sheet: the stretch of the text that it contributed."""

    number: int = Field(description="From 1.")
    char_start: int
    char_end: int
    label: str | None = Field(default=None, description="The sheet's name.")


class PageList(BaseModel):
    """The pages of a document; empty for formats without pages."""

    doc_id: str
    pages: list[PageBody]


class PagePreview(PageBody):
    """A page with its text; it is read from the corpus, so that it is there whether or not the file is."""

    doc_id: str
    text: str
    chunk_ids: list[str] = Field(description="The chunks that touch it.")


class TitleHit(BaseModel):
    """A document whose title resembles what was asked."""

    source_id: UUID
    doc_id: str
    title: str
    source_path: str
    workspace: str
    similarity: float = Field(description="Share of the query's trigrams that its title or file name has.")


class TitleHits(BaseModel):
    """Documents by title, best first."""

    documents: list[TitleHit]


class SettingBody(BaseModel):
    """A setting as it is now."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    value: Any
    source: Literal["default", "env", "override"]
    stage: str = Field(description="What a change touches.")
    description: str
    allowed: str
    overridable: bool = Field(description="Whether a patch may change it; the others come from the environment alone.")


class WorkEstimate(BaseModel):
    """What bringing everything up to date costs."""

    model_config = ConfigDict(from_attributes=True)

    documents: int
    by_stage: dict[str, int] = Field(description="Stage that the work begins at -> documents.")
    runs: int
    chunks: int
    parse_calls: int
    context_calls: int
    embed_calls: int
    seconds: float | None = Field(description="From what the latest runs took; null before the first.")
    exact: list[str] = Field(description="Names of the numbers that are no estimates.")


class SettingsReport(BaseModel):
    """Every setting, and what is stale by them."""

    settings: list[SettingBody]
    stale: int = Field(description="Documents that these settings, or their files, have made out of date.")
    cost: WorkEstimate = Field(description="Of bringing them up to date.")


class SettingsPatch(BaseModel):
    """Settings to override, validated together before any is stored."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"settings": {"CHUNK_SIZE": 600, "CHUNK_OVERLAP": 80}, "dry_run": True}, {"settings": {"CHUNK_SIZE": None}}]
        },
    )

    settings: dict[Text, Text | int | float | bool | None] = Field(
        description="Name -> value; null: what the environment or the default says."
    )
    dry_run: bool = Field(False, strict=True, description="Store nothing; the report is of what would be.")


class LibraryProgress(BaseModel):
    """How many documents have each status."""

    by_status: dict[str, int]
