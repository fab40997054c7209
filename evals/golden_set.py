"""Golden sets: questions whose answers are known, as JSON lines that resolve to chunks on any machine.

One line is `{"query": …, "kind": …, "relevant": [{"rel_source": …, "chunk_index": …, "fact": …}]}`. `rel_source` is the path within
the library, `fact` a literal stretch of the document's text that answers, `chunk_index` the chunk that holds it under `PINNED`.
A question without anything relevant is negative: the library holds no answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stemma.errors import RequestError

PINNED = {"strategy": "recursive_character", "size": 400, "overlap": 50}
"""The boundaries that `chunk_index` counts by, whatever the settings of the day are."""

Kind = Literal["single", "multi", "table", "ocr", "non_english", "negative"]
ChunkIds = frozenset[str]


class GoldenSetInvalid(RequestError):
    """A golden set does not say what it should: its lines are malformed, or they no longer hold for the library."""

    code = "golden_set_invalid"


class Reference(BaseModel):
    """Where an answer stands."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rel_source: str = Field(min_length=1)
    chunk_index: int = Field(ge=0)
    fact: str = Field(min_length=1)


class Question(BaseModel):
    """What is asked, and everything that answers it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str = Field(min_length=1)
    kind: Kind = "single"
    relevant: tuple[Reference, ...]


@dataclass(frozen=True)
class Resolved:
    """A question against one way of cutting the documents."""

    question: Question
    chunks: tuple[ChunkIds, ...]
    """Per reference, the chunks of which any one satisfies it."""
    split: tuple[Reference, ...]
    """References whose fact is in the document but in no single chunk: a fault of the boundaries, not of the retrieval."""


def load_golden_set(path: Path) -> list[Question]:
    """The questions of a file. Raises GoldenSetInvalid with the number of the first line that is malformed or asked twice."""
    questions: dict[str, Question] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        try:
            question = Question.model_validate_json(line)
        except ValidationError as error:
            problem = error.errors()[0]
            raise GoldenSetInvalid(f"{path.name}, line {number}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
        if question.query in questions:
            raise GoldenSetInvalid(f"{path.name}, line {number}: {question.query!r} is asked twice")
        questions[question.query] = question
    return list(questions.values())


def resolve_by_index(questions: Sequence[Question], chunks_of: Callable[[str], pl.DataFrame | None]) -> list[tuple[str, ...]]:
    """The chunk ids of every question, from the corpus files alone.

    Args:
        chunks_of: the frame of chunks (chunk_id, chunk_index, content) of a path within the library under `PINNED`; None where
            there is no such file.

    Raises:
        GoldenSetInvalid: names every reference whose file or chunk is missing, or whose chunk does not hold the fact (the file was
            edited, or the pins were). Nothing is ever counted as a miss for that.
    """
    problems: list[str] = []
    answers: list[tuple[str, ...]] = []
    frames = {source: chunks_of(source) for source in sorted({reference.rel_source for q in questions for reference in q.relevant})}
    for question in questions:
        found: list[str] = []
        for reference in question.relevant:
            chunk_id, problem = _by_index(reference, frames[reference.rel_source])
            found += [chunk_id] if chunk_id else []
            problems += [f"{question.query!r}: {problem}"] if problem else []
        answers.append(tuple(dict.fromkeys(found)))
    if problems:
        raise GoldenSetInvalid("the golden set does not hold for this library: " + "; ".join(problems))
    return answers


def resolve_by_fact(questions: Sequence[Question], chunks: Mapping[str, pl.DataFrame]) -> list[Resolved]:
    """Every question against boundaries of another kind: any chunk of the named document that holds the fact satisfies it.

    Args:
        chunks: path within the library -> frame of its chunks (chunk_id, char_start, content), in order.

    Raises:
        GoldenSetInvalid: names every reference whose document is missing, or no longer says the fact.
    """
    problems: list[str] = []
    resolved: list[Resolved] = []
    for question in questions:
        found: list[ChunkIds] = []
        split: list[Reference] = []
        for reference in question.relevant:
            frame = chunks.get(reference.rel_source)
            if frame is None:
                problems.append(f"{question.query!r}: {reference.rel_source} is not in the corpus")
            elif holding := frozenset(frame.filter(pl.col("content").str.contains(reference.fact, literal=True))["chunk_id"]):
                found.append(holding)
            elif reference.fact in _text(frame):
                split.append(reference)
            else:
                problems.append(f"{question.query!r}: {reference.rel_source} does not say {reference.fact!r}")
        resolved.append(Resolved(question, tuple(found), tuple(split)))
    if problems:
        raise GoldenSetInvalid("the golden set does not hold for this corpus: " + "; ".join(problems))
    return resolved


def _by_index(reference: Reference, frame: pl.DataFrame | None) -> tuple[str | None, str | None]:
    place = f"{reference.rel_source} chunk {reference.chunk_index}"
    if frame is None:
        return None, f"{reference.rel_source} is not in the library"
    row = frame.filter(pl.col("chunk_index") == reference.chunk_index)
    if row.is_empty():
        return None, f"{place} does not exist, there are {frame.height}"
    if reference.fact not in row["content"][0]:
        return None, f"{place} does not say {reference.fact!r}"
    return row["chunk_id"][0], None


def _text(frame: pl.DataFrame) -> str:
    """The document as far as its chunks hold it: they overlap, so each adds what lies beyond the one before."""
    text, end = "", 0
    for char_start, content in frame.select("char_start", "content").iter_rows():
        gap = " " * max(char_start - end, 0)  # between chunks stand only spaces
        text += gap + content[max(end - char_start, 0) :]
        end = max(end, char_start + len(content))
    return text
