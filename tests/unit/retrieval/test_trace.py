"""The retrieval trace of a method with one arm."""

import pytest
from pydantic import ValidationError

from stemma.retrieval.trace import RetrievalTrace


def test_the_fields_are_exactly_those_of_the_contract():
    assert list(RetrievalTrace.model_fields) == [
        "semantic_rank", "semantic_score", "bm25_rank", "bm25_score", "fused_score", "fused_rank",
        "rerank_score", "rerank_delta", "final_rank",
    ]  # fmt: skip


@pytest.mark.parametrize(("arm", "other"), [("semantic", "bm25"), ("bm25", "semantic")])
def test_a_single_arm_reports_its_own_rank_and_score_as_fused(arm, other):
    trace = RetrievalTrace.of_one_arm(arm, rank=3, score=0.25).model_dump()
    assert (trace[f"{arm}_rank"], trace[f"{arm}_score"]) == (3, 0.25)
    assert (trace["fused_rank"], trace["fused_score"], trace["final_rank"]) == (3, 0.25, 3)
    assert trace[f"{other}_rank"] is trace[f"{other}_score"] is None
    assert trace["rerank_score"] is trace["rerank_delta"] is None


@pytest.mark.parametrize("required", ["fused_score", "fused_rank", "final_rank"])
def test_fused_and_final_places_are_required(required):
    fields = {"fused_score": 1.0, "fused_rank": 1, "final_rank": 1}
    del fields[required]
    with pytest.raises(ValidationError, match=required):
        RetrievalTrace(**fields)


def test_ranks_count_from_one():
    with pytest.raises(ValidationError, match="fused_rank"):
        RetrievalTrace(fused_score=1.0, fused_rank=0, final_rank=1)
