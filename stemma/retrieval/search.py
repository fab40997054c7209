"""Search: a query in, ranked passages out, all of them read from one snapshot of the corpus."""

from collections.abc import Callable, Sequence

from sql import load_queries
from stemma.embedding.embedder import Embedder, EmbeddingSpec, Vectors
from stemma.retrieval.answer import Hit, SearchAnswer
from stemma.retrieval.arms import KeywordIndexes, bm25_arm, semantic_arm
from stemma.retrieval.errors import EmbeddingMismatch
from stemma.retrieval.hybrid import Ranked, ranked_by_fusion, ranked_by_one
from stemma.retrieval.passages import Candidate, copies, diversified, likeness_of, merged, shaped
from stemma.retrieval.question import Question, SearchRequest, base_of, check_bounds, cleaned_query, method_named
from stemma.retrieval.reranking import Reranker, RerankModelUnavailable, reranked, reranker_if_any
from stemma.retrieval.scope import matches_nothing, normalized
from stemma.retrieval.snapshot import snapshot
from stemma.retrieval.wording import Wording, wording_of
from stemma.settings import Settings
from stemma.store.embedding_indexes import active_embedding_index
from stemma.store.postgres import Connection, Pool, explained

SWITCHES_MET = 3  # a search begins again when the index was switched after its query had been embedded: at most so often
GROWTH, LOOKS = 4, 4  # when merging leaves fewer than k passages, so many times more candidates are looked at, at most so often
DIVERSIFIED = 1_000  # candidates that are compared with one another at most: the work grows with their square


def search_by_active_model(
    request: SearchRequest, *, pool: Pool, lexical: KeywordIndexes, embedder_of: Callable[[EmbeddingSpec], Embedder], settings: Settings
) -> SearchAnswer:
    """`search` with the model that made the active vectors, whichever that is by the time they are read.

    Args:
        embedder_of: gives the model of a spec; what it raises where it cannot is raised. `bm25` does not ask it.
    """
    method = method_named(request.method or settings.retrieval_method)
    for attempt in range(1, SWITCHES_MET + 1):
        embedder = None
        if base_of(method, settings) != "bm25":
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

    What a language model writes comes first, then the query is embedded; then one snapshot serves the active indexes, both arms and the
    passages themselves. Before anything was ingested the answer is empty. Where a part is away (the keyword index, the language model,
    the reranker) the method answers without it, and `degraded` says so.

    Args:
        embedder: None is enough for `bm25`, and as long as nothing was ingested.

    Raises:
        EmptyQuery, QueryTooLong, InvalidK, InvalidShape, UnknownMethod: the request cannot be answered.
        EmbeddingMismatch: the embedder is not the one that made the active vectors.
        QueryTimeout, StoreUnavailable: it may be answered later.
    """
    query, method = cleaned_query(request.query), method_named(request.method or settings.retrieval_method)
    check_bounds(request)
    scope = normalized(request.scope)
    if matches_nothing(scope):
        return SearchAnswer(query=query, method=method, hits=[])
    base = base_of(method, settings)
    wording = wording_of(query, method, settings)
    vectors = () if base == "bm25" or embedder is None else _vectors(wording, embedder)
    question = Question(query, method, base, request.k, scope, request.shape, wording, vectors, settings, operators=request.operators)
    with snapshot(pool, timeout_s=settings.query_timeout_s) as connection:
        return _Search(connection, question, lexical=lexical, spec=embedder.spec if embedder else None).answer()


class _Search:
    """One question in one snapshot."""

    def __init__(self, connection: Connection, question: Question, *, lexical: KeywordIndexes, spec: EmbeddingSpec | None) -> None:
        self._connection, self._question, self._lexical, self._spec = connection, question, lexical, spec
        self._degraded: list[str] = []
        self._reranker: Reranker | None = None
        self._scores: dict[str, float] = {}  # of chunks that the reranker has read

    def answer(self) -> SearchAnswer:
        question = self._question
        if question.method == "reranked":
            self._reranker, reason = reranker_if_any(question.settings)
            self._degrade([reason] if reason else [])
        hits = self._hits()
        return SearchAnswer(
            query=question.query,
            method=question.method,
            searched=list(question.wording.queries[1:]),
            hits=hits,
            degraded=[*question.wording.degraded, *self._degraded],
        )

    def _hits(self) -> list[Hit]:
        question, connection = self._question, self._connection
        n_candidates, passages = question.n_candidates, list[list[Candidate]]()
        for look in range(1, LOOKS + 1):
            candidates, exhausted = self._candidates(n_candidates)
            if question.shape.is_plain:
                return [candidate.hit for candidate in candidates[: question.k]]
            if question.shape.diversity and candidates:
                first = candidates[:DIVERSIFIED]
                likeness = likeness_of(connection, first, active_embedding_index(connection))
                candidates = diversified(first, likeness, diversity=question.shape.diversity) + candidates[DIVERSIFIED:]
            passages = shaped(candidates, question.shape, k=question.k)
            if len(passages) == question.k or exhausted or look == LOOKS:
                break
            n_candidates *= GROWTH
        hits = merged(connection, passages)
        if not question.shape.fold:
            return hits
        elsewhere = copies(connection, passages, question.scope)
        return [hit.model_copy(update={"also_at": elsewhere[hit.chunk_id]}) for hit in hits]

    def _candidates(self, n_candidates: int) -> tuple[list[Candidate], bool]:
        """The first chunks by the method, with their texts; and whether there are no more."""
        question = self._question
        depth = question.depth(n_candidates)
        ranked, exhausted = self._ranked(depth, n_candidates)
        if not self._reranker:
            return hydrate(self._connection, ranked), exhausted
        # Read from one place on, whatever k is, so that the order of the first hits does not depend on it.
        read = hydrate(self._connection, ranked[: question.settings.rerank_candidates])
        try:
            ranked = self._reordered(ranked, read, self._reranker)
        except RerankModelUnavailable as error:
            self._reranker = None
            self._degrade([f"The reranking model is unavailable ({error.code}); the order is that of {question.base}."])
        return hydrate(self._connection, ranked), exhausted

    def _ranked(self, depth: int, n_candidates: int) -> tuple[list[Ranked], bool]:
        question = self._question
        if question.base == "semantic":
            ranking = semantic_arm(self._connection, question, self._spec, depth=depth)
            return ranked_by_one("semantic", ranking, k=n_candidates), ranking.height < depth
        bm25, reasons = bm25_arm(self._connection, question, self._lexical, depth=depth)
        self._degrade(reasons)
        if question.base == "bm25":
            return ranked_by_one("bm25", bm25, k=n_candidates), bm25.height < depth
        semantic = semantic_arm(self._connection, question, self._spec, depth=depth)
        weights = fusion_weights(question.settings, self._spec)
        ranked = ranked_by_fusion({"semantic": semantic, "bm25": bm25}, weights, fusion_k=question.settings.fusion_k, k=n_candidates)
        return ranked, max(semantic.height, bm25.height) < depth and len(ranked) < n_candidates

    def _reordered(self, ranked: Sequence[Ranked], read: Sequence[Candidate], reranker: Reranker) -> list[Ranked]:
        question = self._question
        new = [candidate.hit for candidate in read if candidate.hit.chunk_id not in self._scores]
        texts = [hit.content if hit.context is None else f"{hit.context}\n\n{hit.content}" for hit in new]
        scores = reranker.scores(question.query, texts, batch_size=question.settings.rerank_batch_size, check=question.check)
        self._scores |= dict(zip((hit.chunk_id for hit in new), scores, strict=True))
        return reranked(ranked, [self._scores[candidate.hit.chunk_id] for candidate in read])

    def _degrade(self, reasons: Sequence[str]) -> None:
        self._degraded += [reason for reason in reasons if reason not in self._degraded]


def hydrate(connection: Connection, ranked: Sequence[Ranked]) -> list[Candidate]:
    """The chunks of a ranking, in its order, numbered by it."""
    parameters = {"chunk_ids": [hit.chunk_id for hit in ranked], "publication_ids": [hit.publication_id for hit in ranked]}
    cursor = connection.execute(load_queries("retrieval")["hydrate"], parameters, prepare=False)
    names = [column.name for column in cursor.description or ()]
    traces = {hit.chunk_id: hit.trace for hit in ranked}
    candidates: list[Candidate] = []
    for row in cursor:
        fields = dict(zip(names, row, strict=True))
        index, text_hash, trace = fields.pop("chunk_index"), fields.pop("text_hash"), traces[fields["chunk_id"]]
        score = trace.fused_score if trace.rerank_score is None else trace.rerank_score
        hit = Hit(**fields, chunk_ids=[fields["chunk_id"]], score=score, trace=trace)
        candidates.append(Candidate(hit, index, text_hash))
    return candidates


def fusion_weights(settings: Settings, spec: EmbeddingSpec | None) -> dict[str, float]:
    """The weights that were set, or else those that suit the model."""
    if spec is None or {"semantic_weight", "bm25_weight"} & settings.model_fields_set:
        return {"semantic": settings.semantic_weight, "bm25": settings.bm25_weight}
    return {"semantic": spec.semantic_weight, "bm25": 1 - spec.semantic_weight}


def _vectors(wording: Wording, embedder: Embedder) -> tuple[Vectors, ...]:
    if wording.passage is not None:
        return (embedder.embed_passages([wording.passage])[0],)
    return tuple(embedder.embed_query(query) for query in wording.queries)
