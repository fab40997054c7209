"""A chunk per page, slide or sheet; a page above the size is cut like `recursive_character`, and so is a document without pages."""

from itertools import pairwise

from stemma.chunking.breaks import Breaks
from stemma.chunking.graphemes import boundary_before
from stemma.chunking.spans import Span, typed_spans
from stemma.chunking.windows import windows
from stemma.parsing.document import ParsedDocument


def page(document: ParsedDocument, *, size: int, overlap: int) -> list[Span]:
    """Chunks of at most `size` characters, none of them on two pages; overlap reaches back within a page only."""
    text = document.text
    breaks = Breaks(text)
    # Text before the first page counts as part of it, text after a page as part of that page.
    edges = {boundary_before(text, page.char_start, lowest=0) for page in document.pages[1:] if page.char_start < page.char_end}
    found: list[tuple[int, int]] = []
    for start, end in pairwise(sorted({0, len(text), *edges})):
        found += windows(breaks, text, start, end, size=size, overlap=overlap)
    return typed_spans(document.blocks, found)
