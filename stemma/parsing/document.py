"""What every parser returns: one canonical text, and everything else as spans into it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

BlockKind = Literal["heading", "paragraph", "list", "table", "code", "formula", "quote", "caption"]
Extraction = Literal["text", "ocr", "ocr_fallback"]


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of the text with one role. Offsets count code points; the end is exclusive."""

    kind: BlockKind
    char_start: int
    char_end: int
    level: int = 0
    """Depth of a heading from 1; 0 for everything else."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page, slide or sheet: the stretch of the text that it contributed."""

    number: int
    """From 1."""
    char_start: int
    char_end: int
    label: str | None = None
    """The sheet's name, or None."""


@dataclass(frozen=True, slots=True)
class Asset:
    """A table or figure in the text; a figure without text has an empty span."""

    kind: Literal["table", "figure"]
    char_start: int
    char_end: int
    page: int | None = None
    caption: str | None = None
    picture: str | None = None
    """Where the figure's picture lies in the file, as `take_pictures` understands it; None: not in the file."""


@dataclass(frozen=True)
class ParsedDocument:
    """A document as text.

    The text has no NUL, no lone surrogate and only `\\n` as line end. Blocks are ordered, do not overlap and need not
    cover everything; pages are ordered by number, do not overlap, and are empty for formats without pages. Nothing in
    here depends on where the file lies.
    """

    text: str
    parser: str
    parser_version: str
    blocks: tuple[Block, ...] = ()
    pages: tuple[Page, ...] = ()
    assets: tuple[Asset, ...] = ()
    title: str | None = None
    """Title that the content or its metadata states; never the file's name."""
    extraction: Extraction = "text"
    ocr_pages: tuple[int, ...] = ()
    warning: str | None = None
    """A code of stemma.errors.WARNINGS, or None."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else is known, as JSON values: `mime_type`, `encoding`, `author`, `pages_without_text`, ..."""

    @property
    def used_ocr(self) -> bool:
        """Whether any text was recognised from pixels."""
        return bool(self.ocr_pages) or self.extraction != "text"

    def to_json(self) -> str:
        """Canonical JSON of everything but the clock: equal documents give equal strings."""
        return json.dumps(asdict(self), ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, document: str) -> "ParsedDocument":
        """The document that `to_json` wrote."""
        fields = json.loads(document)
        for name, kind in (("blocks", Block), ("pages", Page), ("assets", Asset)):
            fields[name] = tuple(kind(**part) for part in fields[name])
        fields["ocr_pages"] = tuple(fields["ocr_pages"])
        return cls(**fields)

    @property
    def output_hash(self) -> str:
        """sha256 (hex) of `to_json`: the data version of the document."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()
