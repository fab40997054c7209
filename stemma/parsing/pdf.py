"""PDF: the text layer by pdfium, lines merged to paragraphs; pages without one are recognised."""

import ctypes
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any

from stemma.errors import EncryptedDocument
from stemma.parsing.cleaning import clean_line, is_visible, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.layout import SOFT_HYPHEN, Line, Paragraph, hyphenated_words, paragraphs
from stemma.parsing.ligatures import THREE, TWO, UNKNOWN, known_words, resolve_ligatures
from stemma.parsing.ocr import MAX_OCR_PIXELS, recognise
from stemma.parsing.pdf_annotations import page_annotations
from stemma.parsing.pdf_text import text_lines
from stemma.parsing.work_folder import BATCH_PAGES

pypdfium2: Any = import_module("pypdfium2")  # ships no types
pdfium: Any = import_module("pypdfium2.raw")

OCR_DPI = 200
MIN_OCR_DPI = 50  # a page so large that it would be rendered coarser has no legible text
RUNNING_MIN_PAGES = 4  # lines at the edge of the page that repeat on this many pages and on half of them are running
HEADING_HEIGHT = 1.15  # of the body text
GARBLED_SHARE = 0.01  # of a page's visible characters: more that are no characters show that the file maps its glyphs wrongly
MIN_PICTURE_PIXELS = 48  # the shorter side of an image that is a figure
MAX_PAGE_PICTURES, MAX_PAGE_OBJECTS = 100, 50_000
RUBBISH_SHARE = 0.2  # above it, the page's text is not used


@dataclass(slots=True)
class _PageText:
    lines: list[Line]
    recognised: bool = False
    pictured: bool = False
    """Whether recognition was tried."""
    broken: bool = False
    garbled: bool = False
    annotations: list[str] = field(default_factory=list[str])
    pictures: list[str] = field(default_factory=list[str])
    """Their places."""

    @classmethod
    def of(cls, record: dict[str, Any]) -> "_PageText":
        """The page that `asdict` turned into a record."""
        return cls([Line(**line) for line in record.pop("lines")], **record)


def parse_pdf_by_pdfium(source: Source) -> Draft:
    """Text, pages and headings of a PDF.

    A file that only restricts copying or printing (owner password) is read; one that needs a password to be opened is not.
    Headings are short paragraphs in larger type than the body's. A header or footer that repeats is kept on its first
    page only. Values of form fields and annotations follow the text of their page.

    Raises:
        EncryptedDocument: it needs a password.
        CorruptDocument: pdfium cannot open it, or not one of its pages.
    """
    with open_pdf(source) as document:
        if document.get_formtype() != pdfium.FORMTYPE_NONE:
            document.init_forms()
        pages = _read_pages(source, document)
        title, facts = stated_facts(document)
    if pages and all(page.broken for page in pages):
        raise source.corrupt("none of its pages can be read")
    _drop_running_lines(pages)
    builder = DraftBuilder(source)
    _build(builder, pages)
    ocr_pages = tuple(number for number, page in enumerate(pages, 1) if page.recognised)
    return builder.finish(
        title=title,
        extraction="ocr_fallback" if ocr_pages else "text",
        ocr_pages=ocr_pages,
        metadata={
            "n_pages": len(pages),
            "pages_without_text": [number for number, page in enumerate(pages, 1) if not page.lines and not page.annotations],
            "garbled_pages": [number for number, page in enumerate(pages, 1) if page.garbled],
            "unreadable_pages": [number for number, page in enumerate(pages, 1) if page.broken],
            **facts,
        },
    )


_METADATA = {"Author": "author", "Subject": "subject", "Keywords": "keywords", "Producer": "producer"}


def stated_facts(document: Any) -> tuple[str | None, dict[str, str]]:
    """The title that an open document's properties state, and what else they say: author, subject, keywords, producer."""
    metadata = document.get_metadata_dict(skip_empty=True)
    return stated_title(metadata.get("Title")), {name: metadata[key] for key, name in _METADATA.items() if metadata.get(key)}


def open_pdf(source: Source) -> Any:
    """pdfium's document, to be closed by the caller. Raises EncryptedDocument or CorruptDocument."""
    try:
        return pypdfium2.PdfDocument(source.path)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise EncryptedDocument(source.source_path, "the PDF needs a password") from error
        raise source.corrupt("it is no PDF that can be read") from error


def _read_pages(source: Source, document: Any) -> list[_PageText]:
    """Every page; those that an earlier parse had finished come from the work folder."""
    pages = source.work.finished(_PageText.of)
    n_kept, n_chars = len(pages), _n_chars(pages)
    n_pictured = sum(page.pictured for page in pages)
    for index in range(len(pages), len(document)):
        page = _read_page(source, document, index, may_recognise=n_pictured < source.options.ocr_max_pages)
        pages.append(page)
        n_pictured += page.pictured
        n_chars += _n_chars([page])
        source.check_length(n_chars)
        if page.pictured or len(pages) - n_kept == BATCH_PAGES:
            source.work.keep([asdict(page) for page in pages[n_kept:]], first=n_kept)
            n_kept = len(pages)
    words = known_words(line.text for page in pages for line in page.lines)
    for page in pages:
        page.lines = [replace(line, text=resolve_ligatures(line.text, words)) for line in page.lines]
    return pages


def _n_chars(pages: Sequence[_PageText]) -> int:
    return sum(len(line.text) for page in pages for line in page.lines)


def _read_page(source: Source, document: Any, index: int, *, may_recognise: bool) -> _PageText:
    """One page's text layer or, where it has none that is of use, what is recognised from its picture."""
    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        return _PageText([], broken=True)
    lines = text_lines(page)
    share = _share_without_meaning(lines)
    found = _PageText(lines if share <= RUBBISH_SHARE else [], garbled=share > GARBLED_SHARE)
    found.annotations = page_annotations(page, document.formenv)
    wanted = not found.lines and source.options.ocr_engine != "none" and may_recognise
    if wanted and (image := _rendered(page, annotated=not found.annotations)) is not None:
        found.lines = [line for line in recognise(image) if is_visible(line.text)]
        found.recognised, found.pictured = bool(found.lines), True
    if not found.pictured:  # there, the picture is the page
        found.pictures = [f"page:{index + 1}/{position}" for position in _picture_objects(page)]
    page.close()
    return found


def _picture_objects(page: Any) -> list[int]:
    """Positions of the images among the page's objects; small ones are rules, bullets and the like."""
    objects = (pdfium.FPDFPage_GetObject(page.raw, i) for i in range(min(pdfium.FPDFPage_CountObjects(page.raw), MAX_PAGE_OBJECTS)))
    return [
        position
        for position, found in enumerate(objects)
        if pdfium.FPDFPageObj_GetType(found) == pdfium.FPDF_PAGEOBJ_IMAGE and min(_pixel_size(found)) >= MIN_PICTURE_PIXELS
    ][:MAX_PAGE_PICTURES]


def _pixel_size(image: Any) -> tuple[int, int]:
    width, height = ctypes.c_uint(), ctypes.c_uint()
    pdfium.FPDFImageObj_GetImagePixelSize(image, width, height)
    return width.value, height.value


def page_picture(document: Any, page: Any, position: int) -> Any:
    """The image that is the object at `position` of a page, as Pillow's; raises LookupError, ValueError or PdfiumError where there is none."""
    return pypdfium2.PdfImage(pdfium.FPDFPage_GetObject(page.raw, position), page=page, pdf=document).get_bitmap().to_pil()


def _share_without_meaning(lines: Sequence[Line]) -> float:
    """The share of a page's visible characters that are none: unknown glyphs, controls, places without or of private meaning."""
    characters = [
        character for line in lines for character in line.text if not character.isspace() and character not in (SOFT_HYPHEN, TWO, THREE)
    ]
    n_bad = sum(character == UNKNOWN or unicodedata.category(character) in ("Cc", "Cn", "Co") for character in characters)
    return n_bad / len(characters) if n_bad > 2 else 0.0


def _rendered(page: Any, *, annotated: bool) -> Any | None:
    """The page as an image for recognition; None when nothing is drawn on it or it is too large to be legible.

    Args:
        annotated: with its annotations and fields, for where their text was not read from the file itself.
    """
    if pdfium.FPDFPage_CountObjects(page.raw) <= 0 and not (annotated and pdfium.FPDFPage_GetAnnotCount(page.raw)):
        return None
    width, height = page.get_size()
    scale = min(OCR_DPI / 72, (MAX_OCR_PIXELS / max(width * height, 1.0)) ** 0.5)
    if scale < MIN_OCR_DPI / 72:
        return None
    return page.render(scale=scale, draw_annots=annotated, may_draw_forms=annotated).to_pil()


def _drop_running_lines(pages: Sequence[_PageText]) -> None:
    """Keep a header or footer on the first page that has it. A number that counts pages may differ from page to page."""
    edges = [{key for line in _edge_lines(page) for key in _running_keys(line.text, number)} for number, page in enumerate(pages, 1)]
    counts = Counter(key for keys in edges for key in keys)
    running = {key for key, count in counts.items() if count >= max(RUNNING_MIN_PAGES, len(pages) / 2)}
    seen: set[str] = set()
    for number, page in enumerate(pages, 1):
        if len(page.lines) < 3:
            continue  # where nothing else stands, the line is the content
        repeated = [(line, keys) for line in _edge_lines(page) if (keys := _running_keys(line.text, number) & running)]
        dropped = [line for line, keys in repeated if keys & seen]
        seen.update(key for _, keys in repeated for key in keys)
        page.lines = [line for line in page.lines if not any(line is other for other in dropped)]


def _edge_lines(page: _PageText) -> list[Line]:
    by_height = sorted(page.lines, key=lambda line: line.top)
    return by_height[:2] + by_height[2:][-2:]


def _running_keys(text: str, page: int) -> set[str]:
    """The line as it is, and with each number that stands alone replaced by its distance from the page's own."""
    line = clean_line(text)
    numbers = re.finditer(r"(?<!\S)\d{1,5}(?!\S)", line)
    return {line, *(f"{line[: found.start()]}#{int(found[0]) - page}{line[found.end() :]}" for found in numbers)}


def _build(builder: DraftBuilder, pages: Sequence[_PageText]) -> None:
    body = _body_height(pages)
    keep_hyphen = hyphenated_words([line.text for page in pages for line in page.lines])
    found = [[] if not page.lines else paragraphs(page.lines, keep_hyphen=keep_hyphen) for page in pages]
    heights = sorted({_step(p.height) for page in found for p in page if _is_heading(p, body)}, reverse=True)[:6]
    previous: Paragraph | None = None
    for number, page in enumerate(found, 1):
        builder.start_page(number)
        for position, paragraph in enumerate(page):
            if _is_heading(paragraph, body):
                level = next((i for i, height in enumerate(heights, 1) if _step(paragraph.height) >= height), len(heights))
                builder.add(paragraph.text.replace("\n", " "), "heading", level=level)
            else:
                continues = position == 0 and previous is not None and _crosses(previous, paragraph)
                builder.add(paragraph.text, continues=continues)
            previous = paragraph
        for annotations in pages[number - 1].annotations:
            builder.add(annotations)
            previous = None
        for picture in pages[number - 1].pictures:
            builder.add_figure(None, picture=picture)


def _body_height(pages: Sequence[_PageText]) -> float:
    """The text height that most characters have."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page.lines:
            sizes[_step(line.height)] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _step(height: float) -> float:
    return round(height * 2) / 2


def _is_heading(paragraph: Paragraph, body: float) -> bool:
    text = paragraph.text
    if paragraph.n_lines > 3 or len(text) > 200 or paragraph.height <= HEADING_HEIGHT * body:
        return False
    n_letters = sum(character.isalpha() for character in text)
    return n_letters > 2 and n_letters * 2 > sum(not character.isspace() for character in text)  # no formula, no sum


def _crosses(before: Paragraph, after: Paragraph) -> bool:
    """Whether a sentence runs over the page's end."""
    return before.open_end and before.text[-1:] not in ".!?:。！？" and after.text[:1].islower()
