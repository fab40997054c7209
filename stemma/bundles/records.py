"""The rows of a bundle as they must be: typed, complete, and confined to the library. A bundle is data of others, whoever wrote it."""

from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from stemma.bundles.errors import BundleInvalid
from stemma.library.paths import MAX_SOURCE_PATH_BYTES
from stemma.library.walk import is_reserved
from stemma.store.chunk_record import ChunkRecord
from stemma.store.rows import AssetStage

Record = TypeVar("Record", bound=BaseModel)


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("a NUL cannot be stored")
    return text


Text = Annotated[str, AfterValidator(_storable)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Integer = Annotated[int, Field(ge=-(2**31), lt=2**31)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
BigCount = Annotated[int, Field(ge=0, lt=2**62)]


def _confined(path: str) -> str:
    """A path below the library: what leads out of it, or into the folder of bundles, is refused as strictly as a member's name."""
    _storable(path)
    if len(path.encode()) > MAX_SOURCE_PATH_BYTES:
        raise ValueError("the path is too long")
    *_, last = components = path.replace("//", "/").split("/")
    if not last or any(part in ("", ".", "..") for part in components):
        raise ValueError("the path leads out of the library")
    if is_reserved(components[0].encode()):
        raise ValueError("the path leads into the reserved folder of bundles")
    return path


def _disk_path(text: str) -> str:
    parts = bytes.fromhex(text).split(b"/")
    if b"\0" in bytes.fromhex(text) or any(part in (b"", b".", b"..") for part in parts) or is_reserved(parts[0]):
        raise ValueError("the path leads out of the library")
    return text


DiskPath = Annotated[str, AfterValidator(_disk_path)]
"""Hexadecimal bytes, relative to the library."""


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class BundledWorkspace(_Row):
    """A workspace, by its key."""

    key: Text = Field(min_length=1)
    name: Text = Field(min_length=1, max_length=200)
    created_at: AwareDatetime


class BundledSource(_Row):
    """A source of the catalogue."""

    source_id: UUID
    kind: Literal["file", "note", "artifact", "thread_day", "contained"]
    source_path: Text = Field(min_length=1)
    disk_path: DiskPath | None
    file_type: Text
    hashed_at: AwareDatetime | None
    hashed_size: BigCount | None
    content_hash: Sha256 | None
    excluded_hash: Text | None
    status: Literal["pending", "processing", "ready", "failed", "cancelled"]
    warning_code: Text | None
    dedup_key: Text | None
    file_created_at: AwareDatetime | None
    file_modified_at: AwareDatetime | None
    created_at: AwareDatetime
    updated_at: AwareDatetime
    container_id: UUID | None = None
    file_id: UUID | None = None
    member_path: Text | None = None
    media_type: Text | None = None
    member_hash: Sha256 | None = None
    listed_output: Text | None = None

    def problem(self) -> str | None:
        """Why it cannot be a source of a library; None: it can."""
        if self.kind == "file" and self.source_path.startswith("/"):  # ingested from outside a library: nothing opens it
            return "a path outside of the library has no file in it" if self.disk_path is not None else None
        try:
            _confined(self.source_path)
        except ValueError as error:
            return str(error)
        contained = (self.container_id, self.file_id, self.member_path)
        if any(part is None for part in contained) if self.kind == "contained" else any(part is not None for part in contained):
            return "only what lies in a file has a container"
        if ("//" in self.source_path) != (self.kind == "contained"):
            return "only what lies in a file has such a path"
        if self.disk_path is not None and bytes.fromhex(self.disk_path).count(b"/") != self.source_path.count("/"):
            return "path and disk path are not those of one file"
        return None


class BundledRun(_Row):
    """The settings of a run."""

    run_id: Text = Field(min_length=1)
    settings: dict[str, Any]
    fingerprints: dict[str, Any]
    epoch: BigCount
    created_at: AwareDatetime


class BundledFigure(_Row):
    """A figure's picture."""

    content_hash: Sha256
    picture: Text
    revision: Integer
    sha256: Sha256 | None
    mime_type: Text | None
    width: Integer | None
    height: Integer | None
    made_at: AwareDatetime


class BundledStage(_Row):
    """What a stage was made from, with which result."""

    stage: AssetStage
    input_version: Text
    fingerprint: Text
    output_hash: Text
    result_key: Text
    run_id: Text
    updated_at: AwareDatetime


class BundledAsset(_Row):
    """A table or figure of a document."""

    asset_index: Count
    kind: Literal["table", "figure"]
    page: Integer | None
    char_start: Count
    char_end: Count
    caption: Text | None
    picture: Text | None = None


class BundledBlock(_Row):
    """A block of a document, in the order in which its fields are stored."""

    kind: Literal["heading", "paragraph", "list", "table", "code", "formula", "quote", "caption"]
    char_start: Count
    char_end: Count
    level: Integer = 0


class BundledPage(_Row):
    """A page of a document, in the order in which its fields are stored."""

    number: Integer
    char_start: Count
    char_end: Count
    label: Text | None = None


class BundledDocument(_Row):
    """A published document with all that was made of it but its chunks."""

    doc_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    source_id: UUID
    source_path: Text
    disk_path: DiskPath | None
    source: Text
    file_name: Text
    file_type: Text
    document_type: Literal["FILE", "NOTE", "ARTIFACT", "THREAD_DAY"]
    content_hash: Sha256 | None
    title: Text = Field(max_length=500)
    document_metadata: dict[str, Any]
    parser: Text
    parser_version: Text
    chunker: Text
    extraction: Literal["text", "ocr", "ocr_fallback"]
    used_ocr: bool
    ocr_pages: list[Integer]
    warning_code: Text | None
    n_chars: Count
    n_pages: Count
    n_chunks: Count
    parsing_fingerprint: Text
    chunking_fingerprint: Text
    contextualizing_fingerprint: Text
    document_output_hash: Text
    output_hash: Text
    run_id: Text
    file_created_at: AwareDatetime | None
    file_modified_at: AwareDatetime | None
    ingested_at: AwareDatetime
    language: Text = ""
    published_at: AwareDatetime | None
    stages: list[BundledStage]
    assets: list[BundledAsset]
    text: Text
    blocks: list[BundledBlock]
    pages: list[BundledPage]


class BundledChunk(_Row):
    """A chunk with its whole record."""

    chunk_id: Text
    doc_id: str
    original_index: BigCount
    chunk_index: Count
    content: Text = Field(min_length=1)
    context: Text | None
    contextualized_content: Text
    char_start: Count
    char_end: Count
    start_line: Count
    end_line: Count
    page_start: Integer | None
    page_end: Integer | None
    section_path: list[Text]
    chunk_type: Literal["prose", "table", "code", "formula"]
    n_tokens: Count
    text_hash: Sha256
    input_hash: Sha256
    metadata: ChunkRecord
    created_at: AwareDatetime


class HistoryRow(BaseModel):
    """A row of a conversation: any object, as deeply nested as ours are."""

    model_config = ConfigDict(extra="allow")


MIRRORED = tuple(BundledChunk.model_fields.keys() & ChunkRecord.model_fields.keys())
"""What stands both in a chunk's columns and in its record."""


def parse(kind: type[Record], line: bytes, where: str) -> Record:
    """The row that a line holds. Raises BundleInvalid, naming the place and the field."""
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(map(str, problem["loc"]))
        raise BundleInvalid(f"{where}{', ' + field if field else ''}", problem["msg"].removeprefix("Value error, ")) from None
