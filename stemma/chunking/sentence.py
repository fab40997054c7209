"""Packs whole sentences, as many as fit; a table, code block or formula that fits is not divided either."""

from stemma.chunking.breaks import CLAUSES, LINES, WORDS, Breaks
from stemma.chunking.ruler import CHARACTERS
from stemma.chunking.sentences import sentence_ends
from stemma.chunking.spans import Span, typed_spans
from stemma.chunking.structure import solids, usable_blocks
from stemma.chunking.windows import windows
from stemma.parsing.document import ParsedDocument


def sentence(document: ParsedDocument, *, size: int, overlap: int) -> list[Span]:
    """Chunks of at most `size` characters that end where a sentence ends; a longer one is cut at lines, clauses and words."""
    text = document.text
    blocks = usable_blocks(document)
    kinds = (sentence_ends(text, blocks), LINES, CLAUSES, WORDS)
    breaks = Breaks(text, solids(text, blocks, size=size, hard_limit=size, ruler=CHARACTERS), kinds=kinds)
    return typed_spans(document.blocks, windows(breaks, text, 0, len(text), size=size, overlap=overlap, whole=True))
