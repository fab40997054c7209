"""Ranked chunks shaped to passages: merged, folded, mixed, within a budget; k counts what is left."""

import pytest

from stemma.retrieval.errors import InvalidShape
from stemma.retrieval.passages import Shape

METHODS = ["semantic", "bm25", "hybrid"]
MERGED = Shape(merge=True)
FOLDED = Shape(fold=True)


@pytest.mark.parametrize("method", METHODS)
def test_neighbours_become_one_passage_whose_text_is_the_document_s(corpus, ask, method):
    published = corpus.publish(
        "a.md", "needle one", "needle two", "other words", "needle four", pages=[1, 2, 3, 4],
        sections=[["A", "B"], ["A", "C"], ["A"], ["D"]],
    )  # fmt: skip
    hits = ask("needle", method=method, shape=MERGED, k=10 if method == "bm25" else 3).hits
    if method != "bm25":  # by meaning everything is found, so all is one
        hits = [hit for hit in hits if len(hit.chunk_ids) == 4]
        assert [hit.content for hit in hits] == ["needle one\n\nneedle two\n\nother words\n\nneedle four"]
        return
    both, alone = sorted(hits, key=lambda hit: hit.char_start)
    assert both.chunk_ids == published.chunk_ids[:2] and both.chunk_id in both.chunk_ids
    assert (both.content, both.char_start, both.char_end) == ("needle one\n\nneedle two", 0, 22)
    assert (both.start_line, both.end_line, both.page_start, both.page_end) == (1, 3, 1, 2)
    assert (both.section_path, both.n_tokens) == (["A"], 4)
    assert (alone.content, alone.chunk_ids) == ("needle four", [published.chunk_ids[3]])
    assert sorted(hit.trace.final_rank for hit in hits) == [1, 2]


def test_k_counts_passages_after_the_merge(corpus, ask):
    for name in "abcdefgh":
        corpus.publish(f"{name}.md", *(f"needle {name} {number}" for number in range(8)))
    hits = ask("needle", method="bm25", shape=MERGED, k=8).hits
    assert sorted(hit.source_path for hit in hits) == [f"{name}.md" for name in "abcdefgh"]
    assert all(len(hit.chunk_ids) == 8 for hit in hits)


def test_a_chunk_between_two_passages_makes_them_one(corpus, ask):
    corpus.publish("a.md", "needle needle needle", "needle far down among many other words", "needle needle")
    (hit,) = ask("needle", method="bm25", shape=MERGED, k=2).hits
    assert hit.content == "needle needle needle\n\nneedle far down among many other words\n\nneedle needle"
    assert hit.chunk_id.endswith("::0")


def test_chunks_of_other_documents_and_versions_never_merge(corpus, ask):
    corpus.publish("a.md", "needle a")
    corpus.publish("b.md", "other", "needle b")
    assert len(ask("needle", method="bm25", shape=MERGED).hits) == 2


def test_equal_texts_are_one_passage_that_lists_all_its_places(corpus, ask):
    for path in ("a.md", "sub/b.md", "sub/c.md"):
        corpus.publish(path, f"intro of {path}", "the needle is here", "an end")
    plain = ask("needle", method="bm25").hits
    (hit,) = ask("needle", method="bm25", shape=FOLDED).hits
    assert len(plain) == 3 and hit.chunk_id == plain[0].chunk_id
    assert {hit.source_path, *(place.source_path for place in hit.also_at)} == {"a.md", "sub/b.md", "sub/c.md"}
    for place in hit.also_at:
        assert place.char_end - place.char_start == len(hit.content) and place.chunk_id.startswith(place.doc_id)
    (scoped,) = ask("needle", method="bm25", shape=FOLDED, folders=("sub",)).hits
    assert {scoped.source_path, *(place.source_path for place in scoped.also_at)} == {"sub/b.md", "sub/c.md"}


@pytest.mark.parametrize("method", METHODS)
def test_duplicates_do_not_use_up_k(corpus, ask, method):
    for number in range(70):
        corpus.publish(f"copies/{number}.md", "needle needle")
    corpus.publish("a.md", "needle of another kind")
    hits = ask("needle", method=method, shape=FOLDED, k=2).hits
    assert {hit.content for hit in hits} == {"needle needle", "needle of another kind"}
    assert [len(hit.also_at) for hit in hits] == [69, 0]


def test_passages_stay_within_the_budget_of_tokens(corpus, ask):
    corpus.publish("a.md", "needle", "needle and a passage of eight words altogether", "needle again")
    everything = ask("needle", method="bm25").hits
    assert sum(hit.n_tokens for hit in everything) == 11
    hits = ask("needle", method="bm25", shape=Shape(max_tokens=3)).hits
    assert sorted(hit.content for hit in hits) == ["needle", "needle again"]
    assert [hit.trace.final_rank for hit in hits] == [1, 2]
    assert ask("needle", method="bm25", shape=Shape(max_tokens=1)).hits[0].content == "needle"


@pytest.mark.parametrize("method", METHODS)
def test_diversity_brings_other_documents_up_and_keeps_the_best_first(corpus, ask, method):
    corpus.publish("a.md", *(f"needle needle {word}" for word in ("one", "two", "three")))
    corpus.publish("b.md", "needle in quite another text with many more words")
    plain, mixed = ask("needle", method=method).hits, ask("needle", method=method, shape=Shape(diversity=0.7)).hits
    assert [hit.source_path for hit in plain[:3]] == ["a.md"] * 3
    assert mixed[0].chunk_id == plain[0].chunk_id and mixed[1].source_path == "b.md"
    assert {hit.chunk_id for hit in mixed} == {hit.chunk_id for hit in plain}
    assert [hit.trace.final_rank for hit in mixed] == list(range(1, len(mixed) + 1))


@pytest.mark.parametrize("shape", [Shape(diversity=-0.1), Shape(diversity=1.1), Shape(diversity=float("nan")), Shape(max_tokens=0)])
def test_a_shape_that_cannot_be_is_refused(ask, shape):
    with pytest.raises(InvalidShape):
        ask("needle", shape=shape)


def test_all_of_it_at_once_before_the_first_ingest(ask):
    assert ask("needle", shape=Shape(merge=True, fold=True, diversity=0.5, max_tokens=100)).hits == []
