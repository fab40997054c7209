"""Where a passage stands, on one bounded line: the document's title, the headings over it, and the head of its table.

It is what the structural context puts before a chunk, and so what counts toward the limit where a strategy leaves room for it.
"""

import re
from collections.abc import Sequence

from stemma.chunking.graphemes import boundary_before, next_visible

MAX_CHARS = 300
"""Longest breadcrumb: about a third of the embedding model's window, so that the chunk itself keeps the greater weight."""
MAX_PART_CHARS = 120
"""Longest title or heading within it; a longer one ends in an ellipsis."""
MAX_HEADER_CHARS = 160
"""Longest table header within it: beside the outermost part it still fits."""

_SEPARATOR = " > "
_ELLIPSIS = "…"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def breadcrumb(title: str | None, section_path: Sequence[str], table_header: str | None = None) -> str:
    """`Title > Heading > Subheading > Column | Column`; empty when nothing is known.

    A title that equals the outermost heading (spaces and case aside) is said once. Above `MAX_CHARS` the outermost part and as many
    of the innermost stay as fit; an ellipsis stands for those between.
    """
    parts = [words for part in (title or "", *section_path) if (words := clipped(one_line(part), MAX_PART_CHARS))]
    if title and section_path and len(parts) > 1 and one_line(title).casefold() == one_line(section_path[0]).casefold():
        parts = parts[1:]
    if header := clipped(one_line(table_header or ""), MAX_HEADER_CHARS):
        parts.append(header)
    return _SEPARATOR.join(_fit(parts))


def one_line(words: str) -> str:
    """Without NUL and other controls, every stretch of white space one space; empty when nothing in it is visible."""
    return " ".join(_CONTROLS.sub(" ", words).split()) if next_visible(words, 0, len(words)) is not None else ""


def clipped(words: str, max_chars: int) -> str:
    """At most `max_chars`, cut between words where there are several; an ellipsis stands for the rest."""
    if len(words) <= max_chars:
        return words
    head = words[: boundary_before(words, max_chars - len(_ELLIPSIS), lowest=1)]
    return (head.rpartition(" ")[0] or head) + _ELLIPSIS


def _fit(parts: list[str]) -> list[str]:
    if _length(parts) <= MAX_CHARS:
        return parts
    outermost, inner = parts[0], parts[1:]
    kept: list[str] = []
    for part in reversed(inner):
        if _length([outermost, _ELLIPSIS, part, *kept]) > MAX_CHARS:
            break
        kept.insert(0, part)
    return [outermost, _ELLIPSIS, *kept]


def _length(parts: list[str]) -> int:
    return sum(map(len, parts)) + len(_SEPARATOR) * (len(parts) - 1)
