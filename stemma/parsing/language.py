"""The language of a text, told by py3langid's model of 140 languages from its first thousands of characters; nothing is downloaded."""

import importlib
from collections.abc import Iterable
from functools import cache
from typing import Any

READ_CHARS = 4_000
ENOUGH_LETTERS = 20
"""A text with fewer has no language that could be told, unless its script tells it: what has no spaces says more with less."""
LEAST_PROBABILITY = 0.5


def language_of(passages: Iterable[str]) -> str:
    """ISO 639-1 code of the language that the passages begin in; "" where it cannot be told."""
    text = _beginning(passages)
    letters = [character for character in text if character.isalpha()]
    if len(letters) < ENOUGH_LETTERS and all(letter < "\u0e00" for letter in letters):
        return ""
    language, probability = _identifier().classify(text)
    return str(language) if len(language) == 2 and probability >= LEAST_PROBABILITY else ""


def _beginning(passages: Iterable[str]) -> str:
    """Their first READ_CHARS characters; the same words again say nothing new and would make the model doubt."""
    words: dict[str, None] = {}
    n_chars = 0
    for passage in passages:
        for word in passage[: READ_CHARS - n_chars].split():
            words.setdefault(word)
        n_chars += len(passage)
        if n_chars >= READ_CHARS:
            break
    return " ".join(words)


@cache
def _identifier() -> Any:
    langid: Any = importlib.import_module("py3langid.langid")  # it has no types
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
