"""Searches over real rows, vectors and keyword entries."""

from contextlib import suppress

import pytest

from stemma.retrieval.errors import EmbeddingMismatch, EmptyQuery, InvalidK, QueryTooLong, UnknownMethod
from stemma.settings import Settings

METHODS = ["semantic", "bm25", "hybrid"]


@pytest.mark.parametrize("method", METHODS)
def test_a_hit_carries_all_that_is_needed_to_cite_it(corpus, ask, method):
    published = corpus.publish("notes/a.md", "first passage", "the needle lies here", page=7, context="A title")
    (hit, *_) = ask("needle", method=method).hits
    assert hit.chunk_id == published.chunk_ids[1]
    assert (hit.source_id, hit.doc_id, hit.publication_id) == (published.source_id, published.doc_id, published.publication_id)
    assert (hit.source_path, hit.workspace, hit.file_type, hit.title) == ("notes/a.md", "notes", "md", "a.md")
    assert (hit.content, hit.context) == ("the needle lies here", "A title")
    assert (hit.char_start, hit.char_end, hit.start_line, hit.end_line, hit.page_start, hit.page_end) == (15, 35, 3, 3, 7, 7)
    assert (hit.section_path, hit.chunk_type, hit.extraction) == (["Top", "Part 1"], "prose", "text")
    assert hit.trace is not None and hit.score == hit.trace.fused_score


@pytest.mark.parametrize("method", METHODS)
def test_the_trace_names_the_arms_that_were_searched(corpus, ask, method):
    corpus.publish("a.md", "the needle lies here")
    (hit,) = ask("needle", method=method).hits
    assert (hit.trace.semantic_rank is None) == (method == "bm25")
    assert (hit.trace.bm25_rank is None) == (method == "semantic")
    assert (hit.trace.rerank_score, hit.trace.rerank_delta) == (None, None)
    assert hit.trace.final_rank == hit.trace.fused_rank == 1


def test_first_in_both_arms_scores_one_and_an_arm_that_missed_a_chunk_has_no_rank(corpus, ask):
    corpus.publish("a.md", "needle needle needle")
    corpus.publish("b.md", "wholly other words")
    first, second = ask("needle").hits
    assert first.score == 1.0
    assert (second.trace.bm25_rank, second.trace.bm25_score) == (None, None)
    assert second.score == pytest.approx(0.4 * 3 / 4)


def test_explicit_weights_win_over_those_of_the_model(corpus, ask):
    corpus.publish("a.md", "needle needle needle")
    corpus.publish("b.md", "wholly other words")
    weighted = Settings(home=corpus.settings.home, semantic_weight=0.2, bm25_weight=0.8)
    assert ask("needle", settings=weighted).hits[1].score == pytest.approx(0.2 * 3 / 4)


@pytest.mark.parametrize("method", METHODS)
def test_k_hits_come_back_even_if_most_entries_are_of_dead_versions(corpus, ask, method):
    source_id = corpus.publish("old.md", *(f"needle {n} old" for n in range(60))).source_id
    corpus.publish("old.md", "nothing of interest", source_id=source_id)
    live = corpus.publish("live.md", *(f"a needle {n} among longer passages that rank behind" for n in range(5)))
    hits = ask("needle", method=method, k=5).hits
    assert {hit.chunk_id for hit in hits} == set(live.chunk_ids)
    assert [hit.trace.final_rank for hit in hits] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("method", METHODS)
def test_entries_without_a_row_are_dropped_without_an_error(corpus, ask, shared, method):
    text = (shared / "cases" / "36-failed-document-answers" / "f.txt").read_text("utf-8")
    corpus.prepare("failed.txt", text)  # the transaction never comes: the store failed after the keyword index had the entries
    answer = ask("needle-halfway", method=method)
    assert (answer.hits, answer.degraded) == ([], [])


@pytest.mark.parametrize("method", METHODS)
def test_a_source_being_deleted_is_out_of_every_scope_at_once(corpus, ask, method):
    published = corpus.publish("a.md", "the needle lies here")
    with corpus.connection.transaction():
        corpus.connection.execute("UPDATE sources SET deletion_intent = 'keep_file', deletion_step = 'marked'")
    assert ask("needle", method=method).hits == []
    assert ask("needle", method=method, documents=(published.source_id,)).hits == []


def test_equal_passages_are_ordered_by_chunk(corpus, ask):
    copies = [corpus.publish(f"copy-{n}.md", "the very same needle").chunk_ids[0] for n in range(6)]
    for method in METHODS:
        assert [hit.chunk_id for hit in ask("needle", method=method, k=6).hits] == sorted(copies)


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_corpus_answers_with_an_empty_list(ask, method):
    assert ask("anything", method=method).hits == []


@pytest.mark.parametrize("method", METHODS)
def test_before_the_first_ingest_there_is_no_active_index_and_no_error(corpus, ask, method):
    with corpus.connection.transaction():
        corpus.connection.execute("UPDATE corpus_state SET active_embedding_index = NULL, active_sparse_index = NULL")
        corpus.connection.execute("UPDATE embedding_indexes SET state = 'building'")
        corpus.connection.execute("UPDATE sparse_indexes SET state = 'building'")
    assert ask("anything", method=method).hits == []


def test_a_query_embedded_by_another_model_is_refused(corpus, ask):
    class OtherModel(type(corpus.embedder)):
        spec = type(corpus.embedder.spec)(**{**vars(corpus.embedder.spec), "model": "other", "revision": "2" * 64})

    corpus.publish("a.md", "the needle lies here")
    for method in ("semantic", "hybrid"):
        with pytest.raises(
            EmbeddingMismatch, match=r"embedded by other \(revision 2+, 32 dimensions\), the active index holds vectors of word-counts"
        ):
            ask("needle", method=method, embedder=OtherModel())
    assert len(ask("needle", method="bm25", embedder=OtherModel()).hits) == 1


@pytest.mark.parametrize(
    ("query", "options", "refusal"),
    [
        ("", {}, EmptyQuery),
        (" \t\n\u3000", {}, EmptyQuery),
        ("\0\ud800", {}, EmptyQuery),
        ("x" * 10_001, {}, QueryTooLong),
        ("x", {"k": 0}, InvalidK),
        ("x", {"k": 1_001}, InvalidK),
        ("x", {"method": "graph"}, UnknownMethod),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused(ask, query, options, refusal):
    with pytest.raises(refusal):
        ask(query, **options)


def test_the_longest_query_and_the_largest_k_are_answered(corpus, ask):
    corpus.publish("a.md", "the needle lies here")
    for method in METHODS:
        assert len(ask("needle " * 1_428, method=method, k=1_000).hits) == 1


def test_what_no_text_can_hold_is_taken_out_of_the_query(corpus, ask):
    corpus.publish("a.md", "the needle lies here")
    for method in METHODS:
        answer = ask("  nee\0dle\ud800 ", method=method)
        assert (answer.query, len(answer.hits)) == ("needle", 1)


def test_no_character_of_a_query_is_an_operator(corpus, ask, shared):
    case = shared / "cases" / "29-query-characters"
    published = corpus.publish("syntax.txt", (case / "query_syntax.txt").read_text("utf-8"))
    for query in (case / "queries.txt").read_text("utf-8").split("\n"):
        for method in METHODS:
            with suppress(EmptyQuery, QueryTooLong):
                assert {hit.chunk_id for hit in ask(query, method=method).hits} <= {published.chunk_ids[0]}
    assert len(ask("needle-syntax", method="bm25").hits) == 1
    assert ask("* OR unfindable", method="bm25").hits == []
