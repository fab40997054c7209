"""Measures of ranked retrieval. Every function judges one query; a set's figure is the mean over its queries.

`ranked` holds ids, best first, each once; `relevant` the ids that answer the query; `gains` id -> how well it answers (absent: 0).
A query without anything relevant has no recall and no order to be right about: it counts as 0, as trec_eval has it.
"""

import math
from collections.abc import Collection, Mapping, Sequence

Span = tuple[str, int, int]
"""A stretch of a document's text: doc_id, first code point, code point after the last."""


def recall_at_k(relevant: Collection[str], ranked: Sequence[str], k: int) -> float:
    """Share of what is relevant that stands among the first k."""
    return _n_found(relevant, ranked, k) / len(relevant) if relevant else 0.0


def precision_at_k(relevant: Collection[str], ranked: Sequence[str], k: int) -> float:
    """Share of k places that hold something relevant; places that are left empty count as wrong."""
    return _n_found(relevant, ranked, k) / k


def hit_rate_at_k(relevant: Collection[str], ranked: Sequence[str], k: int) -> float:
    """1.0 when anything relevant stands among the first k, else 0.0."""
    return float(_n_found(relevant, ranked, k) > 0)


def reciprocal_rank_at_k(relevant: Collection[str], ranked: Sequence[str], k: int) -> float:
    """1 / rank of the first that is relevant, 0.0 when none is among the first k; its mean is MRR@k."""
    return next((1 / rank for rank, found in enumerate(ranked[:k], start=1) if found in relevant), 0.0)


def average_precision_at_k(relevant: Collection[str], ranked: Sequence[str], k: int) -> float:
    """Mean of the precision at the rank of each relevant id, 0 for those not among the first k; its mean is MAP@k."""
    ranks = [rank for rank, found in enumerate(ranked[:k], start=1) if found in relevant]
    return sum(number / rank for number, rank in enumerate(ranks, start=1)) / len(relevant) if relevant else 0.0


def ndcg_at_k(gains: Mapping[str, float], ranked: Sequence[str], k: int) -> float:
    """Gain discounted by log2(rank + 1), over that of the best order there is; gains enter as they are, not as powers of two.

    Source: Järvelin, Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002, as trec_eval's `ndcg_cut` reads it.
    """
    best = _discounted(sorted(gains.values(), reverse=True)[:k])
    return _discounted([gains.get(found, 0.0) for found in ranked[:k]]) / best if best else 0.0


def span_recall_at_k(gold: Collection[Span], ranked: Sequence[Span], k: int) -> float:
    """Share of the gold characters that the first k passages hold, each counted once: fair to any way of cutting texts."""
    found = _without_overlap(ranked[:k])
    wanted = _without_overlap(gold)
    n_found = sum(
        max(0, min(end, other_end) - max(start, other_start))
        for doc_id, stretches in wanted.items()
        for start, end in stretches
        for other_start, other_end in found.get(doc_id, ())
    )
    n_wanted = sum(end - start for stretches in wanted.values() for start, end in stretches)
    return n_found / n_wanted if n_wanted else 0.0


def _n_found(relevant: Collection[str], ranked: Sequence[str], k: int) -> int:
    return sum(found in relevant for found in ranked[:k])


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _without_overlap(spans: Collection[Span]) -> dict[str, list[tuple[int, int]]]:
    """doc_id -> its stretches in order, those that overlap or touch made one."""
    stretches: dict[str, list[tuple[int, int]]] = {}
    for doc_id, start, end in sorted(spans):
        before = stretches.setdefault(doc_id, [])
        if before and start <= before[-1][1]:
            before[-1] = (before[-1][0], max(before[-1][1], end))
        else:
            before.append((start, end))
    return stretches
