"""What a document's blocks say about where to cut: sections under headings, and what stays in one piece."""

import re
from collections.abc import Sequence
from itertools import pairwise

from stemma.chunking.breaks import Solid
from stemma.chunking.graphemes import is_boundary, next_visible
from stemma.chunking.ruler import Ruler
from stemma.chunking.spans import ATOMIC
from stemma.parsing.document import Block, ParsedDocument

TINY = 8
"""A section is tiny below this part of the size."""

_LINE = re.compile(r"[^\n]+")


def usable_blocks(document: ParsedDocument) -> list[Block]:
    """The blocks whose edges a cut may follow: a parser may divide a grapheme cluster, a chunk does not."""
    text = document.text
    return [
        block
        for block in document.blocks
        if block.char_start < block.char_end and is_boundary(text, block.char_start) and is_boundary(text, block.char_end)
    ]


def sections(text: str, blocks: Sequence[Block], *, size: int = 0) -> list[tuple[int, int]]:
    """Stretches that cover the text, one per section, from a heading to the next one of whatever level.

    Text before the first heading is a section too. Bare headings join what follows them. So does a section below an eighth of the
    size, when both fit it: characters; 0 when none is to join for that.
    """
    heading_ends = {block.char_start: block.char_end for block in blocks if block.kind == "heading"}
    edges = sorted({0, len(text), *heading_ends})
    joined: list[tuple[int, int]] = []
    bare = False  # whether the last of `joined` is headings alone
    for start, end in pairwise(edges):
        begin = start
        if joined:
            tiny = start - joined[-1][0] < size // TINY and len(text[joined[-1][0] : end].strip()) <= size
            if bare or tiny:
                begin, _ = joined.pop()
        holds_text = next_visible(text, heading_ends.get(start, start), end) is not None
        bare = not holds_text and (bare or begin == start)
        joined.append((begin, end))
    return joined


def solids(text: str, blocks: Sequence[Block], *, size: int, hard_limit: int, ruler: Ruler) -> list[Solid]:
    """What is not cut: atomic blocks up to the hard limit, the lines of longer ones, and each heading with the beginning of its text."""
    found: list[Solid] = []  # from the last to the first
    for block in reversed(blocks):
        if block.kind in ATOMIC:
            if ruler.fits(block.char_start, block.char_end, hard_limit):
                found.append(Solid(block.char_start, block.char_end, hard_limit))
            else:
                lines = [line.span() for line in _LINE.finditer(text, block.char_start, block.char_end)]
                found += [Solid(start, end, size) for start, end in reversed(lines) if ruler.fits(start, end, size)]
        elif block.kind == "heading":
            found += _with_its_text(text, block.char_start, block.char_end, found, size=size, ruler=ruler)
    return found[::-1]


def _with_its_text(text: str, start: int, end: int, found: list[Solid], *, size: int, ruler: Ruler) -> list[Solid]:
    """The heading as a solid that holds what follows it too, if both fit; a solid that begins there is taken off `found`."""
    alone = [Solid(start, end, size)] if ruler.fits(start, end, size) else []
    body = next_visible(text, end, len(text))
    if body is None:
        return alone
    following = found[-1] if found and found[-1].char_start <= body < found[-1].char_end else Solid(body, body + 1, size)
    if not ruler.fits(start, following.char_end, following.limit):
        return alone
    if found and following == found[-1]:
        found.pop()
    return [Solid(start, following.char_end, following.limit)]
