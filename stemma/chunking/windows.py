"""Cuts a stretch of text into windows at the best places it offers: the engine of the character-based strategies.

A window ends at the highest kind of break found in its second half (paragraph, line, sentence, clause, word), else at the
highest in its first half, else between two grapheme clusters. Sentence ends are those of all scripts, with or without a space.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from stemma.chunking.graphemes import boundary_after, boundary_before, is_boundary, next_visible

_BREAKS = [
    re.compile(pattern)
    for pattern in (
        r"\n(?:[^\S\n]*\n)+",  # paragraphs
        r"\n",  # lines
        # Sentences. Thai and Lao write none of the marks and put a space between sentences only.
        r"[.!?…][\"'”’»)\]]*\s+|[。！？｡．][”’」』）】》〉]*|[؟۔।॥።።။៕։།༎][”’»)\]]*\s*|(?<=[\u0e00-\u0eff]) +(?=[\u0e00-\u0eff])",
        r"[,;:]\s+|[，、；：،؛፣]\s*",  # clauses
        r"\s+|\u200b+",  # words
    )
]
"""From the strongest to the weakest; the break lies at the end of the match."""


@dataclass(frozen=True, slots=True)
class Solid:
    """A stretch that is not cut while a window that holds it to its end is at most `limit` characters long."""

    char_start: int
    char_end: int
    limit: int


class Breaks:
    """The places where a text may be cut, by strength; each kind is looked for once, when it is first needed."""

    def __init__(self, text: str, solids: Iterable[Solid] = ()) -> None:
        """`solids` are ordered and do not overlap; there is no break inside of them."""
        self._text = text
        self._solids = list(solids)
        self._starts = [solid.char_start for solid in self._solids]
        self._found: list[array[int] | None] = [None] * len(_BREAKS)

    def solid_around(self, position: int) -> Solid | None:
        """The solid that a cut before `position` would divide."""
        i = bisect_left(self._starts, position) - 1
        return self._solids[i] if i >= 0 and position < self._solids[i].char_end else None

    def last(self, low: int, high: int) -> int | None:
        """The last break in [low, high] of the strongest kind that has one there."""
        if low <= high:
            for strength in range(len(_BREAKS)):
                positions = self._positions(strength)
                i = bisect_right(positions, high) - 1
                if i >= 0 and positions[i] >= low:
                    return positions[i]
        return None

    def first(self, low: int, high: int) -> int | None:
        """The first break in [low, high] of the strongest kind that has one there."""
        if low <= high:
            for strength in range(len(_BREAKS)):
                positions = self._positions(strength)
                i = bisect_left(positions, low)
                if i < len(positions) and positions[i] <= high:
                    return positions[i]
        return None

    def _positions(self, strength: int) -> "array[int]":
        positions = self._found[strength]
        if positions is None:
            text = self._text
            ends = (match.end() for match in _BREAKS[strength].finditer(text))
            positions = array("q", (end for end in ends if self.solid_around(end) is None and is_boundary(text, end)))
            self._found[strength] = positions
        return positions


def windows(breaks: Breaks, text: str, start: int, end: int, *, size: int, overlap: int) -> list[tuple[int, int]]:
    """(char_start, char_end) of windows that together hold every visible character of text[start:end], in order.

    Starts and ends strictly increase; no window is blank, begins or ends with white space, or is longer than `size`, unless it
    holds a solid with a higher limit. A window begins at most `overlap` characters before the end of the one before it, less
    where the characters that it adds would not fit. A cluster longer than `size` is cut; others are not.
    """
    found: list[tuple[int, int]] = []
    done = start  # everything visible before it lies in a window
    while (visible := next_visible(text, done, end)) is not None:
        cluster_start = boundary_before(text, visible, lowest=max(done, visible + 1 - size))
        cluster_end = boundary_after(text, visible + 1, highest=min(end, cluster_start + size))
        window_start = _window_start(breaks, text, found, done, (cluster_start, cluster_end), size=size, overlap=overlap)
        cut = _cut(breaks, text, window_start, (cluster_start, cluster_end), end, size=size)
        window_end = window_start + len(text[window_start:cut].rstrip())
        found.append((window_start, boundary_after(text, window_end, highest=cut)))
        done = cut
    return found


def _window_start(
    breaks: Breaks, text: str, found: list[tuple[int, int]], done: int, cluster: tuple[int, int], *, size: int, overlap: int
) -> int:
    """Where the window that adds the cluster begins: as far back as overlap, size and the window before allow, at a good place."""
    cluster_start, cluster_end = cluster
    solid = breaks.solid_around(cluster_end)
    must_fit = (solid.char_end if solid else cluster_end) - size
    if found and overlap:
        earliest = max(found[-1][1] - overlap, found[-1][0] + 1, must_fit)
        position = breaks.first(earliest, min(earliest + overlap // 2, done))
        if position is None:
            position = breaks.first(earliest, done)
        if position is None and earliest < done:
            position = boundary_after(text, earliest, highest=done)
        if position is not None and position < done and breaks.solid_around(position) is None:
            return _skip_space(text, position, cluster_start)
    position = min(max(done, must_fit), cluster_start)
    return _skip_space(text, boundary_after(text, position, highest=cluster_start), cluster_start)


def _skip_space(text: str, position: int, highest: int) -> int:
    """The first boundary from `position` on that is no white space; `highest` if there is none below it."""
    return boundary_before(text, highest - len(text[position:highest].lstrip()), lowest=position)


def _cut(breaks: Breaks, text: str, window_start: int, cluster: tuple[int, int], end: int, *, size: int) -> int:
    """Where the window ends, white space after it included: after the cluster, at most `size` away unless in a solid."""
    cluster_start, cluster_end = cluster
    furthest = window_start + size
    if end <= furthest:
        return end
    solid = breaks.solid_around(furthest)
    if solid and solid.char_start <= cluster_start and solid.char_end - window_start <= solid.limit:
        return solid.char_end
    half = max(cluster_end, window_start + size // 2)
    cut = breaks.last(half, furthest) or breaks.last(cluster_end, half)
    if cut is not None:
        return cut
    if solid and solid.char_start >= cluster_end and is_boundary(text, solid.char_start):
        return solid.char_start
    return boundary_before(text, furthest, lowest=cluster_end)
