"""Cuts a text where its meaning turns: between sentences whose neighbourhoods lie further apart than most in the document.

Every sentence is embedded once, by itself, so that an edit embeds the sentences it changed and no others. The distance at a gap is
one minus the cosine of the mean vectors of up to `NEIGHBOURS` sentences on either side. Gaps above the `PERCENTILE` of the document
part it into topics, which are then filled into chunks up to the size in tokens, preferably ending where the distance is above the
median. No chunk and no overlap reaches over a topic's edge.

After Hearst, "TextTiling", Computational Linguistics 23(1), 1997, and Kamradt's breakpoint splitter; the limits are ours.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from stemma.chunking.breaks import CLAUSES, LINES, WORDS, Breaks
from stemma.chunking.ruler import Tokens
from stemma.chunking.sentences import sentence_ends, sentences
from stemma.chunking.spans import ATOMIC, Span, typed_spans
from stemma.chunking.structure import TINY, solids, usable_blocks
from stemma.chunking.tokenizer import Tokenizer
from stemma.chunking.windows import windows
from stemma.parsing.document import Block, ParsedDocument

Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]
"""Texts -> their vectors, shape (len(texts), dimension), rows of length 1; the same vector for the same text."""

PERCENTILE = 90
"""Of the distances in a document; a topic is thus ten sentences long on average."""
NEIGHBOURS = 3
"""Sentences whose mean stands for one side of a gap."""
MAX_EMBEDDED = 5_000
"""Stretches embedded per document; in a longer one neighbouring sentences are embedded together."""
EMBEDDED_CHARS = 1_000
"""Longest part of a stretch that is embedded: about what the model reads at once."""


def semantic(document: ParsedDocument, *, size: int, overlap: int, tokenizer: Tokenizer, embed: Embed) -> list[Span]:
    """Chunks of at most `size` tokens; a table, code block or formula that fits is not divided."""
    text = document.text
    blocks = usable_blocks(document)
    ruler = Tokens(text, tokenizer)
    ends = _outside_of_atomic(sentence_ends(text, blocks), blocks)
    stretches = _grouped(sentences(text, ends))
    gaps = np.array([start for start, _ in stretches[1:]], dtype=np.int64)
    distances = _distances(text, stretches, embed)
    turns, hints = (_above(gaps, distances, percentile) for percentile in (PERCENTILE, 50))
    kept = solids(text, blocks, size=size, hard_limit=size, ruler=ruler)
    breaks = Breaks(text, kept, kinds=(hints, sentence_ends(text, blocks), LINES, CLAUSES, WORDS))
    found: list[tuple[int, int]] = []
    for start, end in pairwise([0, *_far_enough(turns, breaks, ruler, size=size), len(text)]):
        found += windows(breaks, text, start, end, size=size, overlap=overlap, ruler=ruler)
    return typed_spans(document.blocks, found)


def _outside_of_atomic(ends: list[int], blocks: Sequence[Block]) -> list[int]:
    """Those of the places that are not inside a table, code block or formula: each of them is one stretch."""
    atomic = iter([block for block in blocks if block.kind in ATOMIC])
    outside: list[int] = []
    block = next(atomic, None)
    for end in ends:
        while block is not None and block.char_end <= end:
            block = next(atomic, None)
        if block is None or end <= block.char_start:
            outside.append(end)
    return outside


def _grouped(stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """At most `MAX_EMBEDDED` stretches, each of as many neighbours as that takes."""
    together = -(-len(stretches) // MAX_EMBEDDED) or 1
    groups = [stretches[i : i + together] for i in range(0, len(stretches), together)]
    return [(group[0][0], group[-1][1]) for group in groups]


def _distances(text: str, stretches: Sequence[tuple[int, int]], embed: Embed) -> npt.NDArray[np.float64]:
    """The distance at each gap, shape (len(stretches) - 1,)."""
    if len(stretches) < 2:
        return np.empty(0)
    vectors = embed([text[start:end].strip()[:EMBEDDED_CHARS] for start, end in stretches]).astype(np.float64)
    sums = np.concatenate([np.zeros((1, vectors.shape[1])), np.cumsum(vectors, axis=0)])
    gap = np.arange(1, len(stretches))
    before = sums[gap] - sums[np.maximum(gap - NEIGHBOURS, 0)]
    after = sums[np.minimum(gap + NEIGHBOURS, len(stretches))] - sums[gap]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines: npt.NDArray[np.float64] = (before * after).sum(axis=1) / np.maximum(lengths, 1e-12)
    # The same sentence embedded in another batch differs in the seventh digit; chunks should not.
    return np.round(1 - cosines, 4)


def _above(gaps: npt.NDArray[np.int64], distances: npt.NDArray[np.float64], percentile: int) -> list[int]:
    """The gaps whose distance is above that percentile of all of them."""
    return gaps[distances > np.percentile(distances, percentile)].tolist() if len(gaps) else []


def _far_enough(turns: Sequence[int], breaks: Breaks, ruler: Tokens, *, size: int) -> list[int]:
    """The turns without those that lie in a solid or would leave a topic below an eighth of the size."""
    kept: list[int] = []
    for turn in turns:
        tiny = ruler.furthest(kept[-1] if kept else 0, size // TINY) >= turn
        if not tiny and breaks.solid_around(turn) is None:
            kept.append(turn)
    return kept
