"""PDF: the text layer by pdfium, lines merged to paragraphs; pages without one are recognised."""

import ctypes
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from stemma.errors import EncryptedDocument
from stemma.parsing.cleaning import clean_line, clean_text, is_visible, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.layout import SOFT_HYPHEN, Line, Paragraph, hyphenated_words, paragraphs, upright
from stemma.parsing.ocr import MAX_OCR_PIXELS, recognise

pypdfium2: Any = import_module("pypdfium2")  # ships no types
pdfium: Any = import_module("pypdfium2.raw")

OCR_DPI = 200
MIN_OCR_DPI = 50  # a page so large that it would be rendered coarser has no legible text
RUNNING_MIN_PAGES = 4  # lines at the edge of the page that repeat on this many pages and on half of them are running
HEADING_HEIGHT = 1.15  # of the body text

_HYPHEN_OR_UNKNOWN = "\ufffe\x02"  # pdfium's mark for a hyphen at a line's end, and for a glyph without a character
_COMPATIBILITY_FORMS = re.compile("[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc]+")  # ligatures and Arabic letters by position
_SWAPPED_LAM_ALEF = re.compile("[\u0622\u0623\u0625\u0627]\u0644")


@dataclass(slots=True)
class _PageText:
    lines: list[Line]
    recognised: bool = False
    broken: bool = False


def parse_pdf(source: Source) -> Draft:
    """Text, pages and headings of a PDF.

    A file that only restricts copying or printing (owner password) is read; one that needs a password to be opened is not.
    Headings are short paragraphs in larger type than the body's. A header or footer that repeats is kept on its first
    page only. Values of form fields and annotations are not part of the text layer and not read.

    Raises:
        EncryptedDocument: it needs a password.
        CorruptDocument: pdfium cannot open it, or not one of its pages.
    """
    with _open(source) as document:
        pages = _read_pages(source, document)
        metadata = document.get_metadata_dict(skip_empty=True)
    if pages and all(page.broken for page in pages):
        raise source.corrupt("none of its pages can be read")
    _drop_running_lines(pages)
    builder = DraftBuilder(source)
    _build(builder, pages)
    ocr_pages = tuple(number for number, page in enumerate(pages, 1) if page.recognised)
    return builder.finish(
        title=stated_title(metadata.get("Title")),
        extraction="ocr_fallback" if ocr_pages else "text",
        ocr_pages=ocr_pages,
        metadata={
            "n_pages": len(pages),
            "pages_without_text": [number for number, page in enumerate(pages, 1) if not page.lines],
            "unreadable_pages": [number for number, page in enumerate(pages, 1) if page.broken],
            **{name: metadata[key] for key, name in _METADATA.items() if metadata.get(key)},
        },
    )


_METADATA = {"Author": "author", "Subject": "subject", "Keywords": "keywords", "Producer": "producer"}


def _open(source: Source) -> Any:
    try:
        return pypdfium2.PdfDocument(source.path)
    except pypdfium2.PdfiumError as error:
        if error.err_code in (pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY):
            raise EncryptedDocument(source.source_path, "the PDF needs a password") from error
        raise source.corrupt("it is no PDF that can be read") from error


def _read_pages(source: Source, document: Any) -> list[_PageText]:
    pages: list[_PageText] = []
    n_chars = n_recognised = 0
    for index in range(len(document)):
        try:
            page = document[index]
        except pypdfium2.PdfiumError:
            pages.append(_PageText([], broken=True))
            continue
        lines = _text_lines(page)
        wanted = not lines and source.options.ocr_engine != "none" and n_recognised < source.options.ocr_max_pages
        if wanted and (image := _rendered(page)) is not None:
            lines = [line for line in recognise(image) if is_visible(line.text)]
            n_recognised += 1
            pages.append(_PageText(lines, recognised=bool(lines)))
        else:
            pages.append(_PageText(lines))
        page.close()
        n_chars += sum(len(line.text) for line in lines)
        source.check_length(n_chars)
    return pages


def _text_lines(page: Any) -> list[Line]:
    """The lines of the text layer in pdfium's order, which follows the order of drawing within columns."""
    text_page = page.get_textpage()
    place = _Placement(page, text_page)
    lines: list[Line] = []
    characters = _characters(text_page)
    start = 0
    for end in [*(i for i in range(len(characters)) if place.ends_line(characters, i)), len(characters)]:
        text = "".join(characters[start:end])
        if is_visible(text):
            text = _SWAPPED_LAM_ALEF.sub(lambda match, start=start: place.unswapped(match, start), text)
            hyphen = SOFT_HYPHEN if end < len(characters) and characters[end] in _HYPHEN_OR_UNKNOWN else ""
            lines.append(place.line(_readable(text) + hyphen, characters, start, end))
        start = end + 1
    text_page.close()
    return upright(lines)


def _characters(text_page: Any) -> list[str]:
    """One entry per pdfium character index, so that boxes can be asked for; halves of a pair are joined in the first."""
    n = text_page.count_chars()
    text = text_page.get_text_range() if n > 0 else ""
    if len(text) == n:
        return list(text)
    codes = [pdfium.FPDFText_GetUnicode(text_page.raw, i) for i in range(n)]
    characters = [chr(code) if code < 0x110000 else "" for code in codes]
    for i in range(n - 1):
        if 0xD800 <= codes[i] < 0xDC00 <= codes[i + 1] < 0xE000:
            characters[i] = (characters[i] + characters[i + 1]).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
            characters[i + 1] = ""
    return characters


def _readable(text: str) -> str:
    text = _COMPATIBILITY_FORMS.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return clean_text(re.sub(f"[{_HYPHEN_OR_UNKNOWN}]", "\ufffd", text)).strip()


class _Placement:
    """Where characters stand on the upright page."""

    def __init__(self, page: Any, text_page: Any) -> None:
        self._raw = text_page.raw
        self._rotation = page.get_rotation()

    def line(self, text: str, characters: Sequence[str], start: int, end: int) -> Line:
        visible = [i for i in range(start, end) if characters[i].strip()]
        boxes = [self._upright(i) for i in (visible[0], visible[len(visible) // 2], visible[-1])]
        lefts, rights, tops, bottoms = zip(*boxes, strict=True)
        across, down = abs(lefts[-1] - lefts[0]), tops[-1] - tops[0]
        turn = 0 if abs(down) <= 2 * across else 1 if down > 0 else -1
        return Line(text, min(lefts), max(rights), min(tops), max(bottoms), turn)

    def ends_line(self, characters: Sequence[str], index: int) -> bool:
        """Whether a line ends here: at a line end, or at a hyphen mark after which the text goes on elsewhere than beside it."""
        if characters[index] in ("\r", "\n"):
            return True
        if not characters[index] or characters[index] not in _HYPHEN_OR_UNKNOWN:
            return False
        if not 0 < index < len(characters) - 1:
            return index > 0
        before, after = self._upright(index - 1), self._upright(index + 1)
        on_one_height = min(before[3], after[3]) > max(before[2], after[2])
        return not (on_one_height and after[0] >= before[0])

    def unswapped(self, match: re.Match[str], start: int) -> str:
        """Lam and alef of one glyph in reading order: pdfium turns right-to-left text around, the glyph's two letters too."""
        first, second = self._box(start + match.start()), self._box(start + match.start() + 1)
        return match[0][::-1] if first == second else match[0]

    def _upright(self, index: int) -> tuple[float, float, float, float]:
        """Left, right, top, bottom with y downwards, after the page's own rotation."""
        left, right, bottom, top = self._box(index)
        if self._rotation == 90:
            return bottom, top, left, right
        if self._rotation == 180:
            return -right, -left, bottom, top
        if self._rotation == 270:
            return -top, -bottom, -right, -left
        return left, right, -top, -bottom

    def _box(self, index: int) -> tuple[float, float, float, float]:
        rect = pdfium.FS_RECTF()
        if not pdfium.FPDFText_GetLooseCharBox(self._raw, index, ctypes.byref(rect)):
            return (0.0, 0.0, 0.0, 0.0)
        return rect.left, rect.right, rect.bottom, rect.top


def _rendered(page: Any) -> Any | None:
    """The page as an image for recognition; None when nothing is drawn on it or it is too large to be legible."""
    if pdfium.FPDFPage_CountObjects(page.raw) <= 0:
        return None
    width, height = page.get_size()
    scale = min(OCR_DPI / 72, (MAX_OCR_PIXELS / max(width * height, 1.0)) ** 0.5)
    if scale < MIN_OCR_DPI / 72:
        return None
    return page.render(scale=scale).to_pil()


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
