"""Lines with places on a page -> paragraphs: shared by PDF pages and recognised images."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

FULL_LINE = 0.8  # of its block's width: a shorter line was ended by its author, not by the margin
BLOCK_GAP = 0.7  # of the text height between two lines: a wider gap begins another block
WORD_GAP = 0.15  # of the text height between two pieces of one line
SOFT_HYPHEN = "\ufffe"
"""Ends a line whose last word goes on in the next one; pdfium's mark."""

_ITEM = re.compile(r"[•‣◦▪●○∙·–—*-]\s|\(?(\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})[.)]\s")
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff]")
_UNSPACED = re.compile(r"[\u3000-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\u0e00-\u0e7f]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text in upright coordinates: x to the right, y downwards, in any unit."""

    text: str
    left: float
    right: float
    top: float
    bottom: float
    turn: int = 0
    """0: upright; 1: it reads downwards; -1: upwards."""

    @property
    def height(self) -> float:
        """Of the text: what stands for the size of its font."""
        return self.bottom - self.top


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Lines that belong together, as one text."""

    text: str
    height: float
    n_lines: int
    open_end: bool
    """Whether its last line is full, so that it may go on on the next page."""


def upright(lines: Sequence[Line]) -> list[Line]:
    """Lines of a page that lies on its side, turned to read from left to right; single standing lines keep their place."""
    turns = [line.turn for line in lines if len(line.text) > 1]
    for turn in (1, -1):
        if turns and turns.count(turn) * 2 > len(turns):
            return [_turned(line, turn) for line in lines]
    # A stamp in the margin is as high as its letters, not as its length.
    return [replace(line, top=line.bottom - (line.right - line.left), turn=0) if line.turn else line for line in lines]


def _turned(line: Line, turn: int) -> Line:
    if turn < 0:
        return Line(line.text, -line.bottom, -line.top, line.left, line.right)
    return Line(line.text, line.top, line.bottom, -line.right, -line.left)


def paragraphs(lines: Sequence[Line], *, keep_hyphen: frozenset[str] = frozenset()) -> list[Paragraph]:
    """The paragraphs of one page, in the order of its lines.

    Lines of one block that reach its margin are joined by a space, shorter ones (tables, code, verse) keep their line end.

    Args:
        keep_hyphen: words, lower case, whose hyphen is their own although a line ends in it (`well-known`).
    """
    return [_paragraph(block, keep_hyphen) for block in _blocks(_whole_lines(lines))]


def _whole_lines(lines: Sequence[Line]) -> list[Line]:
    """Pieces beside each other on one height (superscripts, cells of a table) as one line each."""
    whole: list[Line] = []
    for line in lines:
        last = whole[-1] if whole else None
        if last is not None and _beside(last, line):
            gap = line.left - last.right
            space = "" if gap < WORD_GAP * min(last.height, line.height) else " "
            taller = max(last, line, key=lambda piece: piece.height)
            text = last.text.rstrip() + space + line.text.lstrip()
            whole[-1] = Line(text, min(last.left, line.left), max(last.right, line.right), taller.top, taller.bottom)
        else:
            whole.append(line)
    return whole


def _beside(last: Line, line: Line) -> bool:
    shared = min(last.bottom, line.bottom) - max(last.top, line.top)
    return shared > 0.5 * min(last.height, line.height) and last.right - 0.2 * last.height <= line.left <= last.right + 4 * last.height


def _blocks(lines: Sequence[Line]) -> list[list[Line]]:
    blocks: list[list[Line]] = []
    for line in lines:
        if blocks and _goes_on(blocks[-1][-1], line):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _goes_on(last: Line, line: Line) -> bool:
    height = max(last.height, line.height)
    similar = min(last.height, line.height) > 0.8 * height
    gap = line.top - last.bottom
    over_each_other = min(last.right, line.right) > max(last.left, line.left)
    return similar and over_each_other and -0.6 * height < gap < BLOCK_GAP * height and line.top > last.top


def _paragraph(block: Sequence[Line], keep_hyphen: frozenset[str]) -> Paragraph:
    width = max(line.right for line in block) - min(line.left for line in block)
    text = ""
    for i, line in enumerate(block):
        text += line.text.strip() if i == 0 else _joint(text, block[i - 1], line, width) + line.text.strip()
    text = _mend_hyphens(text, keep_hyphen)
    full = block[-1].right - block[-1].left >= FULL_LINE * width
    return Paragraph(text, median(line.height for line in block), len(block), full and len(text) > 40)


def _joint(before: str, last: Line, line: Line, width: float) -> str:
    following = line.text.lstrip()
    if before.endswith(SOFT_HYPHEN):
        return ""
    if last.right - last.left < FULL_LINE * width or _ITEM.match(following) or _is_indented(last, line):
        return "\n"
    if before.endswith(("-", "\u2010")) and len(before) > 1 and before[-2].isalpha() and following[:1].islower():
        return SOFT_HYPHEN
    return "" if _UNSPACED.match(before[-1:]) and _UNSPACED.match(following) else " "


def _is_indented(last: Line, line: Line) -> bool:
    """Whether a line begins further in than the one before: a new paragraph, or code; not so below an item's mark."""
    leftwards = bool(_RIGHT_TO_LEFT.search(line.text))
    indent = last.right - line.right if leftwards else line.left - last.left
    return indent > 0.5 * line.height and not _ITEM.match(last.text)


def _mend_hyphens(text: str, keep_hyphen: frozenset[str]) -> str:
    """Close words that a line end cut: the hyphen goes unless a capital or a digit follows, or the word is known to have it."""

    def mended(match: re.Match[str]) -> str:
        first, second = match[1].rstrip("-\u2010"), match[2]
        hyphenated = f"{first}-{second}"
        own = not second[:1].islower() or not first or hyphenated.lower() in keep_hyphen
        return hyphenated if own else first + second

    return re.sub(rf"([^\s{SOFT_HYPHEN}]*){SOFT_HYPHEN}\s*(\w*)", mended, text)


def hyphenated_words(texts: Sequence[str]) -> frozenset[str]:
    """Words with a hyphen inside a line, lower case: their hyphen at a line end is their own."""
    return frozenset(word.lower() for text in texts for word in re.findall(r"\w+-\w+", text))
