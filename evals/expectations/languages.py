"""Whether a text is English, told by its function words: enough to see a corpus drift away from what its model knows, never stored."""

import re

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset(
    [
        "the",
        "of",
        "and",
        "to",
        "in",
        "a",
        "is",
        "that",
        "for",
        "it",
        "as",
        "was",
        "with",
        "be",
        "by",
        "on",
        "not",
        "he",
        "his",
        "but",
        "at",
        "are",
        "this",
        "have",
        "from",
        "or",
        "had",
        "an",
        "they",
        "which",
        "one",
        "you",
        "were",
        "all",
        "her",
        "she",
        "there",
        "would",
        "their",
        "we",
        "him",
        "been",
        "has",
        "when",
        "who",
        "will",
        "no",
        "more",
        "if",
        "out",
        "so",
        "up",
        "said",
        "what",
        "its",
        "about",
        "than",
        "into",
        "them",
        "can",
        "only",
        "other",
        "time",
        "new",
    ]
)
ENOUGH_WORDS = 20
LEAST_SHARE = 0.2
"""English prose has 40 to 50 % function words; German, French and Spanish stay below 10 % by this list; tables and code lie between."""


def is_english(text: str) -> bool | None:
    """Whether at least LEAST_SHARE of the words are English function words; None with fewer than ENOUGH_WORDS words.

    A text in a script without spaces has few "words" by this count and is not English as soon as it has ENOUGH_WORDS letters.
    """
    words = [word.lower() for word in _WORD.findall(text)]
    if len(words) < ENOUGH_WORDS:
        return False if sum(map(len, words)) >= 10 * ENOUGH_WORDS else None
    return sum(word in _ENGLISH for word in words) / len(words) >= LEAST_SHARE
