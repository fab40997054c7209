"""Our measures are trec_eval's, where it has them, and fair to any way of cutting texts, where it has none."""

import importlib.util
from collections.abc import Sequence

import ir_measures
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, RR, P, R, ScoredDoc, Success, nDCG

from evals.metrics import (
    average_precision_at_k,
    hit_rate_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
    span_recall_at_k,
)

IDS = [f"c{number:02}" for number in range(30)]
rankings = st.lists(st.sampled_from(IDS), unique=True, min_size=1)
judgements = st.dictionaries(st.sampled_from(IDS), st.integers(1, 4), min_size=1)


def by_trec_eval(gains: dict[str, int], ranked: Sequence[str], k: int) -> dict[str, float]:
    """The same measures by ir-measures, which asks trec_eval."""
    run = [ScoredDoc("q", found, float(len(ranked) - place)) for place, found in enumerate(ranked)]
    judged = [ir_measures.Qrel("q", found, gain) for found, gain in gains.items()]
    measures = {"recall": R @ k, "precision": P @ k, "hit": Success @ k, "rr": RR @ k, "ap": AP @ k, "ndcg": nDCG @ k}
    found = ir_measures.calc_aggregate(measures.values(), judged, run)
    return {name: found[measure] for name, measure in measures.items()}


@given(judgements, rankings, st.sampled_from([1, 3, 10, 100]))
def test_every_measure_equals_that_of_trec_eval(gains, ranked, k):
    ours = {
        "recall": recall_at_k(gains, ranked, k),
        "precision": precision_at_k(gains, ranked, k),
        "hit": hit_rate_at_k(gains, ranked, k),
        "rr": reciprocal_rank_at_k(gains, ranked, k),
        "ap": average_precision_at_k(gains, ranked, k),
        "ndcg": ndcg_at_k(gains, ranked, k),
    }
    assert ours == pytest.approx(by_trec_eval(gains, ranked, k))


@pytest.mark.parametrize("measure", [recall_at_k, precision_at_k, hit_rate_at_k, reciprocal_rank_at_k, average_precision_at_k])
def test_a_query_that_nothing_answers_counts_as_zero(measure):
    assert measure(set(), ["a", "b"], 5) == 0.0
    assert ndcg_at_k({}, ["a", "b"], 5) == span_recall_at_k([], [("d", 0, 5)], 5) == 0.0


def test_characters_that_two_passages_share_count_once():
    gold = [("d", 0, 10), ("d", 5, 15), ("e", 0, 5)]
    assert span_recall_at_k(gold, [("d", 0, 8), ("d", 4, 8), ("x", 0, 9)], 3) == 8 / 20
    assert span_recall_at_k(gold, [("x", 0, 9), ("d", 0, 15), ("e", 0, 9)], 2) == 15 / 20


spans = st.lists(
    st.tuples(st.sampled_from("de"), st.integers(0, 40), st.integers(1, 20)).map(lambda s: (s[0], s[1], s[1] + s[2])), min_size=1
)


@pytest.fixture(scope="module")
def scorer(shared):
    """The script that lies beside the labelled sets."""
    specification = importlib.util.spec_from_file_location("score", shared / "evalsets" / "score.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@given(spans, spans)
def test_span_recall_equals_that_of_the_sets_own_scorer(scorer, gold, ranked):
    recall, *_ = scorer.span_scores([{"doc_id": doc_id, "start": start, "end": end} for doc_id, start, end in gold], ranked)
    assert span_recall_at_k(gold, ranked, len(ranked)) == pytest.approx(recall)
