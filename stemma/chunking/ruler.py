"""How long a stretch of text is, in the unit of a strategy: characters, or tokens."""

from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from stemma.chunking.tokenizer import Tokenizer

MAX_CHARS_PER_TOKEN = 16
"""A stretch holds at most this many characters per token of its limit: an unknown word is one token however long it is, and in
scripts without spaces a page can be such a word."""

_PIECE_CHARS = 20_000
"""A text is tokenized in pieces of at most this length, parted at white space where there is any."""


class Ruler(Protocol):
    """Measures stretches of one text. Places that it proposes are where a limit is reached; only `fits` decides."""

    def furthest(self, char_start: int, limit: int) -> int:
        """Where a stretch that begins there reaches the limit; after `char_start`, perhaps beyond the text."""
        ...

    def earliest(self, char_end: int, limit: int) -> int:
        """Where a stretch that ends there must begin to stay within the limit; before `char_end`, perhaps before the text."""
        ...

    def fits(self, char_start: int, char_end: int, limit: int) -> bool:
        """Whether the stretch, read by itself, stays within the limit."""
        ...


class Characters:
    """Counts code points."""

    def furthest(self, char_start: int, limit: int) -> int:
        """`limit` characters on."""
        return char_start + limit

    def earliest(self, char_end: int, limit: int) -> int:
        """`limit` characters back."""
        return char_end - limit

    def fits(self, char_start: int, char_end: int, limit: int) -> bool:
        """Whether it has at most `limit` characters."""
        return char_end - char_start <= limit


CHARACTERS = Characters()


class Tokens:
    """Counts tokens. The text is tokenized once for the places, and each stretch again for the verdict: cut out of a word, the same
    letters may make more tokens."""

    def __init__(self, text: str, tokenizer: Tokenizer) -> None:
        self._text = text
        self._tokenizer = tokenizer

    def furthest(self, char_start: int, limit: int) -> int:
        """The start of the first token that is too many."""
        starts, ends = self._spans
        beyond = int(np.searchsorted(ends, char_start, side="right")) + limit
        reached = int(starts[beyond]) if beyond < len(starts) else len(self._text)
        return max(char_start + 1, min(reached, char_start + limit * MAX_CHARS_PER_TOKEN))

    def earliest(self, char_end: int, limit: int) -> int:
        """The end of the last token that is too many."""
        starts, ends = self._spans
        beyond = int(np.searchsorted(starts, char_end, side="left")) - limit - 1
        reached = int(ends[beyond]) if beyond >= 0 else 0
        return min(char_end - 1, max(reached, char_end - limit * MAX_CHARS_PER_TOKEN))

    def fits(self, char_start: int, char_end: int, limit: int) -> bool:
        """Whether it has at most `limit` tokens, and `MAX_CHARS_PER_TOKEN` times that many characters."""
        if char_end - char_start > limit * MAX_CHARS_PER_TOKEN:
            return False
        return char_end <= char_start or self.count(self._text[char_start:char_end]) <= limit

    def count(self, text: str) -> int:
        """The number of tokens of any string."""
        return self._tokenizer.count([text])[0]

    @cached_property
    def _spans(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Starts and ends of the text's tokens, both in order."""
        found: list[npt.NDArray[np.int64]] = [np.empty((0, 2), dtype=np.int64)]
        start = 0
        while start < len(self._text):
            end = self._piece_end(start)
            if spans := self._tokenizer.spans(self._text[start:end]):
                found.append(start + np.array(spans, dtype=np.int64))
            start = end
        spans = np.concatenate(found)
        return np.ascontiguousarray(spans[:, 0]), np.ascontiguousarray(spans[:, 1])

    def _piece_end(self, start: int) -> int:
        end = min(start + _PIECE_CHARS, len(self._text))
        if end == len(self._text):
            return end
        space = max(self._text.rfind(mark, start + 1, end) for mark in (" ", "\n", "\t"))
        return space if space > start else end
