"""Cuts a text along its headings first, and keeps tables, code and formulas whole; any format with blocks, not Markdown alone.

- A section runs from a heading to the next one, of whatever level; text before the first heading is a section too.
  Sections are chunked each by itself, and no overlap reaches over a heading.
- A section that is a heading alone joins the next one. So does a tiny one, below an eighth of the size, when both fit one chunk.
- A table, code block or formula stays whole, with a heading right before it, up to `HARD_LIMIT` sizes; a longer one is cut
  between lines, and inside a line only where the line exceeds the size.

Without blocks the chunks are those of `recursive_character`.
"""

import re
from itertools import pairwise

from stemma.chunking.graphemes import is_boundary, next_visible
from stemma.chunking.spans import ATOMIC, Span, typed_spans
from stemma.chunking.windows import Breaks, Solid, windows
from stemma.parsing.document import Block, ParsedDocument

HARD_LIMIT = 4
"""Sizes up to which an atomic block stays whole."""
TINY = 8
"""A section is tiny below this part of the size."""

_LINE = re.compile(r"[^\n]+")


def markdown_aware(document: ParsedDocument, *, size: int, overlap: int) -> list[Span]:
    """Chunks of at most `size` characters, or `HARD_LIMIT` times that around a block that is kept whole."""
    text = document.text
    blocks = [block for block in document.blocks if _is_usable(text, block)]
    breaks = Breaks(text, _solids(text, blocks, size=size))
    found: list[tuple[int, int]] = []
    for start, end in _sections(text, blocks, size=size):
        found += windows(breaks, text, start, end, size=size, overlap=overlap)
    return typed_spans(document.blocks, found)


def _is_usable(text: str, block: Block) -> bool:
    """Whether a cut may follow the block's edges: a parser that divides a grapheme cluster does not."""
    return block.char_start < block.char_end and is_boundary(text, block.char_start) and is_boundary(text, block.char_end)


def _sections(text: str, blocks: list[Block], *, size: int) -> list[tuple[int, int]]:
    """Stretches that cover the text, one per section, bare headings and tiny sections joined with what follows them."""
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


def _solids(text: str, blocks: list[Block], *, size: int) -> list[Solid]:
    """What is not cut: atomic blocks, the lines of those that are too long, and each heading with the beginning of its text."""
    solids: list[Solid] = []  # from the last to the first
    for block in reversed(blocks):
        if block.kind in ATOMIC:
            if block.char_end - block.char_start <= HARD_LIMIT * size:
                solids.append(Solid(block.char_start, block.char_end, HARD_LIMIT * size))
            else:
                lines = [line.span() for line in _LINE.finditer(text, block.char_start, block.char_end)]
                solids += [Solid(start, end, size) for start, end in reversed(lines) if end - start <= size]
        elif block.kind == "heading":
            solids += _with_its_text(text, block.char_start, block.char_end, solids, size=size)
    return solids[::-1]


def _with_its_text(text: str, start: int, end: int, solids: list[Solid], *, size: int) -> list[Solid]:
    """The heading as a solid that holds what follows it too, if both fit; a solid that begins there is taken off `solids`."""
    body = next_visible(text, end, len(text))
    if body is None:
        return [Solid(start, end, size)] if end - start <= size else []
    following = solids[-1] if solids and solids[-1].char_start <= body < solids[-1].char_end else Solid(body, body + 1, size)
    if following.char_end - start <= following.limit:
        if solids and following == solids[-1]:
            solids.pop()
        return [Solid(start, following.char_end, following.limit)]
    return [Solid(start, end, size)] if end - start <= size else []
