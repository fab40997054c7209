"""The query language that a request may ask for: `+needed -unwanted "as it stands" begin*`; every other word counts as in any query.

Nothing is an error: an operator without a word is left out, a quote that is not closed ends with the query.
"""

import re
from dataclasses import dataclass
from typing import Literal

Occurs = Literal["should", "must", "must_not"]

_CLAUSE = re.compile(r"""([+-]*)(?:"([^"]*)"?|(\S+))""")
_OCCURS: dict[str, Occurs] = {"": "should", "+": "must", "-": "must_not"}


@dataclass(frozen=True)
class Clause:
    """A part of a query: some words, a phrase or the beginning of a word."""

    text: str
    occurs: Occurs = "should"
    kind: Literal["words", "phrase", "prefix"] = "words"


def clauses_of(query: str) -> list[Clause]:
    """The clauses of a query; its plain words are one, so that they count as they do without operators."""
    words: list[str] = []
    clauses: list[Clause] = []
    for sign, phrase, word in _CLAUSE.findall(query):
        occurs = _OCCURS[sign[-1:]]
        if phrase.strip():
            clauses.append(Clause(phrase, occurs, "phrase"))
        elif word.endswith("*") and word.rstrip("*"):
            clauses.append(Clause(word.rstrip("*"), occurs, "prefix"))
        elif word and occurs == "should":
            words.append(word)
        elif word:
            clauses.append(Clause(word, occurs))
    return ([Clause(" ".join(words))] if words else []) + clauses
