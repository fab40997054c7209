"""`bundle.json`: what a bundle says of itself, the facts by which a restore judges it."""

import re
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stemma.bundles.errors import BundleIncompatible, BundleInvalid

MANIFEST = "bundle.json"
MAX_MANIFEST_BYTES = 32_000_000

STEMMA, VARAGITY = "stemma-backup", "varagity-backup"
VERSION = 1
CORPORA = ("rag", "graph")

DOCUMENTS, CHUNKS, VECTORS = "documents.jsonl", "chunks.jsonl", "embeddings.f32"
WORKSPACES, SOURCES, RUNS, FIGURES = "workspaces.jsonl", "sources.jsonl", "runs.jsonl", "figures.jsonl"
PICTURES, FILES = "pictures/", "files/"
HISTORY = "app/"
HISTORY_PARTS = ("groups", "conversations", "messages", "evidence", "citations")
"""In the order in which they may be inserted: each refers to those before it."""

REQUIRED: dict[str, tuple[str, ...]] = {
    STEMMA: (WORKSPACES, SOURCES, RUNS, FIGURES, DOCUMENTS, CHUNKS, VECTORS),
    VARAGITY: (DOCUMENTS, CHUNKS, VECTORS),
}
"""The members that every bundle of a format has."""

_OPTIONAL = {
    STEMMA: re.compile(
        rf"app/({'|'.join(HISTORY_PARTS)})\.jsonl|pictures/[0-9a-f]{{64}}|files/[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}"
    ),
    VARAGITY: re.compile(r"(?!)"),
}
"""Those that it may have beside them: conversations, pictures by the hash of their bytes, files of the library by their source."""

UNBOUNDED = 2**53
"""No count or size is above what every reader of JSON keeps exact."""


class Member(BaseModel):
    """A member of the archive as it was written."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(max_length=200)
    size_bytes: int = Field(ge=0, le=UNBOUNDED)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Counts(BaseModel):
    """How many rows the members hold; what a format does not count is 0."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    documents: int = Field(ge=0, le=UNBOUNDED)
    chunks: int = Field(ge=0, le=UNBOUNDED)
    sources: int = Field(0, ge=0, le=UNBOUNDED)


class Manifest(BaseModel):
    """The manifest of a bundle of documents and chunks, whichever of the two formats it has."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    format: Literal["stemma-backup", "varagity-backup"]
    version: Literal[1]
    corpus: Literal["rag"]
    created_at: datetime
    """The instant of the snapshot, UTC."""
    embedding_model: str
    embedding_dim: int = Field(ge=1, le=16_000)
    stale: bool
    """Whether something of the corpus was not what files and settings gave then."""
    counts: Counts
    ingest_settings: dict[str, str]
    """The settings that the corpus was made with, as the environment would have them."""
    members: list[Member] = Field(max_length=1_000_000)
    engine: None = None
    embedding_spec: dict[str, Any] | None = None
    """Everything that decides a vector; None in the older format."""
    fingerprints: dict[str, str] = {}
    """Stage -> fingerprint of the recipe that was wanted."""
    data_version: str | None = None
    """The same for the same corpus: nothing new to export."""
    schema_version: str | None = Field(None, alias="schema")
    """The last migration of the database that it was taken from."""
    written_by: str | None = None

    @property
    def size_bytes(self) -> int:
        """Of all members, unpacked."""
        return sum(member.size_bytes for member in self.members)


def parse_manifest(data: bytes) -> Manifest:
    """The manifest in these bytes.

    Format, version and corpus are judged first, so that a bundle of a later release is called that and not damaged.

    Raises:
        BundleIncompatible: it is of another format, version or corpus.
        BundleInvalid: it is no manifest, or contradicts itself; names the field.
    """
    try:
        kind = _Kind.model_validate_json(data)
    except ValidationError as error:
        raise BundleInvalid(*_first_problem(error)) from None
    if kind.format not in REQUIRED:
        raise BundleIncompatible("format", f"{kind.format!r} is neither {STEMMA} nor {VARAGITY}")
    if kind.version != VERSION:
        raise BundleIncompatible("version", f"version {kind.version} of {kind.format} is not known here, version {VERSION} is")
    if kind.corpus != "rag":
        known = "a bundle of the message graph, which this release does not have" if kind.corpus == "graph" else "no corpus of Stemma"
        raise BundleIncompatible("corpus", f"{kind.corpus!r} is {known}")
    try:
        manifest = Manifest.model_validate_json(data)
    except ValidationError as error:
        raise BundleInvalid(*_first_problem(error)) from None
    _check_members(manifest)
    return manifest


class _Kind(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    format: str = Field(max_length=100)
    version: int
    corpus: str = Field(max_length=100)


def _first_problem(error: ValidationError) -> tuple[str, str]:
    problem = error.errors(include_input=False, include_url=False)[0]
    return f"{MANIFEST} {'.'.join(map(str, problem['loc']))}".strip(), problem["msg"]


def _check_members(manifest: Manifest) -> None:
    names = [member.name for member in manifest.members]
    if len(set(names)) < len(names):
        raise BundleInvalid("members", "a member is listed twice")
    if missing := [name for name in REQUIRED[manifest.format] if name not in names]:
        raise BundleInvalid("members", f"{missing[0]} is missing")
    known = {*REQUIRED[manifest.format]}
    if foreign := [name for name in names if name not in known and not _OPTIONAL[manifest.format].fullmatch(name)]:
        raise BundleInvalid("members", f"{foreign[0][:100]!r} is no member of {manifest.format}")
    (vectors,) = (member for member in manifest.members if member.name == VECTORS)
    if vectors.size_bytes != (expected := manifest.counts.chunks * manifest.embedding_dim * 4):
        raise BundleInvalid(VECTORS, f"{vectors.size_bytes} bytes are recorded, {expected} are those of {manifest.counts.chunks} vectors")
