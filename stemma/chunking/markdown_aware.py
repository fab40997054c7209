"""Cuts a text along its headings first, and keeps tables, code and formulas whole; any format with blocks, not Markdown alone.

- A section runs from a heading to the next one, of whatever level; text before the first heading is a section too.
  Sections are chunked each by itself, and no overlap reaches over a heading.
- A section that is a heading alone joins the next one. So does a tiny one, below an eighth of the size, when both fit one chunk.
- A table, code block or formula stays whole, with a heading right before it, up to `HARD_LIMIT` sizes; a longer one is cut
  between lines, and inside a line only where the line exceeds the size.

Without blocks the chunks are those of `recursive_character`.
"""

from stemma.chunking.breaks import Breaks
from stemma.chunking.ruler import CHARACTERS
from stemma.chunking.spans import Span, typed_spans
from stemma.chunking.structure import sections, solids, usable_blocks
from stemma.chunking.windows import windows
from stemma.parsing.document import ParsedDocument

HARD_LIMIT = 4
"""Sizes up to which an atomic block stays whole."""


def markdown_aware(document: ParsedDocument, *, size: int, overlap: int) -> list[Span]:
    """Chunks of at most `size` characters, or `HARD_LIMIT` times that around a block that is kept whole."""
    text = document.text
    blocks = usable_blocks(document)
    breaks = Breaks(text, solids(text, blocks, size=size, hard_limit=HARD_LIMIT * size, ruler=CHARACTERS))
    found: list[tuple[int, int]] = []
    for start, end in sections(text, blocks, size=size):
        found += windows(breaks, text, start, end, size=size, overlap=overlap)
    return typed_spans(document.blocks, found)
