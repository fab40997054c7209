"""What a parser is given and what it gives back, and the builder that keeps offsets exact while a text grows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stemma.errors import CorruptDocument, DocumentTooLarge
from stemma.parsing.cleaning import clean_text, is_visible
from stemma.parsing.document import Asset, Block, BlockKind, Extraction, Page
from stemma.parsing.work_folder import WorkFolder

if TYPE_CHECKING:
    from stemma.settings import Settings  # a parser's process would import pydantic for it


@dataclass(frozen=True, slots=True)
class ParsingOptions:
    """The settings of the parsing stage that parsers read."""

    ocr_engine: Literal["rapidocr", "none"] = "rapidocr"
    ocr_max_pages: int = 50
    max_document_chars: int = 20_000_000
    pdf_pipeline: Literal["pdfium", "docling_native", "docling_layout"] = "pdfium"
    docling_artifacts: str | None = None
    """Folder of docling's models."""

    @classmethod
    def of(cls, settings: "Settings") -> "ParsingOptions":
        """The options that the settings ask for."""
        return cls(
            settings.ocr_engine,
            settings.ocr_max_pages,
            settings.max_document_chars,
            settings.pdf_pipeline,
            None if settings.docling_artifacts is None else str(settings.docling_artifacts),
        )


@dataclass(frozen=True, slots=True)
class Source:
    """The bytes to parse. `source_path` serves messages only: nothing of it may enter the result."""

    path: Path
    source_path: str
    options: ParsingOptions = ParsingOptions()
    work: WorkFolder = field(default_factory=WorkFolder)
    """Where a parser whose pages cost time keeps those that it has finished."""
    pictures: tuple[str, ...] = ()
    """The places of the pictures to take, where not the text is asked for but its figures."""

    def corrupt(self, detail: str) -> CorruptDocument:
        """The error that says that the bytes are unsound; `detail` is a clause without full stop or host path."""
        return CorruptDocument(self.source_path, detail)

    def check_length(self, n_chars: int) -> None:
        """Raises DocumentTooLarge when a text has more characters than MAX_DOCUMENT_CHARS."""
        if n_chars > self.options.max_document_chars:
            raise DocumentTooLarge(self.source_path, f"its text has more than {self.options.max_document_chars:,} characters")


@dataclass(frozen=True, slots=True)
class Draft:
    """A parser's result before it is judged: no warning, no version yet. Spans are offsets into the cleaned `text`."""

    text: str
    blocks: tuple[Block, ...] = ()
    pages: tuple[Page, ...] = ()
    assets: tuple[Asset, ...] = ()
    title: str | None = None
    extraction: Extraction = "text"
    ocr_pages: tuple[int, ...] = ()
    guessed_encoding: bool = False
    invalid_syntax: bool = False
    empty: bool = False
    """The file itself holds nothing: not even markup around nothing."""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


class DraftBuilder:
    """Appends cleaned stretches of text and notes their spans. Blocks are separated by a blank line, items of a list by a line end."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._pages: list[Page] = []
        self._assets: list[Asset] = []
        self._page: tuple[int, str | None, int | None] | None = None
        self.length = 0

    def add(self, text: str, kind: BlockKind = "paragraph", *, level: int = 0, continues: bool = False) -> bool:
        """Append one block; blank text is left out. Returns whether anything was appended.

        Args:
            continues: the block before this one goes on (a list's next item, a paragraph across pages): a line end
                separates them, and they are one block.
        """
        text = clean_text(text).strip("\n")
        text = text.rstrip() if kind in ("code", "list") else text.strip()  # there, the first line's indent has a meaning
        if not is_visible(text):
            return False
        continues = continues and bool(self._blocks) and self._blocks[-1].kind == kind and self._blocks[-1].char_end == self.length
        if self._parts:
            self._append("\n" if continues else "\n\n")
        start = self.length
        self._append(text)
        if continues:
            start, level = self._blocks[-1].char_start, self._blocks.pop().level
        self._blocks.append(Block(kind, start, self.length, level))
        if kind == "table":
            self._assets.append(Asset("table", start, self.length, self._page[0] if self._page else None))
        return True

    def add_stretch(self, text: str, blocks: Sequence[Block]) -> None:
        """Append a cleaned text as it stands, with its own blocks, whose offsets count from its beginning."""
        if not is_visible(text):
            return
        if self._parts:
            self._append("\n\n")
        start = self.length
        self._append(text.rstrip())
        page = self._page[0] if self._page else None
        for block in blocks:
            moved = replace(block, char_start=start + block.char_start, char_end=start + block.char_end)
            self._blocks.append(moved)
            if moved.kind == "table":
                self._assets.append(Asset("table", moved.char_start, moved.char_end, page))

    def add_figure(self, caption: str | None, *, picture: str | None = None) -> None:
        """Note a picture without text of its own at the present position; `picture` says where in the file it lies."""
        page = self._page[0] if self._page else None
        caption, picture = (clean_text(text) if text else None for text in (caption, picture))
        self._assets.append(Asset("figure", self.length, self.length, page, caption, picture))

    def start_page(self, number: int, label: str | None = None) -> None:
        """What follows belongs to this page; the one before it ends."""
        self.end_page()
        self._page = (number, clean_text(label) if label else None, len(self._parts))

    def end_page(self) -> None:
        """Note the span of the present page: from its first to its last character, empty when nothing was added."""
        if self._page is None:
            return
        number, label, first_part = self._page
        added = self._parts[first_part:]
        if first_part and added:
            added = added[1:]  # the separator stands between the pages
        start = self.length - sum(map(len, added))
        self._pages.append(Page(number, start, self.length, label))
        self._page = None

    def check_room(self, n_chars: int) -> None:
        """Raises DocumentTooLarge when so many more characters would be too many."""
        self._source.check_length(self.length + n_chars)

    def finish(self, **fields: Any) -> Draft:
        """The draft; `fields` are those of Draft that the builder does not know (title, metadata, ...)."""
        self.end_page()
        return Draft("".join(self._parts), tuple(self._blocks), tuple(self._pages), tuple(self._assets), **fields)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)
        self._source.check_length(self.length)
