"""Labelled retrieval sets on disk, cut into passages as Stemma cuts them: `NAME.docs.jsonl` and `NAME.queries.jsonl` in one folder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evals.metrics import Span
from stemma.chunking.chunk import chunk_document
from stemma.chunking.tokenizer import minilm_tokenizer
from stemma.context.contextualize import contextualize
from stemma.parsing.document import ParsedDocument
from stemma.settings import Settings


@dataclass(frozen=True)
class Passage:
    """A chunk of a document of the set."""

    chunk_id: str
    span: Span
    content: str
    contextualized_content: str


@dataclass(frozen=True)
class Question:
    """A query with the stretches of text that answer it."""

    query: str
    gold: tuple[Span, ...]

    def gains(self, passages: Sequence[Passage]) -> dict[str, float]:
        """chunk_id -> share of the gold characters that lie in the passage, where there are any."""
        n_gold = sum(end - start for _, start, end in self.gold)
        shares = {passage.chunk_id: sum(_n_shared(passage.span, span) for span in self.gold) / n_gold for passage in passages}
        return {chunk_id: share for chunk_id, share in shares.items() if share > 0}


@dataclass(frozen=True)
class LabelledSet:
    """Documents as passages, and questions about them."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]

    @cache  # noqa: B019  # a set lives as long as the measuring
    def gains(self) -> list[dict[str, float]]:
        """Per question: chunk_id -> share of the gold characters that lie in the passage, where there are any."""
        of_document: dict[str, list[Passage]] = {}
        for passage in self.passages:
            of_document.setdefault(passage.span[0], []).append(passage)
        return [
            question.gains([passage for doc_id in {span[0] for span in question.gold} for passage in of_document.get(doc_id, ())])
            for question in self.questions
        ]


def read_labelled_set(folder: Path, name: str, settings: Settings) -> LabelledSet:
    """The set, its texts cut and contextualized by these settings. Raises FileNotFoundError."""
    passages: list[Passage] = []
    for document in _lines(folder / f"{name}.docs.jsonl"):
        parsed = ParsedDocument(document["text"], parser=name, parser_version="1")
        chunks = chunk_document(
            parsed,
            strategy=settings.chunking_strategy,
            size=settings.chunk_size,
            overlap=settings.chunk_overlap,
            tokenizer=minilm_tokenizer(),
        )
        contexts = contextualize(chunks, method=settings.contextualizer, title=None)
        for row, contextualized in zip(chunks.iter_rows(named=True), contexts["contextualized_content"], strict=True):
            span = (document["doc_id"], row["char_start"], row["char_end"])
            passages.append(Passage(f"{document['doc_id']}::{row['chunk_index']}", span, row["content"], contextualized))
    questions = [
        Question(line["query"], tuple((span["doc_id"], span["start"], span["end"]) for span in line["gold_spans"]))
        for line in _lines(folder / f"{name}.queries.jsonl")
    ]
    return LabelledSet(name, tuple(passages), tuple(questions))


def _lines(file: Path) -> list[dict[str, Any]]:
    # Not splitlines: a text may hold U+2028.
    return [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]


def _n_shared(one: Span, other: Span) -> int:
    return max(0, min(one[2], other[2]) - max(one[1], other[1])) if one[0] == other[0] else 0
