"""Ligatures that a PDF gives no character: found by their width, resolved by the words of the same document."""

import re
from bisect import bisect_left
from collections.abc import Iterable

UNKNOWN = "\ufffd"
TWO, THREE = "\ufdd0", "\ufdd1"
"""Stand for a glyph as wide as two or three narrow letters until it is resolved; Unicode keeps them free of any meaning."""

_WORD = re.compile(rf"[^\W\d_]*[{TWO}{THREE}](?:[^\W\d_]|[{TWO}{THREE}])*")
_PLAIN_WORD = re.compile(r"[^\W\d_]{3,}")
_CANDIDATES = {TWO: ("fi", "ff", "fl"), THREE: ("ffi", "ffl")}


def ligature_mark(width: float, narrow: float) -> str:
    """The mark for a glyph without a character beside letters.

    Args:
        width: of the glyph, in any unit.
        narrow: of an `i` or `l` of the same line; 0 when it has none. In Latin text faces `fi` and `ff` are 1.9 to 2.2 as
            wide, `ffi` 2.9 to 3.1.
    """
    ratio = width / narrow if narrow else 0.0
    return TWO if 1.7 <= ratio < 2.5 else THREE if 2.6 <= ratio < 3.4 else UNKNOWN


def known_words(texts: Iterable[str]) -> list[str]:
    """The words of a document's lines, lower case and sorted, each once."""
    return sorted({word.lower() for text in texts for word in _PLAIN_WORD.findall(text)})


def resolve_ligatures(text: str, words: list[str]) -> str:
    """A line without marks: a ligature becomes the letters with which its word occurs elsewhere in the document.

    Where none does, one of three letters is `ffi`, or `ffl` before a vowel (difficult, baffled); one of two stays unknown,
    as do those that stand alone.
    """
    if TWO not in text and THREE not in text:
        return text
    return _WORD.sub(lambda match: _resolved(match[0], words), text)


def _resolved(word: str, words: list[str]) -> str:
    for position, mark in enumerate(word):
        if mark not in _CANDIDATES:
            continue
        before, after = word[:position], word[position + 1 :]
        candidates = [before + letters + after for letters in _CANDIDATES[mark]]
        known = next((candidate for candidate in candidates if _occurs(candidate.lower(), words)), None)
        if known is None and mark == THREE and before + after:
            known = candidates[1 if after[:1] in tuple("aeouy") else 0]
        return _resolved(known or before + UNKNOWN + after, words)
    return word


def _occurs(word: str, words: list[str]) -> bool:
    """Whether it is a word of the document, or begins one and is long enough to be no accident."""
    found = bisect_left(words, word)
    return found < len(words) and (words[found] == word or (len(word) > 5 and words[found].startswith(word)))
