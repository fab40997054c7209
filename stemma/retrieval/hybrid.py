"""Rankings with their traces: one arm as it is, or two fused."""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from stemma.retrieval.fusion import reciprocal_rank_fusion
from stemma.retrieval.trace import Arm, RetrievalTrace


@dataclass(frozen=True)
class Ranked:
    """A live chunk at its place in an answer."""

    chunk_id: str
    publication_id: int
    trace: RetrievalTrace


def ranked_by_one(arm: Arm, ranking: pl.DataFrame, *, k: int) -> list[Ranked]:
    """The first k of an arm's ranking (HIT_SCHEMA, best first)."""
    return [
        Ranked(chunk_id, publication_id, RetrievalTrace.of_one_arm(arm, rank=rank, score=score))
        for rank, (chunk_id, publication_id, score) in enumerate(_rows(ranking.head(k)), start=1)
    ]


def ranked_by_fusion(rankings: Mapping[Arm, pl.DataFrame], weights: Mapping[str, float], *, fusion_k: int, k: int) -> list[Ranked]:
    """The first k after fusion.

    Args:
        rankings: arm -> HIT_SCHEMA, best first, live chunks only, so that a chunk has one publication in all arms.
        weights: arm -> weight; they sum to 1.
    """
    ranks = {arm: ranking.select("chunk_id", rank=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32)) for arm, ranking in rankings.items()}
    fused = reciprocal_rank_fusion(ranks, weights, k=fusion_k).head(k)
    places: dict[Arm, dict[str, tuple[int, float]]] = {}
    publications: dict[str, int] = {}
    for arm, ranking in rankings.items():
        rows = _rows(ranking)
        places[arm] = {chunk_id: (rank, score) for rank, (chunk_id, _, score) in enumerate(rows, start=1)}
        publications |= {chunk_id: publication_id for chunk_id, publication_id, _ in rows}
    answer: list[Ranked] = []
    for rank, (chunk_id, score) in enumerate(fused.iter_rows(), start=1):
        own: dict[str, float] = {}
        for arm, found in places.items():
            if chunk_id in found:
                own[f"{arm}_rank"], own[f"{arm}_score"] = found[chunk_id]
        trace = RetrievalTrace.model_validate({**own, "fused_score": score, "fused_rank": rank, "final_rank": rank})
        answer.append(Ranked(chunk_id, publications[chunk_id], trace))
    return answer


def _rows(ranking: pl.DataFrame) -> list[tuple[str, int, float]]:
    return ranking.select("chunk_id", "publication_id", "score").rows()
