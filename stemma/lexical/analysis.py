"""From text to terms: the two readings under which every entry is indexed and every query is asked.

The English reading follows Elasticsearch's `english` analyzer: words, without possessive 's, lower case, without stop words,
stemmed (the last three are the engine's filters). The neutral reading knows no language, only how scripts write words, and finds
what English stems spoil or tear apart. Both backends index these terms, so both agree about what a word is.

Differences from Lucene's `english`, all on purpose: text is NFC first and soft hyphens and joiners are dropped; curly apostrophes
are straight; runs of scripts without spaces are left to the neutral reading; a colon never joins two words; the stemmer is
Porter's second algorithm instead of his first.
"""

import re
import sys
import unicodedata
from functools import cache
from itertools import pairwise

# fmt: off
STOP_WORDS: list[str] = [
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of", "on", "or", "such",
    "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
]
# fmt: on
"""Elasticsearch's `_english_`."""

MAX_TERM_CHARS = 255
"""A longer word is indexed in pieces of this length, as Lucene's standard tokenizer does: engines refuse or drop huge terms."""

# Invisible inside a word: soft hyphen, joiners, byte-order mark. The zero-width space is none of them: it parts Thai words.
_IGNORED: dict[int, str | None] = dict.fromkeys((0x00AD, 0x200C, 0x200D, 0x2060, 0xFEFF))
_APOSTROPHES: dict[int, str | None] = {0x2018: "'", 0x2019: "'", 0xFF07: "'"}

# Scripts that write words without spaces (Hangul has some, but its particles stick to the words): Unicode 16, Blocks.txt.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f\u2e80-\u2fdf\u3005\u3007\u3021-\u3029"
    "\u3031-\u3035\u3038-\u303c\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u312f\u3130-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\ua4cf\ua960-\ua97f\ua980-\ua9ff\uaa60-\uaadf\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U0001b000-\U0001b16f\U00020000-\U000323af"
)


def english_words(text: str) -> list[str]:
    """The words of the English reading, in order, before the engine's filters (lower case, stop words, stems).

    A word is letters, digits, marks and underscores; an apostrophe or full stop between letters and a comma, full stop or apostrophe
    between digits stay inside it (`don't`, `example.com`, `3.14`), as in Unicode's word boundaries.
    """
    text = unicodedata.normalize("NFC", text.translate(_IGNORED | _APOSTROPHES))
    found: list[str] = (_ascii_words() if text.isascii() else _spaced_words()).findall(text)
    words = [word[:-2] if word[-2:] in ("'s", "'S") else word for word in found]
    return _pieces(words)


def neutral_terms(text: str, *, query: bool = False) -> list[str]:
    """The terms of the neutral reading, in order: NFKC, case-folded, combining marks kept inside their word.

    A run of Chinese, Japanese, Korean, Thai and their like becomes its characters (base and marks) and their overlapping pairs; a
    query asks for the pairs alone, unless the run is one character.
    """
    text = text.translate(_IGNORED)
    if text.isascii():
        return _pieces(re.findall(r"\w+", text.lower()))
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words: list[str] = _words().findall(text)
    if not _unspaced().search(text):
        return _pieces(words)
    terms: list[str] = []
    for word in words:
        for run in _unspaced_runs().split(word):  # the pattern has one group: runs of unspaced scripts are at odd places
            if run and _unspaced().match(run):
                terms += _pairs(run, query=query)
            elif run:
                terms.append(run)
    return _pieces(terms)


def writes_without_spaces(text: str) -> bool:
    """Whether the text holds a script whose words the English reading leaves out."""
    return not text.isascii() and _unspaced().search(text) is not None


def _pairs(run: str, *, query: bool) -> list[str]:
    characters: list[str] = _characters().findall(run)
    pairs = [left + right for left, right in pairwise(characters)]
    return pairs if query and pairs else characters + pairs


def _pieces(words: list[str]) -> list[str]:
    if max(map(len, words), default=0) <= MAX_TERM_CHARS:
        return words
    return [word[start : start + MAX_TERM_CHARS] for word in words for start in range(0, len(word), MAX_TERM_CHARS)]


@cache
def _marks() -> str:
    """Every combining mark as the inside of a character class; Python's \\w has none of them."""
    points = [point for point in range(0x300, sys.maxunicode + 1) if unicodedata.category(chr(point))[0] == "M"]
    starts = [point for point, before in zip(points, [-1, *points], strict=False) if point != before + 1]
    ends = [point for point, after in zip(points, [*points[1:], -1], strict=True) if after != point + 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


@cache
def _ascii_words() -> re.Pattern[str]:
    return re.compile(r"\w+(?:(?:(?<=[a-zA-Z])['.](?=[a-zA-Z])|(?<=\d)[.,;'](?=\d))\w+)*")


@cache
def _words() -> re.Pattern[str]:
    return re.compile(rf"\w[\w{_marks()}]*")


@cache
def _spaced_words() -> re.Pattern[str]:
    """As `_ascii_words`, for every script that parts its words."""
    inside = rf"(?:(?![{_UNSPACED}])[\w{_marks()}])"
    joined = rf"(?:(?:(?<=[^\W\d_])['.·](?=[^\W\d_])|(?<=\d)[.,;'](?=\d)){inside}+)*"
    return re.compile(rf"(?![{_UNSPACED}])\w{inside}*{joined}")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(rf"[{_UNSPACED}]")


@cache
def _unspaced_runs() -> re.Pattern[str]:
    return re.compile(rf"([{_UNSPACED}][{_UNSPACED}{_marks()}]*)")


@cache
def _characters() -> re.Pattern[str]:
    return re.compile(rf".[{_marks()}]*")
