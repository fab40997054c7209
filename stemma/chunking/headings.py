"""The trail of headings over every place of a document."""

import re
from bisect import bisect_right

from stemma.chunking.graphemes import next_visible
from stemma.parsing.document import Block, ParsedDocument

_ATX = re.compile(r"[ \t]{0,3}(#{1,6})(?:[ \t]+|$)")
_SETEXT_UNDERLINE = re.compile(r"\n[ \t]{0,3}(?:=+|-+)[ \t]*$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_CODE = re.compile(r"(`+)(.+?)\1")
_EMPHASIS = re.compile(r"(?<!\w)(\*{1,3}|_{1,3}|~~)(?=\S)(.+?)(?<=\S)\1(?!\w)")
_LONGEST_MARKED = 1_000
"""Longer headings keep their inline marks: they are no headings, and the patterns are not linear."""


class HeadingTrails:
    """Which headings a place stands under: the last heading before it, and above that each last one of a higher level."""

    def __init__(self, document: ParsedDocument) -> None:
        self._text = document.text
        self._headings = [block for block in document.blocks if block.kind == "heading"]
        self._starts = [heading.char_start for heading in self._headings]
        self._trails: list[tuple[str, ...]] = [()]  # before the first heading, then from each heading on
        open_headings: list[tuple[int, str]] = []
        for heading in self._headings:
            while open_headings and open_headings[-1][0] >= heading.level:
                open_headings.pop()
            open_headings.append((heading.level, heading_text(document.text, heading)))
            self._trails.append(tuple(title for _, title in open_headings if title))

    def at(self, position: int) -> tuple[str, ...]:
        """Texts of the headings over a position, outermost first; a heading stands under itself."""
        return self._trails[bisect_right(self._starts, position)]

    def over(self, char_start: int, char_end: int) -> list[str]:
        """The trail where the stretch's first text that is no heading begins; of headings alone, the trail of the last."""
        position = char_start
        while (visible := next_visible(self._text, position, char_end)) is not None:
            i = bisect_right(self._starts, visible) - 1
            if i < 0 or visible >= self._headings[i].char_end:
                return list(self.at(visible))
            position = self._headings[i].char_end
        return list(self.at(char_end - 1))


def heading_text(text: str, heading: Block) -> str:
    """A heading's words on one line, without the marks that Markdown puts around them and within them."""
    source = text[heading.char_start : heading.char_end].strip()
    opening = _ATX.match(source)
    # As many marks as the level says: `# of visitors` in a format without such marks keeps its sign, unless it is at level 1.
    is_marked = opening is not None and len(opening[1]) == heading.level
    words = _without_closing(source[opening.end() :]) if opening and is_marked else _SETEXT_UNDERLINE.sub("", source)
    if words != source and len(words) <= _LONGEST_MARKED:
        words = _EMPHASIS.sub(r"\2", _CODE.sub(r"\2", _LINK.sub(r"\1", words)))
    return " ".join(words.split())


def _without_closing(words: str) -> str:
    """The words before closing `#`s, which are marks where nothing or a blank stands before them."""
    bare = words.rstrip(" \t")
    unmarked = bare.rstrip("#")
    return unmarked if unmarked != bare and unmarked[-1:] in ("", " ", "\t") else words
