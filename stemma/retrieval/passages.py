"""From ranked chunks to passages: neighbours merged, duplicates folded, documents mixed, a budget of tokens kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
from psycopg import sql

from sql import load_queries
from stemma.embedding.embedder import Vectors
from stemma.lexical.index import Scope
from stemma.retrieval.answer import Hit, Place
from stemma.retrieval.scope import as_parameters, scoped
from stemma.store.embedding_indexes import EmbeddingIndex
from stemma.store.postgres import Connection

COPIES_LISTED = 100


@dataclass(frozen=True)
class Shape:
    """How ranked chunks become the passages of an answer; the default leaves every chunk a passage of its own."""

    merge: bool = False
    """Chunks that follow each other in a document become one passage."""
    fold: bool = False
    """A chunk whose text, letter by letter, stands in a better one is listed there and counts no more."""
    diversity: float = 0.0
    """From 0 to 1: how much being unlike what stands above counts against relevance (maximal marginal relevance)."""
    max_tokens: int | None = None
    """Tokens that all passages together may have; what does not fit is passed over."""

    @property
    def is_plain(self) -> bool:
        """Whether the first k chunks are the first k passages."""
        return self == Shape()


@dataclass(frozen=True)
class Candidate:
    """A ranked chunk with what shaping needs to know."""

    hit: Hit
    chunk_index: int
    text_hash: str


@dataclass
class _Passage:
    """Candidates of one document in the order of their rank."""

    parts: list[Candidate]
    indexes: set[int] = field(default_factory=set[int])

    def touches(self, candidate: Candidate) -> bool:
        return self.parts[0].hit.publication_id == candidate.hit.publication_id and bool(
            {candidate.chunk_index - 1, candidate.chunk_index + 1} & self.indexes
        )


def shaped(candidates: Sequence[Candidate], shape: Shape, *, k: int) -> list[list[Candidate]]:
    """The first k passages, best first, each as its chunks, its best one first.

    Chunks are taken by rank. One that follows or precedes a chunk of a passage joins it, and may so join two passages to one, which
    stands where the better stood. k counts passages, and the first chunk that would begin another one ends the taking.
    """
    passages: list[_Passage] = []
    taken: set[str] = set()
    n_tokens = 0
    for candidate in candidates:
        if shape.fold and candidate.text_hash in taken:
            continue
        if shape.max_tokens is not None and n_tokens + candidate.hit.n_tokens > shape.max_tokens:
            continue
        touched = [passage for passage in passages if passage.touches(candidate)] if shape.merge else []
        if not touched and len(passages) == k:
            break
        if not touched:
            passages.append(_Passage([candidate], {candidate.chunk_index}))
        else:
            first = touched[0]
            for other in touched[1:]:
                first.parts += other.parts
                first.indexes |= other.indexes
                passages.remove(other)
            first.parts.append(candidate)
            first.indexes.add(candidate.chunk_index)
        taken.add(candidate.text_hash)
        n_tokens += candidate.hit.n_tokens
    return [passage.parts for passage in passages]


def merged(connection: Connection, passages: Sequence[Sequence[Candidate]]) -> list[Hit]:
    """One hit per passage: the best chunk's, with text and places of them all, numbered by the order of the passages.

    Offsets stay those of the document, whose text is read where chunks were merged.
    """
    spans = {
        parts[0].hit.chunk_id: (parts[0].hit.publication_id, *_span([part.hit for part in parts])) for parts in passages if len(parts) > 1
    }
    texts = _texts(connection, spans)
    return [_hit([part.hit for part in sorted(parts, key=lambda part: part.chunk_index)], parts[0].hit, texts, rank)
            for rank, parts in enumerate(passages, start=1)]  # fmt: skip


def copies(connection: Connection, passages: Sequence[Sequence[Candidate]], scope: Scope) -> dict[str, list[Place]]:
    """chunk_id of a passage's best chunk -> where else in scope the text of one of its chunks stands, by path and place."""
    hashes = sorted({part.text_hash for parts in passages for part in parts})
    parameters = {"text_hashes": hashes, "listed": COPIES_LISTED + 1, **as_parameters(scope)}
    cursor = connection.execute(scoped("copies"), parameters, prepare=False)
    names = [column.name for column in cursor.description or ()]
    found: dict[str, list[Place]] = {}
    for row in cursor:
        fields = dict(zip(names, row, strict=True))
        found.setdefault(fields.pop("text_hash"), []).append(Place(**fields))
    shown = {part.hit.chunk_id for parts in passages for part in parts}
    return {
        parts[0].hit.chunk_id: [
            place for text_hash in dict.fromkeys(part.text_hash for part in parts) for place in found.get(text_hash, []) if place.chunk_id not in shown
        ][:COPIES_LISTED]
        for parts in passages
    }  # fmt: skip


def diversified(candidates: Sequence[Candidate], likeness: Vectors, *, diversity: float) -> list[Candidate]:
    """The candidates by maximal marginal relevance: each next one is relevant and unlike those before it.

    Args:
        likeness: shape (len(candidates), len(candidates)), from 0 to 1.
    Relevance falls evenly from 1 to 0 with the rank, since scores of different methods have different scales. Ties keep the order.
    Source: Carbonell, Goldstein, "The use of MMR ...", SIGIR 1998, with lambda = 1 - diversity.
    """
    relevance = np.linspace(1, 0, num=len(candidates))
    nearest = np.zeros(len(candidates))
    left = np.ones(len(candidates), dtype=bool)
    order: list[int] = []
    for _ in candidates:
        worth = np.where(left, (1 - diversity) * relevance - diversity * nearest, -np.inf)
        best = int(np.argmax(worth))
        left[best] = False
        order.append(best)
        nearest = np.maximum(nearest, likeness[best])
    return [candidates[place] for place in order]


def likeness_of(connection: Connection, candidates: Sequence[Candidate], index: EmbeddingIndex | None) -> Vectors:
    """How alike any two candidates are, from 0 to 1: chunks of one document wholly, others by the cosine of their vectors, if they have any."""
    publications = np.array([candidate.hit.publication_id for candidate in candidates])
    same = (publications[:, None] == publications[None, :]).astype(np.float32)
    if index is None:
        return same
    parameters = {"publication_ids": publications.tolist(), "chunk_indexes": [candidate.chunk_index for candidate in candidates]}
    query = sql.SQL(load_queries("retrieval")["vectors_of"]).format(vectors=sql.Identifier(index.vector_table))
    vectors = np.zeros((len(candidates), index.spec.dimension), dtype=np.float32)
    for place, vector in connection.execute(query, parameters, prepare=False):
        vectors[place - 1] = vector.to_numpy()
    return np.maximum(same, np.clip(vectors @ vectors.T, 0, 1))


def _hit(parts: Sequence[Hit], best: Hit, texts: Mapping[str, str], rank: int) -> Hit:
    trace = best.trace.model_copy(update={"final_rank": rank}) if best.trace else None
    if len(parts) == 1:
        return best.model_copy(update={"trace": trace})
    start, end = _span(parts)
    pages = [page for part in parts for page in (part.page_start, part.page_end) if page is not None]
    trails = [part.section_path for part in parts]
    shared = takewhile(lambda headings: len(set(headings)) == 1, zip(*trails, strict=False))
    return best.model_copy(
        update={
            "trace": trace,
            "chunk_ids": [part.chunk_id for part in parts],
            "content": texts[best.chunk_id],
            "char_start": start,
            "char_end": end,
            "start_line": min(part.start_line for part in parts),
            "end_line": max(part.end_line for part in parts),
            "page_start": min(pages, default=None),
            "page_end": max(pages, default=None),
            "section_path": [headings[0] for headings in shared],
            "n_tokens": sum(part.n_tokens for part in parts),
            "extraction": next((part.extraction for part in parts if part.extraction != "text"), "text"),
        }
    )


def _span(parts: Sequence[Hit]) -> tuple[int, int]:
    return min(part.char_start for part in parts), max(part.char_end for part in parts)


def _texts(connection: Connection, spans: Mapping[str, tuple[int, int, int]]) -> dict[str, str]:
    """chunk_id -> the document's text between the offsets."""
    if not spans:
        return {}
    publications, starts, ends = zip(*spans.values(), strict=True)
    parameters = {"publication_ids": list(publications), "starts": list(starts), "ends": list(ends)}
    rows = connection.execute(load_queries("retrieval")["texts_between"], parameters, prepare=False)
    return dict(zip(spans, (text for (text,) in rows), strict=True))
