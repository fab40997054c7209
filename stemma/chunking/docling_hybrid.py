"""Cuts by structure first, then by tokens: what docling's HybridChunker does with its items, done with our blocks.

- A section runs from a heading to the next one; bare headings join what follows. Within a section blocks that stand next to each
  other share a chunk as long as they fit; sections never do, however small.
- A block that does not fit is cut: a table or code between lines, prose at the ends of sentences.
- The breadcrumb of a chunk (title, headings, and below a table's head that head) counts toward the size, since it is embedded with
  the chunk; the text keeps at least half of the size, where docling drops headings that leave it nothing.

Unlike docling's, a chunk is one stretch of the document: its headings stand in it, once, and nothing is pasted.
"""

from bisect import bisect_left
from dataclasses import dataclass

from stemma.chunking.breadcrumb import breadcrumb
from stemma.chunking.breaks import CLAUSES, LINES, PARAGRAPHS, WORDS, Breaks, Solid
from stemma.chunking.headings import HeadingTrails
from stemma.chunking.ruler import Tokens
from stemma.chunking.sentences import sentence_ends
from stemma.chunking.spans import Span, typed_spans
from stemma.chunking.structure import sections, solids, usable_blocks
from stemma.chunking.table_headers import header_of
from stemma.chunking.tokenizer import Tokenizer
from stemma.chunking.windows import windows
from stemma.parsing.document import Block, ParsedDocument


@dataclass(frozen=True, slots=True)
class _Peers:
    """A stretch whose blocks may share chunks, and the tokens that one of them may have."""

    char_start: int
    char_end: int
    room: int
    blocks: list[Block]


def docling_hybrid(document: ParsedDocument, *, size: int, overlap: int, tokenizer: Tokenizer) -> list[Span]:
    """Chunks of at most `size` tokens, breadcrumb included where it is no longer than half of that."""
    text = document.text
    blocks = usable_blocks(document)
    ruler = Tokens(text, tokenizer)
    peers = _peers(document, blocks, ruler, size=size)
    kept: list[Solid] = []
    for stretch in peers:
        kept += solids(text, stretch.blocks, size=stretch.room, hard_limit=stretch.room, ruler=ruler)
    edges = sorted({edge for block in blocks for edge in (block.char_start, block.char_end)})
    breaks = Breaks(text, kept, kinds=(edges, PARAGRAPHS, sentence_ends(text, blocks), LINES, CLAUSES, WORDS))
    found: list[tuple[int, int]] = []
    for stretch in peers:
        room, reach = stretch.room, min(overlap, stretch.room - 1)
        found += windows(breaks, text, stretch.char_start, stretch.char_end, size=room, overlap=reach, ruler=ruler, whole=True)
    return typed_spans(document.blocks, found)


def _peers(document: ParsedDocument, blocks: list[Block], ruler: Tokens, *, size: int) -> list[_Peers]:
    """The sections; a table that does not fit stands for itself, with headings right before it and with room for its head."""
    text = document.text
    trails = HeadingTrails(document)
    starts = [block.char_start for block in blocks]
    found: list[_Peers] = []

    def room(trail: list[str], header: str | None = None) -> int:
        return max(1, size - min(ruler.count(breadcrumb(document.title, trail, header)), size // 2))

    for start, end in sections(text, blocks):
        inside = blocks[bisect_left(starts, start) : bisect_left(starts, end)]
        trail = trails.over(start, end)
        whole = room(trail)
        begin, first = start, 0
        for i, block in enumerate(inside):
            if block.kind == "table" and not ruler.fits(block.char_start, block.char_end, whole):
                if any(before.kind != "heading" for before in inside[first:i]):
                    found.append(_Peers(begin, block.char_start, whole, inside[first:i]))
                    begin, first = block.char_start, i
                found.append(_Peers(begin, block.char_end, room(trail, header_of(text, block)), inside[first : i + 1]))
                begin, first = block.char_end, i + 1
        found.append(_Peers(begin, end, whole, inside[first:]))
    return found
