"""One answer is one state of the corpus, whatever is published while it is being made."""

from threading import Thread

import pytest

from stemma.lexical.errors import LexicalIndexUnavailable
from stemma.retrieval.errors import QueryTimeout
from stemma.settings import Settings


class Hooked:
    """The keyword index, with something that happens just before it is searched."""

    def __init__(self, index, hook):
        self.index, self.hook = index, hook

    def search(self, *args, **kwargs):
        self.hook()
        return self.index.search(*args, **kwargs)

    def publications(self):
        return self.index.publications()


def test_a_publish_between_the_arms_is_not_seen_at_all(corpus, ask):
    old = corpus.publish("a.md", "needle old one", "needle old two")
    go_live = corpus.prepare("a.md", "needle new one", "needle new two", "needle new three", source_id=old.source_id)

    def publish():
        thread = Thread(target=go_live)  # a connection other than the search's, in its own time
        thread.start()
        thread.join()

    during = ask("needle", lexical=lambda _: Hooked(corpus.keywords, publish))
    assert {hit.publication_id for hit in during.hits} == {old.publication_id}
    assert len(during.hits) == 2
    assert all(hit.trace.semantic_rank and hit.trace.bm25_rank for hit in during.hits)
    after = ask("needle")
    assert {hit.content for hit in after.hits} == {"needle new one", "needle new two", "needle new three"}


def test_a_deletion_between_the_arms_leaves_the_answer_whole(corpus, ask):
    corpus.publish("a.md", "needle one")
    corpus.publish("b.md", "needle two")

    def delete():
        thread = Thread(
            target=lambda: corpus.connection.execute("DELETE FROM sources WHERE source_path = 'a.md'") and corpus.connection.commit()
        )
        thread.start()
        thread.join()

    during = ask("needle", lexical=lambda _: Hooked(corpus.keywords, delete))
    assert [hit.trace.bm25_rank is not None and hit.trace.semantic_rank is not None for hit in during.hits] == [True, True]
    assert [hit.source_path for hit in ask("needle").hits] == ["b.md"]


@pytest.mark.parametrize("method", ["bm25", "hybrid"])
def test_while_the_keyword_index_is_away_full_text_search_answers_and_says_so(corpus, ask, method):
    def away(_):
        raise LexicalIndexUnavailable("its disk is gone")

    corpus.publish("a.md", "The needles are lying here", "other words")
    answer = ask("needle lie", method=method, lexical=away)
    assert "needles" in answer.hits[0].content
    assert len(answer.degraded) == 1 and "lexical_unavailable" in answer.degraded[0]
    assert ask("needle", method=method).degraded == []


@pytest.mark.parametrize(
    "query", ["it's a backslash \\ needle", "needle' | 'x", "needle & !other", "\\", "'; DROP TABLE chunks; --", "𝄞😀", "C++ needle:*"]
)
def test_full_text_search_reads_no_operator(corpus, ask, query):
    def away(_):
        raise LexicalIndexUnavailable("its disk is gone")

    corpus.publish("a.md", "a needle", "other words")
    contents = [hit.content for hit in ask(query, method="bm25", lexical=away).hits]
    assert contents[:1] == (["a needle"] if "needle" in query else [])


@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize(("query", "expected"), [('"old needle"', {"an old needle"}), ("needle -old", {"a needle"})])
def test_operators_are_read_where_they_are_asked_for_whoever_answers(corpus, ask, is_away, query, expected):
    def away(_):
        raise LexicalIndexUnavailable("its disk is gone")

    corpus.publish("a.md", "an old needle", "a needle", "old words")
    options = {"lexical": away} if is_away else {}
    assert {hit.content for hit in ask(query, method="bm25", operators=True, **options).hits} == expected
    assert len(ask(query, method="bm25", **options).hits) == 3


def test_full_text_search_keeps_to_the_scope(corpus, ask):
    def away(_):
        raise LexicalIndexUnavailable("its disk is gone")

    corpus.publish("a/x.md", "a needle")
    corpus.publish("b/x.md", "a needle")
    assert [hit.source_path for hit in ask("needle", method="bm25", lexical=away, folders=("b",)).hits] == ["b/x.md"]


def test_a_keyword_index_that_lost_its_entries_counts_as_away(corpus, ask):
    corpus.publish("a.md", "a needle")
    with corpus.connection.transaction():
        corpus.connection.execute(
            "INSERT INTO sparse_coverage SELECT p.publication_id, s.sparse_index_id, 1 FROM publications AS p CROSS JOIN sparse_indexes AS s"
        )
    corpus.keywords.recreate()
    answer = ask("needle", method="bm25")
    assert [hit.content for hit in answer.hits] == ["a needle"]
    assert "lexical_unavailable" in answer.degraded[0]


def test_a_search_that_takes_too_long_is_ended(corpus, ask):
    corpus.publish("a.md", "a needle")
    blink = Settings(home=corpus.settings.home, query_timeout_s=0.02)

    def slow():
        Thread(target=lambda: None).start()
        import time

        time.sleep(0.05)

    with pytest.raises(QueryTimeout):
        # The first look into the index is slow and finds too little, so a second would follow.
        corpus.prepare("never.md", *(f"needle {n}" for n in range(400)))
        ask("needle", k=10, settings=blink, lexical=lambda _: Hooked(corpus.keywords, slow))


def test_a_statement_that_takes_too_long_is_ended_by_the_server(database_url):
    from stemma.retrieval.snapshot import snapshot
    from stemma.store.postgres import open_pool

    pool = open_pool(database_url)
    with pytest.raises(QueryTimeout), snapshot(pool, timeout_s=0.05) as connection:
        connection.execute("SELECT pg_sleep(5)")
    with snapshot(pool, timeout_s=5) as connection:  # the connection is as good as before
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
        assert connection.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
    pool.close()
