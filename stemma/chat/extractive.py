"""The answer without a language model: the best passages, quoted where they speak of what was asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from stemma.chat.citations import Citation, cited
from stemma.chunking.sentences import sentence_ends, sentences
from stemma.lexical.analysis import neutral_terms
from stemma.retrieval.answer import Hit

PASSAGES = 3
WANTED_CHARS, MOST_CHARS = 160, 480
"""A quote goes on to the end of the sentence until it is this long, and is cut at this length."""


@dataclass(frozen=True)
class ExtractiveAnswer:
    """A text that cites each of its quotes."""

    text: str
    citations: list[Citation]


def extractive_answer(query: str, hits: Sequence[Hit], *, reason: str) -> ExtractiveAnswer:
    """The best passages for a query, at most PASSAGES of them, after a sentence that says why nothing was written about them.

    Args:
        reason: a full sentence.
    """
    if not hits:
        return ExtractiveAnswer(f"{reason} Nothing in the library matches the question.", [])
    citations = [cited(hit, *best_stretch(query, hit.content)) for hit in hits[:PASSAGES]]
    quotes = [f"“{citation.quote}” {citation.marker}" for citation in citations]
    return ExtractiveAnswer("\n\n".join([f"{reason} What matches best:", *quotes]), citations)


def best_stretch(query: str, text: str) -> tuple[int, int]:
    """Start and end of the sentences of the text that share most words with the query; the first of equals. Not blank for a text that is not."""
    asked = set(neutral_terms(query, query=True))
    spans = sentences(text, sentence_ends(text, []))
    shared = [len(asked.intersection(neutral_terms(text[start:end]))) for start, end in spans]
    first = shared.index(max(shared))
    start, end = spans[first]
    for _, further in spans[first + 1 :]:
        if end - start >= WANTED_CHARS or further - start > MOST_CHARS:
            break
        end = further
    return _trimmed(text, start, _cut(text, start, end))


def _cut(text: str, start: int, end: int) -> int:
    if end - start <= MOST_CHARS:
        return end
    blank = text.rfind(" ", start + WANTED_CHARS, start + MOST_CHARS)
    return blank if blank > 0 else start + MOST_CHARS


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    stretch = text[start:end]
    return start + len(stretch) - len(stretch.lstrip()), end - (len(stretch) - len(stretch.rstrip()))
