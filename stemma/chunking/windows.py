"""Cuts a stretch of text into windows at the best places it offers: the engine of every strategy.

A window ends at the strongest kind of break found in its second half, else at the strongest in its first half, else between two
grapheme clusters. With `whole`, the strongest kind is taken wherever in the window it has its last break.
"""

from dataclasses import dataclass

from stemma.chunking.breaks import Breaks
from stemma.chunking.graphemes import boundary_after, boundary_before, is_boundary, next_visible
from stemma.chunking.ruler import CHARACTERS, Ruler


def windows(
    breaks: Breaks, text: str, start: int, end: int, *, size: int, overlap: int, ruler: Ruler = CHARACTERS, whole: bool = False
) -> list[tuple[int, int]]:
    """(char_start, char_end) of windows that together hold every visible character of text[start:end], in order.

    Starts and ends strictly increase; no window is blank, begins or ends with white space, or measures more than `size`, unless it
    holds a solid with a higher limit, or is one character that measures more. A window begins at most `overlap` before the end of
    the one before it, less where what it adds would not fit. A cluster that measures more than `size` is cut; others are not.
    """
    stretch = _Stretch(breaks, ruler, text, end, size, overlap, whole)
    found: list[tuple[int, int]] = []
    done = start  # everything visible before it lies in a window
    while (visible := next_visible(text, done, end)) is not None:
        cluster = stretch.cluster(visible, done)
        window_start = stretch.window_start(found, done, cluster)
        cut = stretch.cut(window_start, cluster)
        window_end = window_start + len(text[window_start:cut].rstrip())
        found.append((window_start, boundary_after(text, window_end, highest=cut)))
        done = cut
    return found


@dataclass(frozen=True, slots=True)
class _Stretch:
    """What one call of `windows` works with; `end` is where the stretch ends."""

    breaks: Breaks
    ruler: Ruler
    text: str
    end: int
    size: int
    overlap: int
    whole: bool

    def cluster(self, visible: int, done: int) -> tuple[int, int]:
        """The cluster of the character at `visible`, or as much of it as the size holds; at least that character."""
        lowest = max(done, min(visible, self.ruler.earliest(visible + 1, self.size)))
        start = boundary_before(self.text, visible, lowest=lowest)
        highest = max(visible + 1, min(self.end, self.ruler.furthest(start, self.size)))
        stop = boundary_after(self.text, visible + 1, highest=highest)
        return (start, stop) if self.ruler.fits(start, stop, self.size) else (visible, visible + 1)

    def window_start(self, found: list[tuple[int, int]], done: int, cluster: tuple[int, int]) -> int:
        """Where the window that adds the cluster begins: as far back as overlap, size and the window before allow, at a good place."""
        cluster_start, cluster_end = cluster
        solid = self.breaks.solid_around(cluster_end)
        must_fit = self.ruler.earliest(solid.char_end if solid else cluster_end, self.size)
        if found and self.overlap:
            position = self._overlap_start(found[-1], done, cluster, must_fit)
            if position is not None:
                return position
        position = min(max(done, must_fit), cluster_start)
        position = self._skip_space(boundary_after(self.text, position, highest=cluster_start), cluster_start)
        return position if self.ruler.fits(position, cluster_end, self.size) else cluster_start

    def _overlap_start(self, before: tuple[int, int], done: int, cluster: tuple[int, int], must_fit: int) -> int | None:
        """Where the overlap with the window before begins, if there can be one."""
        cluster_start, cluster_end = cluster
        reach = self.ruler.earliest(before[1], self.overlap)
        earliest = max(reach, before[0] + 1, must_fit)
        position = self.breaks.first(earliest, min(earliest + (before[1] - reach) // 2, done))
        if position is None:
            position = self.breaks.first(earliest, done)
        if position is None and earliest < done:
            position = boundary_after(self.text, earliest, highest=done)
        if position is None or position >= done or self.breaks.solid_around(position) is not None:
            return None
        position = self._skip_space(position, cluster_start)
        fits = self.ruler.fits(position, before[1], self.overlap) and self.ruler.fits(position, cluster_end, self.size)
        return position if fits else None

    def _skip_space(self, position: int, highest: int) -> int:
        """The first boundary from `position` on that is no white space; `highest` if there is none below it."""
        return boundary_before(self.text, highest - len(self.text[position:highest].lstrip()), lowest=position)

    def cut(self, window_start: int, cluster: tuple[int, int]) -> int:
        """Where the window ends, white space after it included: after the cluster, within the size unless in a solid."""
        cluster_start, cluster_end = cluster
        furthest = max(cluster_end, min(self.end, self.ruler.furthest(window_start, self.size)))
        solid = self.breaks.solid_around(furthest) if furthest < self.end else None
        if solid and solid.char_start <= cluster_start and self.ruler.fits(window_start, solid.char_end, solid.limit):
            return solid.char_end
        while True:
            cut = self._best_cut(window_start, cluster_end, furthest)
            if cut <= cluster_end or self.ruler.fits(window_start, cut, self.size):
                return cut
            # A place inside a word, which the ruler took for fewer tokens.
            furthest = max(cluster_end, window_start + (cut - window_start) * 3 // 4)

    def _best_cut(self, window_start: int, cluster_end: int, furthest: int) -> int:
        """The best place between the cluster's end and `furthest`."""
        if furthest >= self.end:
            return self.end
        half = cluster_end if self.whole else max(cluster_end, window_start + (furthest - window_start) // 2)
        cut = self.breaks.last(half, furthest) or self.breaks.last(cluster_end, half)
        if cut is not None:
            return cut
        solid = self.breaks.solid_around(furthest)
        if solid and solid.char_start >= cluster_end and is_boundary(self.text, solid.char_start):
            return solid.char_start
        return boundary_before(self.text, furthest, lowest=cluster_end)
