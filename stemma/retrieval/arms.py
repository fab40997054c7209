"""The two arms of a search within a snapshot, each over all wordings of the query."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl
import structlog

from sql import load_queries
from stemma.embedding.embedder import EmbeddingSpec
from stemma.errors import ConfigurationError, Unavailable
from stemma.lexical.errors import LexicalIndexUnavailable
from stemma.lexical.index import HIT_SCHEMA, LexicalIndex
from stemma.retrieval.bm25 import bm25_ranking, tsvector_ranking
from stemma.retrieval.errors import EmbeddingMismatch, QueryTimeout
from stemma.retrieval.fusion import reciprocal_rank_fusion
from stemma.retrieval.question import Question
from stemma.retrieval.semantic import semantic_ranking
from stemma.store.embedding_indexes import active_embedding_index
from stemma.store.postgres import Connection
from stemma.store.sparse_indexes import SparseIndex, active_sparse_index

_log = structlog.get_logger(__name__)

KeywordIndexes = Callable[[SparseIndex], LexicalIndex]
"""Opens the keyword index that a snapshot names. Raises Unavailable or ConfigurationError where it cannot."""


def semantic_arm(connection: Connection, question: Question, spec: EmbeddingSpec | None, *, depth: int) -> pl.DataFrame:
    """The nearest chunks (HIT_SCHEMA, best first); none before the first ingest. Raises EmbeddingMismatch."""
    active = active_embedding_index(connection)
    if active is None:
        return HIT_SCHEMA.to_frame()
    if not question.vectors or spec is None or spec.spec_hash != active.spec.spec_hash:
        raise EmbeddingMismatch(f"the query is embedded by {_described(spec)}, the active index holds vectors of {_described(active.spec)}")
    found: list[pl.DataFrame] = []
    for vector in question.vectors:
        question.check()
        found.append(
            semantic_ranking(
                connection, vector, index=active, depth=depth, scope=question.scope,
                exact_scan_max_chunks=question.settings.exact_scan_max_chunks,
            )
        )  # fmt: skip
    return joined(found, fusion_k=question.settings.fusion_k).head(depth)


def bm25_arm(connection: Connection, question: Question, lexical: KeywordIndexes, *, depth: int) -> tuple[pl.DataFrame, list[str]]:
    """The chunks with the best words (HIT_SCHEMA, best first); and why full-text search in PostgreSQL answered, where it did."""
    active = active_sparse_index(connection)
    if active is None:
        return HIT_SCHEMA.to_frame(), []
    # Operators are what the asker wrote; what a language model wrote is plain words.
    asked = [(query, question.operators and place == 0) for place, query in enumerate(question.wording.queries)]
    try:
        if active.incomplete:
            raise LexicalIndexUnavailable("the keyword index was lost and is being made again")
        index = lexical(active)
        found = [
            bm25_ranking(connection, query, index=index, depth=depth, scope=question.scope, operators=operators, check=question.check)
            for query, operators in asked
        ]
        if all(ranking.is_empty() for ranking in found) and _lost_its_entries(connection, active, index):
            raise LexicalIndexUnavailable("the keyword index is empty, though entries were written")
        reasons: list[str] = []
    except QueryTimeout:
        raise
    except (Unavailable, ConfigurationError) as error:
        _log.warning("keyword index unavailable", index=active.name, code=error.code, reason=str(error))
        reasons = [f"The keyword index is unavailable ({error.code}); full-text search in PostgreSQL answered in its place."]
        found = [tsvector_ranking(connection, query, depth=depth, scope=question.scope, operators=operators) for query, operators in asked]
    return joined(found, fusion_k=question.settings.fusion_k).head(depth), reasons


def joined(rankings: Sequence[pl.DataFrame], *, fusion_k: int) -> pl.DataFrame:
    """The rankings (HIT_SCHEMA) of several wordings as one, fused by rank with equal weights; a chunk keeps its best score."""
    if len(rankings) == 1:
        return rankings[0]
    named = {f"{number:02}": ranking for number, ranking in enumerate(rankings)}
    ranks = {name: ranking.select("chunk_id", rank=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)) for name, ranking in named.items()}
    weights: Mapping[str, float] = dict.fromkeys(named, 1 / len(named))
    best = pl.concat(rankings).group_by("chunk_id").agg(pl.col("publication_id").first(), pl.col("score").max())
    fused = reciprocal_rank_fusion(ranks, weights, k=fusion_k).select("chunk_id")
    return fused.join(best, on="chunk_id", how="left", maintain_order="left").match_to_schema(HIT_SCHEMA)


def _described(spec: EmbeddingSpec | None) -> str:
    return f"{spec.model} (revision {spec.revision[:12]}, {spec.dimension} dimensions)" if spec else "no model"


def _lost_its_entries(connection: Connection, active: SparseIndex, index: LexicalIndex) -> bool:
    """Whether the index holds nothing although entries of live publications were recorded: its folder was removed or replaced."""
    recorded = connection.execute(load_queries("retrieval")["has_entries"], {"sparse_index_id": active.sparse_index_id}).fetchone()
    return recorded == (True,) and not index.publications()
