"""Where a text may be cut: never inside what a reader sees as one character, and what a reader sees at all."""

import regex

_CLUSTER = regex.compile(r"\X")
_PLAIN_PAIR = regex.compile(r"\p{Grapheme_Cluster_Break=Other}{2}")
# More than UAX #29 asks: a mark after a line end, or a letter after a joiner, is not torn off either.
_JOINS_THE_ONE_BEFORE = regex.compile(r"[\p{M}\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_VISIBLE = regex.compile(r"[^\s\p{White_Space}\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]")
_LOOK_BACK = 64
"""Code points looked at for the start of a cluster; longer ones (no script has them) may be judged from their middle."""


def is_boundary(text: str, position: int) -> bool:
    """Whether a cut before `position` leaves every grapheme cluster whole."""
    if position <= 0 or position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    if before < "\u0300" and after < "\u0300":
        return not (before == "\r" and after == "\n")
    if before == "\u200d" or _JOINS_THE_ONE_BEFORE.match(after):
        return False
    if _PLAIN_PAIR.match(text, position - 1):
        return True
    begin = position - 1
    while begin > max(0, position - _LOOK_BACK) and not _PLAIN_PAIR.match(text, begin - 1):
        begin -= 1
    # A copy, since the pattern counts flags back to the beginning of the string that it is given.
    clusters = _CLUSTER.finditer(text[begin : position + 1])
    return any(cluster.end() == position - begin for cluster in clusters)


def boundary_before(text: str, position: int, *, lowest: int) -> int:
    """The last boundary <= `position`; `lowest` if there is none above it."""
    while position > lowest and not is_boundary(text, position):
        position -= 1
    return position


def boundary_after(text: str, position: int, *, highest: int) -> int:
    """The first boundary >= `position`; `highest` if there is none below it."""
    while position < highest and not is_boundary(text, position):
        position += 1
    return position


def next_visible(text: str, start: int, end: int) -> int | None:
    """The first position in [start, end) that holds something visible; None when all of it is blank.

    Spaces of every kind, controls, format characters (zero-width spaces, joiners, byte-order marks), fillers and lone
    variation selectors are blank.
    """
    found = _VISIBLE.search(text, start, end)
    return found.start() if found else None
