"""The places where a text may be cut, by strength."""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stemma.chunking.graphemes import is_boundary

Kind = re.Pattern[str] | Sequence[int]
"""A kind of break: at the end of every match, or at these positions, ascending."""

PARAGRAPHS = re.compile(r"\n(?:[^\S\n]*\n)+")
LINES = re.compile(r"\n")
# Thai and Lao write none of the marks and put a space between sentences only.
SENTENCES = re.compile(
    r"[.!?…][\"'”’»)\]]*\s+|[。！？｡．][”’」』）】》〉]*|[؟۔।॥።။។៕։།༎][”’»)\]]*\s*|(?<=[\u0e00-\u0eff]) +(?=[\u0e00-\u0eff])"
)
CLAUSES = re.compile(r"[,;:]\s+|[，、；：،؛፣]\s*")
WORDS = re.compile(r"\s+|\u200b+")

RECURSIVE: tuple[Kind, ...] = (PARAGRAPHS, LINES, SENTENCES, CLAUSES, WORDS)
"""From the strongest to the weakest."""


@dataclass(frozen=True, slots=True)
class Solid:
    """A stretch that is not cut while a window that holds it to its end measures at most `limit`."""

    char_start: int
    char_end: int
    limit: int


class Breaks:
    """The breaks of a text; each kind is looked for once, when it is first needed."""

    def __init__(self, text: str, solids: Iterable[Solid] = (), *, kinds: Sequence[Kind] = RECURSIVE) -> None:
        """`solids` are ordered and do not overlap; there is no break inside of them. `kinds`: the strongest first."""
        self._text = text
        self._solids = list(solids)
        self._starts = [solid.char_start for solid in self._solids]
        self._kinds = kinds
        self._found: list[array[int] | None] = [None] * len(kinds)

    def solid_around(self, position: int) -> Solid | None:
        """The solid that a cut before `position` would divide."""
        i = bisect_left(self._starts, position) - 1
        return self._solids[i] if i >= 0 and position < self._solids[i].char_end else None

    def last(self, low: int, high: int) -> int | None:
        """The last break in [low, high] of the strongest kind that has one there."""
        if low <= high:
            for strength in range(len(self._kinds)):
                positions = self._positions(strength)
                i = bisect_right(positions, high) - 1
                if i >= 0 and positions[i] >= low:
                    return positions[i]
        return None

    def first(self, low: int, high: int) -> int | None:
        """The first break in [low, high] of the strongest kind that has one there."""
        if low <= high:
            for strength in range(len(self._kinds)):
                positions = self._positions(strength)
                i = bisect_left(positions, low)
                if i < len(positions) and positions[i] <= high:
                    return positions[i]
        return None

    def _positions(self, strength: int) -> "array[int]":
        positions = self._found[strength]
        if positions is None:
            text, kind = self._text, self._kinds[strength]
            ends = (match.end() for match in kind.finditer(text)) if isinstance(kind, re.Pattern) else kind
            positions = array("q", (end for end in ends if self.solid_around(end) is None and is_boundary(text, end)))
            self._found[strength] = positions
        return positions
