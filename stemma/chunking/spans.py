"""What a chunking strategy returns: stretches of the document's text, nothing copied."""

from dataclasses import dataclass
from typing import Literal, Protocol

from stemma.parsing.document import Block, ParsedDocument

ChunkType = Literal["prose", "table", "code", "formula"]

ATOMIC: dict[str, ChunkType] = {"table": "table", "code": "code", "formula": "formula"}
"""Kinds of blocks that are of little use in halves, and the chunk type each gives."""


@dataclass(frozen=True, slots=True)
class Span:
    """One chunk. Offsets count code points of the document's text; the end is exclusive."""

    char_start: int
    char_end: int
    chunk_type: ChunkType


class Strategy(Protocol):
    """A pure function from a document to its chunks, in order.

    Starts strictly increase; every visible character lies in a chunk; no chunk is blank or measures more than `size`, unless it is a
    single character or the strategy keeps an atomic block whole; a chunk reaches at most `overlap` back into the one before it.
    """

    def __call__(self, document: ParsedDocument, *, size: int, overlap: int) -> list[Span]:
        """Chunks for 0 <= overlap < size, both in the strategy's unit."""
        ...


def typed_spans(blocks: tuple[Block, ...], windows: list[tuple[int, int]]) -> list[Span]:
    """The windows as spans; each has the type of the atomic block that fills more than half of it, else it is prose."""
    atomic = [block for block in blocks if block.kind in ATOMIC]
    spans: list[Span] = []
    first = 0
    for start, end in windows:
        while first < len(atomic) and atomic[first].char_end <= start:
            first += 1
        chunk_type: ChunkType = "prose"
        touching = first
        while touching < len(atomic) and atomic[touching].char_start < end:
            block = atomic[touching]
            if 2 * (min(end, block.char_end) - max(start, block.char_start)) > end - start:
                chunk_type = ATOMIC[block.kind]
            touching += 1
        spans.append(Span(start, end, chunk_type))
    return spans
