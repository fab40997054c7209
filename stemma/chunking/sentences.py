"""Where sentences end, in any script."""

import re
from collections.abc import Sequence
from itertools import pairwise

from stemma.chunking.breaks import PARAGRAPHS, SENTENCES
from stemma.chunking.graphemes import is_boundary
from stemma.chunking.spans import ATOMIC
from stemma.parsing.document import Block

_BY_LINES = {*ATOMIC, "list"}
"""Kinds of blocks in which every line stands for itself."""
_LINE_END = re.compile(r"\n")
_ABBREVIATION = re.compile(
    r"(?:^|[^\w.])(?:[^\W\d_]|\w+(?:\.\w+)+|[Mm]rs?|[Mm]s|[Dd]r|[Pp]rof|[Ss]t|[Jj]r|[Ss]r|[Nn]o|[Nn]os|[Ff]igs?|[Vv]ols?|[Ee]qs?|vs|cf|al|pp|ca|etc|approx|"
    r"[Nn]r|[Aa]bb|[Aa]bs|[Vv]gl|[Bb]zw|usw|ggf|[Ss]og|[Bb]d|[Hh]rsg|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Okt|Nov|De[cz]|Inc|Ltd|Corp)$"
)
_LONGEST_ABBREVIATION = 16


def sentence_ends(text: str, blocks: Sequence[Block]) -> list[int]:
    """Places after the ends of sentences, white space after them included, ascending; the text's own end is not named.

    A paragraph ends a sentence, and so does the edge of a block; in lists, tables and code every line does. A full stop does not
    where a small letter follows, or an initial or an abbreviation stands before it.
    """
    ends = {match.end() for match in PARAGRAPHS.finditer(text)}
    ends.update(match.end() for match in SENTENCES.finditer(text) if not _is_within_sentence(text, match))
    for block in blocks:
        ends.update((block.char_start, block.char_end))
        if block.kind in _BY_LINES:
            ends.update(match.end() for match in _LINE_END.finditer(text, block.char_start, block.char_end))
    return sorted(end for end in ends if 0 < end < len(text) and is_boundary(text, end))


def sentences(text: str, ends: Sequence[int]) -> list[tuple[int, int]]:
    """The stretches of the text between those places that are not white space alone, in order."""
    return [(start, end) for start, end in pairwise([0, *ends, len(text)]) if text[start:end].strip()]


def _is_within_sentence(text: str, match: re.Match[str]) -> bool:
    if not match[0].startswith(".") or "\n\n" in match[0]:
        return False
    if match.end() < len(text) and text[match.end()].islower():
        return True
    return _ABBREVIATION.search(text[max(0, match.start() - _LONGEST_ABBREVIATION) : match.start()]) is not None
