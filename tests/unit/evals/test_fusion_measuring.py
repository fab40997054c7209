"""A labelled set small enough to be judged by eye."""

import json

import pytest
from searchable_corpus import WordCounts

from evals.fusion import CONSTANTS, WEIGHTS, measure, measure_fusion, search_arms, table
from evals.labelled_sets import read_labelled_set
from stemma.settings import Settings

TEXTS = {"a": "# Soup\n\nOnions and butter.\u2028Salt.\n\n# Bread\n\nFlour and water.", "b": "Servers are restored every quarter."}


@pytest.fixture
def labelled(tmp_path):
    documents = [json.dumps({"doc_id": doc_id, "title": "t", "text": text}, ensure_ascii=False) for doc_id, text in TEXTS.items()]
    (tmp_path / "tiny.docs.jsonl").write_text("\n".join(documents) + "\n", "utf-8")
    start = TEXTS["a"].index("Flour")
    gold = [{"doc_id": "a", "start": start, "end": len(TEXTS["a"]), "text": TEXTS["a"][start:]}]
    (tmp_path / "tiny.queries.jsonl").write_text(json.dumps({"query": "flour water", "gold_docs": ["a"], "gold_spans": gold}), "utf-8")
    return read_labelled_set(tmp_path, "tiny", Settings(home=tmp_path))


def test_texts_are_cut_as_the_product_cuts_them_and_keep_their_offsets(labelled):
    assert all(TEXTS[passage.span[0]][passage.span[1] : passage.span[2]] == passage.content for passage in labelled.passages)
    (answering,) = [passage for passage in labelled.passages if "Flour" in passage.content]
    assert labelled.gains() == [{answering.chunk_id: 1.0}]


def test_both_arms_and_every_way_to_fuse_them_are_measured(labelled, tmp_path):
    arms = search_arms(labelled, embedder=WordCounts(), cache=tmp_path / "vectors")
    assert search_arms(labelled, embedder=WordCounts(), cache=tmp_path / "vectors") == arms
    measured = measure_fusion(labelled, arms)
    assert len(measured) == 2 + len(CONSTANTS) * len(WEIGHTS)
    assert measured["bm25"] == dict.fromkeys(("span_recall@5", "span_recall@10", "ndcg@10", "mrr@10"), 1.0)
    assert measure(labelled, [[]])["mrr@10"] == 0.0
    assert "| bm25 | 1.000 | 1.0000 |" in table({"tiny": measured}, "mrr@10")
