"""Weighted reciprocal-rank fusion: ranks in, ranks out."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.lexical.index import HIT_SCHEMA
from stemma.retrieval.errors import UnknownMethod
from stemma.retrieval.fusion import FUSED_SCHEMA, RANKING_SCHEMA, reciprocal_rank_fusion
from stemma.retrieval.hybrid import ranked_by_fusion

HALVES = {"semantic": 0.5, "bm25": 0.5}
chunk_ids = st.lists(st.text("abcdefgh", min_size=1, max_size=3), unique=True, max_size=12)
scores = st.lists(st.floats(0.001, 1e6), min_size=12, max_size=12).map(lambda values: sorted(values, reverse=True))
weights = st.floats(0, 1).map(lambda weight: {"semantic": weight, "bm25": 1 - weight})


def ranking(*ids):
    return pl.DataFrame({"chunk_id": ids, "rank": range(1, len(ids) + 1)}, schema=RANKING_SCHEMA)


def arm(ids, values):
    rows = [(chunk_id, 1, score) for chunk_id, score in zip(ids, values, strict=False)]
    return pl.DataFrame(rows, schema=HIT_SCHEMA, orient="row")


def test_a_chunk_found_by_both_methods_beats_the_first_of_either():
    rankings = {"semantic": ranking("s", "both"), "bm25": ranking("b", "both")}
    assert reciprocal_rank_fusion(rankings, HALVES)["chunk_id"].to_list() == ["both", "b", "s"]


def test_first_in_both_methods_scores_one():
    fused = reciprocal_rank_fusion({"semantic": ranking("a"), "bm25": ranking("a")}, HALVES)
    assert fused["score"].to_list() == [1.0]


def test_a_missing_method_adds_nothing():
    fused = reciprocal_rank_fusion({"semantic": ranking("x", "a"), "bm25": ranking("x")}, {"semantic": 0.7, "bm25": 0.3}, k=60)
    assert dict(fused.iter_rows())["a"] == pytest.approx(61 * 0.7 / 62)


def test_a_ranking_without_a_weight_is_refused():
    with pytest.raises(UnknownMethod, match="'graph' is not one of bm25, semantic"):
        reciprocal_rank_fusion({"graph": ranking("a")}, HALVES)


def test_two_empty_rankings_fuse_to_an_empty_frame():
    assert reciprocal_rank_fusion({"semantic": ranking(), "bm25": ranking()}, HALVES).equals(FUSED_SCHEMA.to_frame())


@given(chunk_ids)
def test_one_ranking_alone_keeps_its_order(ids):
    assert reciprocal_rank_fusion({"bm25": ranking(*ids)}, {"bm25": 1.0})["chunk_id"].to_list() == ids


@given(chunk_ids, chunk_ids, weights, st.integers(0, 200))
def test_scores_lie_between_zero_and_one_and_ties_are_ordered_by_chunk(semantic, bm25, pair, k):
    fused = reciprocal_rank_fusion({"semantic": ranking(*semantic), "bm25": ranking(*bm25)}, pair, k=k)
    rows = fused.rows()
    assert {chunk_id for chunk_id, _ in rows} == {*semantic, *bm25}
    assert all(0 <= score <= 1 + 1e-12 for _, score in rows)
    assert rows == sorted(rows, key=lambda row: (-row[1], row[0]))


@given(chunk_ids, chunk_ids, weights, st.integers(0, 200))
def test_the_order_of_the_methods_changes_nothing(semantic, bm25, pair, k):
    one = {"semantic": ranking(*semantic), "bm25": ranking(*bm25)}
    other = dict(reversed(one.items()))
    assert reciprocal_rank_fusion(one, pair, k=k).equals(reciprocal_rank_fusion(other, pair, k=k))


@given(chunk_ids, scores, chunk_ids, scores, st.sampled_from(["semantic", "bm25"]))
def test_scaling_one_arms_scores_changes_no_fused_rank_or_score(semantic, semantic_scores, bm25, bm25_scores, scaled):
    arms = {"semantic": arm(semantic, semantic_scores), "bm25": arm(bm25, bm25_scores)}
    plain = ranked_by_fusion(arms, HALVES, fusion_k=60, k=20)
    arms[scaled] = arms[scaled].with_columns(pl.col("score") * 1000)
    thousandfold = ranked_by_fusion(arms, HALVES, fusion_k=60, k=20)

    def standing(ranked):
        return [(hit.chunk_id, hit.trace.fused_rank, hit.trace.fused_score) for hit in ranked]

    assert standing(plain) == standing(thousandfold)


@given(chunk_ids, scores, chunk_ids, scores, st.integers(1, 20))
def test_the_trace_says_where_each_arm_placed_the_chunk(semantic, semantic_scores, bm25, bm25_scores, k):
    arms = {"semantic": arm(semantic, semantic_scores), "bm25": arm(bm25, bm25_scores)}
    ranked = ranked_by_fusion(arms, HALVES, fusion_k=60, k=k)
    assert len(ranked) == min(k, len({*semantic, *bm25}))
    for place, hit in enumerate(ranked, start=1):
        assert (hit.trace.fused_rank, hit.trace.final_rank) == (place, place)
        assert hit.trace.semantic_rank == (semantic.index(hit.chunk_id) + 1 if hit.chunk_id in semantic else None)
        assert hit.trace.bm25_rank == (bm25.index(hit.chunk_id) + 1 if hit.chunk_id in bm25 else None)
        assert (hit.trace.semantic_score is None) == (hit.trace.semantic_rank is None)
        assert (hit.trace.bm25_score is None) == (hit.trace.bm25_rank is None)
