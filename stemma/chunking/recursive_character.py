"""Cuts a text along paragraphs, else lines, sentences, clauses and words, whatever its format."""

from stemma.chunking.breaks import Breaks
from stemma.chunking.spans import Span, typed_spans
from stemma.chunking.windows import windows
from stemma.parsing.document import ParsedDocument


def recursive_character(document: ParsedDocument, *, size: int, overlap: int) -> list[Span]:
    """Chunks of at most `size` characters; headings, tables and code are text like any other."""
    text = document.text
    found = windows(Breaks(text), text, 0, len(text), size=size, overlap=overlap)
    return typed_spans(document.blocks, found)
