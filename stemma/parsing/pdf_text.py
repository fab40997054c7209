"""The text layer of a PDF's page by pdfium: characters with their places, gathered to lines in reading order."""

import ctypes
import re
import unicodedata
from collections.abc import Sequence
from importlib import import_module
from statistics import median
from typing import Any

from stemma.parsing.cleaning import clean_text, is_visible
from stemma.parsing.layout import SOFT_HYPHEN, Line, upright
from stemma.parsing.ligatures import ligature_mark

pdfium: Any = import_module("pypdfium2.raw")  # ships no types

_HYPHEN_OR_UNKNOWN = "\ufffe\x02"  # pdfium's mark for a hyphen at a line's end, and for a glyph without a character
_COMPATIBILITY_FORMS = re.compile("[\ufb00-\ufb4f\ufb50-\ufdff\ufe70-\ufefc]+")  # ligatures and Arabic letters by position
_SYMBOLS = {
    "\uf0b7": "•",
    "\uf0a7": "▪",
    "\uf0d8": "➢",
    "\uf0fc": "✓",
    "\uf0e0": "→",
    "\uf0a8": "□",
    "\uf06f": "□",
}  # Symbol and Wingdings in use as bullets
_MARK_BEFORE_LETTER = re.compile("(?:^| )([\u064b-\u0652\u0670]+)([\u0621-\u064a])")
_TWO_SCRIPTS = re.compile(
    "(?<=[\u0590-\u05ff\u0620-\u064a\u066e-\u06d3])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u0590-\u05ff\u0620-\u064a\u066e-\u06d3])"
)
_SWAPPED_LAM_ALEF = re.compile("[\u0622\u0623\u0625\u0627]\u0644")


def text_lines(page: Any) -> list[Line]:
    """The lines of the text layer in pdfium's order, which follows the order of drawing within columns."""
    text_page = page.get_textpage()
    place = _Placement(page, text_page)
    lines: list[Line] = []
    characters = _characters(text_page)
    start = 0
    for end in [*(i for i in range(len(characters)) if place.ends_line(characters, i)), len(characters)]:
        text = "".join(place.marked(characters, i) for i in range(start, end))
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
    text = _MARK_BEFORE_LETTER.sub(r"\2\1", _TWO_SCRIPTS.sub(" ", text))  # what turning right-to-left text around has mixed up
    return clean_text("".join(_SYMBOLS.get(character, character) for character in text)).strip()


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

    def marked(self, characters: Sequence[str], index: int) -> str:
        """The character; for a glyph without one a mark of what it may be."""
        if not characters[index] or characters[index] not in _HYPHEN_OR_UNKNOWN:
            return characters[index]
        near = range(max(0, index - 100), min(len(characters), index + 100))
        narrow = [right - left for left, right, _, _ in (self._upright(i) for i in near if characters[i] in ("i", "l"))]
        left, right, _, _ = self._upright(index)
        return ligature_mark(right - left, median(narrow) if narrow else 0.0)

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
