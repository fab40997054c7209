"""Weighted reciprocal-rank fusion: many rankings become one, by rank alone."""

from collections.abc import Mapping

import polars as pl

from stemma.retrieval.errors import UnknownMethod

RRF_K = 60  # the paper's constant; a larger one flattens the difference between ranks

RANKING_SCHEMA = pl.Schema({"chunk_id": pl.String, "rank": pl.UInt32})
FUSED_SCHEMA = pl.Schema({"chunk_id": pl.String, "score": pl.Float64})


def reciprocal_rank_fusion(rankings: Mapping[str, pl.DataFrame], weights: Mapping[str, float], *, k: int = RRF_K) -> pl.DataFrame:
    """Fuse rankings by rank alone, so that scores of different scales need no normalising.

    Args:
        rankings: at least one method -> frame with RANKING_SCHEMA's columns; ranks from 1, a chunk once per frame.
        weights: method -> factor >= 0; they sum to 1.
    Returns:
        FUSED_SCHEMA, a row per distinct chunk, best first, ties by chunk_id;
        score = (k + 1) * sum over methods of weight / (k + rank), so 1.0 is first everywhere.
    Raises:
        UnknownMethod: a ranking has no weight.
    Source: Cormack, Clarke, Buettcher, "Reciprocal Rank Fusion ...", SIGIR 2009; the weights are ours.
    """
    if unweighted := rankings.keys() - weights.keys():
        raise UnknownMethod(min(unweighted), known=sorted(weights))
    votes = [
        ranking.select("chunk_id", score=(k + 1) * weights[method] / (k + pl.col("rank").cast(pl.Float64)))
        for method, ranking in sorted(rankings.items())  # floats added in another order could part what is equal
    ]
    fused = pl.concat(votes).group_by("chunk_id", maintain_order=True).agg(pl.col("score").sum())
    return fused.sort("score", "chunk_id", descending=[True, False])
