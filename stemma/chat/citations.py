"""Citations: what a model claims to quote is held against the documents before anyone sees it.

A model cites with `[citation:<chunk_id>]`, after a quote or alone. A quote that the passage does not hold is dropped with its marker,
and so is a marker that names no passage of the evidence; what is shown of a quote is the document's own text.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stemma.retrieval.answer import Hit

QUOTE_MAX_CHARS = 2_000
MARKER_MAX_CHARS = 300
_PREFIX = "[citation:"
_CLOSING = {"“": "”", "„": "“”", "«": "»", "»": "«", '"': '"', "「": "」", "『": "』"}
_OPENING = re.compile(f"[{re.escape(''.join(_CLOSING))}[]")
_BETWEEN = re.compile(r"[\s.,;:!?)]{0,4}")
_VARIANTS = ("'‘’‚ʼ", '"“”„«»', "-‐‑‒–—−")


@dataclass(frozen=True)
class Citation:
    """A verified quote: the text of the document from `quote_char_start` to `quote_char_end`, in code points, is `quote`."""

    hit: Hit
    quote: str
    quote_char_start: int
    quote_char_end: int

    @property
    def marker(self) -> str:
        """How the answer's text refers to it."""
        return marker_of(self.hit)


def marker_of(hit: Hit) -> str:
    """The marker that cites a passage."""
    return f"{_PREFIX}{hit.chunk_id}]"


def cited(hit: Hit, start: int, end: int) -> Citation:
    """The citation of hit.content[start:end]."""
    return Citation(hit, hit.content[start:end], hit.char_start + start, hit.char_start + end)


class CitationFilter:
    """Turns the text of a model, as it is written, into text that may be shown; whatever the pieces, the result is the same.

    What may still turn out to be a quote or a marker is held back, by QUOTE_MAX_CHARS at most.
    """

    def __init__(self, hits: Iterable[Hit]) -> None:
        self._hits: Mapping[str, Hit] = {hit.chunk_id: hit for hit in hits}
        self._pending = ""
        self.citations: list[Citation] = []
        """Each once, in the order of the text."""
        self.n_dropped = 0

    def feed(self, text: str) -> str:
        """What may be shown after this piece."""
        self._pending += text
        return self._advance(final=False)

    def finish(self) -> str:
        """What is left to be shown."""
        return self._advance(final=True)

    def _advance(self, *, final: bool) -> str:
        shown: list[str] = []
        while self._pending:
            found = _OPENING.search(self._pending)
            if found is None:
                shown.append(self._pending)
                self._pending = ""
                break
            shown.append(self._pending[: found.start()])
            self._pending = self._pending[found.start() :]
            taken = self._marker(final=final) if self._pending[0] == "[" else self._quote(final=final)
            if taken is None:
                break  # more of the text decides
            length, text = taken
            shown.append(text)
            self._pending = self._pending[length:]
        return "".join(shown)

    def _marker(self, *, final: bool) -> tuple[int, str] | None:
        """(length, what is shown instead) of what the pending text begins with; None when that cannot be told yet."""
        end = _marker_end(self._pending, 0)
        if end is None and not final:
            return None
        if not end:
            return 1, "["
        hit = self._hits.get(self._pending[len(_PREFIX) : end - 1].strip())
        if hit is None:
            self.n_dropped += 1
            return end, ""
        self._note(cited(hit, 0, len(hit.content)))
        return end, marker_of(hit)

    def _quote(self, *, final: bool) -> tuple[int, str] | None:
        opening = self._pending[0]
        close = _closing_index(self._pending, _CLOSING[opening])
        if not close:
            return None if close is None and not final else (1, opening)
        between = _BETWEEN.match(self._pending, close + 1)
        assert between is not None  # it matches the empty text too
        if between.end() == len(self._pending) and not final and len(between[0]) < 4:
            return None
        end = _marker_end(self._pending, between.end())
        if not end:  # words in quotation marks; a quote may begin within them
            return None if end is None and not final else (1, opening)
        citation = self._verified(self._pending[1:close], self._pending[between.end() + len(_PREFIX) : end - 1].strip())
        if citation is None:
            return end, between[0].strip()
        return end, f"{opening}{citation.quote}{self._pending[close]}{between[0]}{citation.marker}"

    def _verified(self, quote: str, chunk_id: str) -> Citation | None:
        hit = self._hits.get(chunk_id)
        place = _place(quote, hit.content) if hit else None
        if hit is None or place is None:
            self.n_dropped += 1
            return None
        citation = cited(hit, *place)
        self._note(citation)
        return citation

    def _note(self, citation: Citation) -> None:
        if citation not in self.citations:
            self.citations.append(citation)


def _marker_end(text: str, start: int) -> int | None:
    """Where the marker that begins at `start` ends; 0: none begins there; None: more of the text decides."""
    head = text[start : start + len(_PREFIX)]
    if head != _PREFIX:
        return None if _PREFIX.startswith(head) else 0
    close = text.find("]", start, start + MARKER_MAX_CHARS)
    if close >= 0:
        return close + 1
    return 0 if len(text) - start >= MARKER_MAX_CHARS else None


def _closing_index(text: str, closings: str) -> int | None:
    """Where the quote that the text begins with is closed; 0: nowhere; None: more of the text decides. A paragraph ends every quote."""
    limit = min(len(text), QUOTE_MAX_CHARS + 2)
    paragraph = text.find("\n\n", 1, limit)
    within = text[1 : paragraph if paragraph >= 0 else limit]
    places = [place for closing in closings if (place := within.find(closing)) >= 0]
    if places:
        return min(places) + 1
    return 0 if paragraph >= 0 or len(text) >= limit > QUOTE_MAX_CHARS else None


def _place(quote: str, content: str) -> tuple[int, int] | None:
    """Where the content holds the quote: word for word, but any white space between the words, and typographic variants alike."""
    for words in (quote.split(), quote.rstrip(" .,;:!?…").split()):
        if words and (found := re.search(r"\s+".join(map(_pattern, words)), content)):
            return found.span()
    return None


def _pattern(word: str) -> str:
    return "".join(next((f"[{re.escape(kinds)}]" for kinds in _VARIANTS if character in kinds), re.escape(character)) for character in word)
