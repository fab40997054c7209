"""The document's title and the trail of headings over a chunk: says where a passage stands without a model.

Nothing else enters, so an edit elsewhere in the document changes no chunk's context.
"""

import re
from collections.abc import Sequence

from stemma.chunking.graphemes import boundary_before, next_visible

MAX_CONTEXT_CHARS = 300
"""Longest context: about a third of the embedding model's window, so that the chunk itself keeps the greater weight."""
MAX_PART_CHARS = 120
"""Longest title or heading within it; a longer one ends in an ellipsis."""

_SEPARATOR = " > "
_ELLIPSIS = "…"
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def structural(title: str | None, section_path: Sequence[str]) -> str | None:
    """`Title > Heading > Subheading` on one line; None without title and headings.

    A title that equals the outermost heading (spaces and case aside) is said once. Above `MAX_CONTEXT_CHARS` the outermost part
    and as many of the innermost stay as fit; an ellipsis stands for those between.
    """
    parts = [words for part in (title or "", *section_path) if (words := _clip(_one_line(part)))]
    if title and section_path and len(parts) > 1 and _one_line(title).casefold() == _one_line(section_path[0]).casefold():
        parts = parts[1:]
    return _SEPARATOR.join(_fit(parts)) or None


def _fit(parts: list[str]) -> list[str]:
    if _length(parts) <= MAX_CONTEXT_CHARS:
        return parts
    outermost, inner = parts[0], parts[1:]
    kept: list[str] = []
    for part in reversed(inner):
        if _length([outermost, _ELLIPSIS, part, *kept]) > MAX_CONTEXT_CHARS:
            break
        kept.insert(0, part)
    return [outermost, _ELLIPSIS, *kept]


def _length(parts: list[str]) -> int:
    return sum(map(len, parts)) + len(_SEPARATOR) * (len(parts) - 1)


def _one_line(words: str) -> str:
    """Without NUL and other controls, every stretch of white space one space; empty when nothing in it is visible."""
    return " ".join(_CONTROLS.sub(" ", words).split()) if next_visible(words, 0, len(words)) is not None else ""


def _clip(words: str) -> str:
    if len(words) <= MAX_PART_CHARS:
        return words
    head = words[: boundary_before(words, MAX_PART_CHARS - len(_ELLIPSIS), lowest=1)]
    return (head.rpartition(" ")[0] or head) + _ELLIPSIS
