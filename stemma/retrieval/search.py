"""Search: a query in, ranked passages out, all of them read from one snapshot of the corpus."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import polars as pl
import structlog

from sql import load_queries
from stemma.embedding.embedder import Embedder, EmbeddingSpec, Vectors
from stemma.errors import ConfigurationError, Unavailable
from stemma.lexical.errors import LexicalIndexUnavailable
from stemma.lexical.index import HIT_SCHEMA, LexicalIndex, Scope
from stemma.retrieval.answer import METHODS, Hit, RetrievalMethod, SearchAnswer
from stemma.retrieval.bm25 import bm25_ranking, tsvector_ranking
from stemma.retrieval.errors import EmbeddingMismatch, EmptyQuery, InvalidK, QueryTimeout, QueryTooLong, UnknownMethod
from stemma.retrieval.hybrid import Ranked, ranked_by_fusion, ranked_by_one
from stemma.retrieval.scope import EVERYWHERE, matches_nothing, normalized, without_unstorable
from stemma.retrieval.semantic import semantic_ranking
from stemma.retrieval.snapshot import snapshot
from stemma.settings import Settings
from stemma.store.embedding_indexes import active_embedding_index
from stemma.store.postgres import Connection, Pool, explained
from stemma.store.sparse_indexes import SparseIndex, active_sparse_index

K_MAX = 1_000
QUERY_MAX_CHARS = 10_000
SWITCHES_MET = 3  # a search begins again when the index was switched after its query had been embedded: at most so often
MIN_DEPTH = 50  # candidates an arm fetches for fusion at least: below, the order of the first hits would depend on k

_log = structlog.get_logger(__name__)

KeywordIndexes = Callable[[SparseIndex], LexicalIndex]
"""Opens the keyword index that a snapshot names. Raises Unavailable or ConfigurationError where it cannot."""


@dataclass(frozen=True)
class SearchRequest:
    """What is asked."""

    query: str
    method: str | None = None
    """A name of METHODS; None: the setting RETRIEVAL_METHOD."""
    k: int = 10
    """Hits wanted, 1 to 1000."""
    scope: Scope = EVERYWHERE
    operators: bool = False
    """Whether the keyword arm reads the query as `stemma.lexical.query_language` says; else no character of it is an operator."""


@dataclass(frozen=True)
class _Question:
    """A request that can be answered, with the vector its method needs."""

    query: str
    method: RetrievalMethod
    k: int
    scope: Scope
    vector: Vectors | None
    settings: Settings
    operators: bool = False
    started: float = field(default_factory=monotonic)

    @property
    def depth(self) -> int:
        return max(self.k * self.settings.over_fetch, MIN_DEPTH) if self.method == "hybrid" else self.k

    def check(self) -> None:
        """Raises QueryTimeout once the time is over."""
        if monotonic() - self.started > self.settings.query_timeout_s:
            raise QueryTimeout(f"the search took longer than {self.settings.query_timeout_s:g} s")


def search_by_active_model(
    request: SearchRequest, *, pool: Pool, lexical: KeywordIndexes, embedder_of: Callable[[EmbeddingSpec], Embedder], settings: Settings
) -> SearchAnswer:
    """`search` with the model that made the active vectors, whichever that is by the time they are read.

    Args:
        embedder_of: gives the model of a spec; what it raises where it cannot is raised. `bm25` does not ask it.
    """
    for attempt in range(1, SWITCHES_MET + 1):
        embedder = None
        if (request.method or settings.retrieval_method) != "bm25":
            with explained(), pool.connection() as connection:
                active = active_embedding_index(connection)
            embedder = embedder_of(active.spec) if active else None
        try:
            return search(request, pool=pool, lexical=lexical, embedder=embedder, settings=settings)
        except EmbeddingMismatch:  # another index became active after the query had been embedded
            if attempt == SWITCHES_MET:
                raise
    raise AssertionError("the last try returns or raises")


def search(request: SearchRequest, *, pool: Pool, lexical: KeywordIndexes, embedder: Embedder | None, settings: Settings) -> SearchAnswer:
    """The k best live passages in scope.

    The query is embedded first; then one snapshot serves the active indexes, both arms and the passages themselves. Before anything
    was ingested the answer is empty. While the keyword index is unavailable, full-text search in PostgreSQL answers for it and
    `degraded` says so.

    Args:
        embedder: None is enough for `bm25`, and as long as nothing was ingested.

    Raises:
        EmptyQuery, QueryTooLong, InvalidK, UnknownMethod: the request cannot be answered.
        EmbeddingMismatch: the embedder is not the one that made the active vectors.
        QueryTimeout, StoreUnavailable: it may be answered later.
    """
    query, method = cleaned_query(request.query), _method(request.method or settings.retrieval_method)
    if not 1 <= request.k <= K_MAX:
        raise InvalidK(f"k is {request.k}")
    scope = normalized(request.scope)
    if matches_nothing(scope):
        return SearchAnswer(query=query, method=method, hits=[])
    vector = None if method == "bm25" or embedder is None else embedder.embed_query(query)
    question = _Question(query, method, request.k, scope, vector, settings, request.operators)
    with snapshot(pool, timeout_s=settings.query_timeout_s) as connection:
        ranked, degraded = _rank(connection, question, lexical=lexical, spec=embedder.spec if embedder else None)
        return SearchAnswer(query=query, method=method, hits=hydrate(connection, ranked), degraded=degraded)


def cleaned_query(query: str) -> str:
    """The query without NUL, lone surrogates and surrounding blanks. Raises EmptyQuery or QueryTooLong."""
    cleaned = without_unstorable(query).strip()
    if not cleaned:
        raise EmptyQuery("the query is empty")
    if len(cleaned) > QUERY_MAX_CHARS:
        raise QueryTooLong(f"the query has {len(cleaned):,} characters")
    return cleaned


def hydrate(connection: Connection, ranked: list[Ranked]) -> list[Hit]:
    """The passages of a ranking, in its order."""
    parameters = {"chunk_ids": [hit.chunk_id for hit in ranked], "publication_ids": [hit.publication_id for hit in ranked]}
    cursor = connection.execute(load_queries("retrieval")["hydrate"], parameters, prepare=False)
    names = [column.name for column in cursor.description or ()]
    traces = {hit.chunk_id: hit.trace for hit in ranked}
    passages = [dict(zip(names, row, strict=True)) for row in cursor]
    return [Hit(**passage, score=traces[passage["chunk_id"]].fused_score, trace=traces[passage["chunk_id"]]) for passage in passages]


def _method(name: str) -> RetrievalMethod:
    for method in METHODS:
        if method == name:
            return method
    raise UnknownMethod(name, known=METHODS)


def _rank(
    connection: Connection, question: _Question, *, lexical: KeywordIndexes, spec: EmbeddingSpec | None
) -> tuple[list[Ranked], list[str]]:
    if question.method == "semantic":
        return ranked_by_one("semantic", _semantic_arm(connection, question, spec), k=question.k), []
    if question.method == "bm25":
        ranking, degraded = _bm25_arm(connection, question, lexical)
        return ranked_by_one("bm25", ranking, k=question.k), degraded
    semantic = _semantic_arm(connection, question, spec)
    bm25, degraded = _bm25_arm(connection, question, lexical)
    weights = fusion_weights(question.settings, spec)
    fused = ranked_by_fusion({"semantic": semantic, "bm25": bm25}, weights, fusion_k=question.settings.fusion_k, k=question.k)
    return fused, degraded


def fusion_weights(settings: Settings, spec: EmbeddingSpec | None) -> dict[str, float]:
    """The weights that were set, or else those that suit the model."""
    if spec is None or {"semantic_weight", "bm25_weight"} & settings.model_fields_set:
        return {"semantic": settings.semantic_weight, "bm25": settings.bm25_weight}
    return {"semantic": spec.semantic_weight, "bm25": 1 - spec.semantic_weight}


def _semantic_arm(connection: Connection, question: _Question, spec: EmbeddingSpec | None) -> pl.DataFrame:
    active = active_embedding_index(connection)
    if active is None:
        return HIT_SCHEMA.to_frame()
    if question.vector is None or spec is None or spec.spec_hash != active.spec.spec_hash:
        raise EmbeddingMismatch(f"the query is embedded by {_described(spec)}, the active index holds vectors of {_described(active.spec)}")
    return semantic_ranking(
        connection, question.vector, index=active, depth=question.depth, scope=question.scope,
        exact_scan_max_chunks=question.settings.exact_scan_max_chunks,
    )  # fmt: skip


def _described(spec: EmbeddingSpec | None) -> str:
    return f"{spec.model} (revision {spec.revision[:12]}, {spec.dimension} dimensions)" if spec else "no model"


def _bm25_arm(connection: Connection, question: _Question, lexical: KeywordIndexes) -> tuple[pl.DataFrame, list[str]]:
    active = active_sparse_index(connection)
    if active is None:
        return HIT_SCHEMA.to_frame(), []
    try:
        if active.incomplete:
            raise LexicalIndexUnavailable("the keyword index was lost and is being made again")
        index = lexical(active)
        ranking = bm25_ranking(
            connection,
            question.query,
            index=index,
            depth=question.depth,
            scope=question.scope,
            operators=question.operators,
            check=question.check,
        )
        if ranking.is_empty() and _lost_its_entries(connection, active, index):
            raise LexicalIndexUnavailable("the keyword index is empty, though entries were written")
        return ranking, []
    except QueryTimeout:
        raise
    except (Unavailable, ConfigurationError) as error:
        _log.warning("keyword index unavailable", index=active.name, code=error.code, reason=str(error))
        reason = f"The keyword index is unavailable ({error.code}); full-text search in PostgreSQL answered in its place."
        return tsvector_ranking(connection, question.query, depth=question.depth, scope=question.scope, operators=question.operators), [
            reason
        ]


def _lost_its_entries(connection: Connection, active: SparseIndex, index: LexicalIndex) -> bool:
    """Whether the index holds nothing although entries of live publications were recorded: its folder was removed or replaced."""
    recorded = connection.execute(load_queries("retrieval")["has_entries"], {"sparse_index_id": active.sparse_index_id}).fetchone()
    return recorded == (True,) and not index.publications()
