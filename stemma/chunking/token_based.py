"""Cuts a text into windows that are as full of tokens as they can be, whatever stands where: between words where there are any."""

from stemma.chunking.breaks import WORDS, Breaks
from stemma.chunking.ruler import Tokens
from stemma.chunking.spans import Span, typed_spans
from stemma.chunking.tokenizer import Tokenizer
from stemma.chunking.windows import windows
from stemma.parsing.document import ParsedDocument


def token_based(document: ParsedDocument, *, size: int, overlap: int, tokenizer: Tokenizer) -> list[Span]:
    """Chunks of at most `size` tokens; sentences, headings, tables and code are text like any other."""
    text = document.text
    breaks = Breaks(text, kinds=(WORDS,))
    found = windows(breaks, text, 0, len(text), size=size, overlap=overlap, ruler=Tokens(text, tokenizer))
    return typed_spans(document.blocks, found)
