"""Methods that ask a model: `hyde` and `expanded` a language model, `reranked` a cross-encoder; and what they do without it."""

from threading import Event

import pytest
from scripted_llm import Reply, scripted_llm
from small_models import random_cross_encoder

from stemma.retrieval.answer import METHODS
from stemma.settings import Settings


@pytest.fixture
def llm():
    with scripted_llm() as server:
        yield server


@pytest.fixture
def settings(corpus, llm):
    """settings(**fields) of the corpus' home, with the language model."""
    return lambda **fields: Settings(home=corpus.settings.home, llm_url=llm.url, **fields)


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory):
    """The value of RERANK_MODEL for a real cross-encoder."""
    return random_cross_encoder(tmp_path_factory.mktemp("models") / "cross-encoder")


def contents(answer):
    return [hit.content for hit in answer.hits]


def test_without_its_model_every_method_answers_as_hybrid_does_and_says_why(corpus, ask):
    corpus.publish("a.md", "a needle", "needle and thread", "other words")
    plain = ask("needle")
    reasons = {"reranked": "RERANK_MODEL", "hyde": "STEMMA_LLM_URL", "expanded": "STEMMA_LLM_URL"}
    assert set(reasons) == set(METHODS) - {"semantic", "bm25", "hybrid"}
    for method, setting in reasons.items():
        answer = ask("needle", method=method)
        assert (answer.method, answer.hits) == (method, plain.hits)
        assert len(answer.degraded) == 1 and setting in answer.degraded[0]


def test_a_switch_turns_a_model_off_and_the_record_keeps_the_method(corpus, ask, settings, llm, cross_encoder):
    corpus.publish("a.md", "a needle in a haystack", "needle")
    off = settings(rerank_model=cross_encoder, rerank_enabled=False, hyde_enabled=False, expanded_queries=0)
    for method in ("reranked", "hyde", "expanded"):
        answer = ask("needle", method=method, settings=off)
        assert answer.method == method and len(answer.degraded) == 1
        assert answer.hits == ask("needle").hits
    assert llm.requests == []


def test_hyde_searches_by_an_imagined_passage_and_keeps_the_words_of_the_query(corpus, ask, settings, llm):
    corpus.publish("a.md", "fine weather today", "zebra giraffe", "the query stands here")
    llm.say("zebra giraffe\0")
    answer = ask("query", method="hyde", settings=settings())
    assert answer.degraded == []
    found = {hit.content: hit.trace for hit in answer.hits}
    assert found["zebra giraffe"].semantic_rank == 1 and found["zebra giraffe"].bm25_rank is None
    assert found["the query stands here"].bm25_rank == 1
    assert answer.query == "query" and "zebra" not in answer.model_dump_json(exclude={"hits"})


def test_expanded_searches_other_wordings_too_and_names_them(corpus, ask, settings, llm):
    corpus.publish("a.md", "fine weather", "zebra crossing", "giraffe neck", "car")
    llm.say("1. zebra\n- giraffe\n\n* CAR\nweather\nzebra\nlion")
    answer = ask("car", method="expanded", settings=settings())
    assert answer.searched == ["zebra", "giraffe", "weather"]
    assert (answer.degraded, set(contents(answer))) == ([], {"fine weather", "zebra crossing", "giraffe neck", "car"})
    assert sorted(hit.trace.bm25_rank for hit in answer.hits) == [1, 2, 3, 4]
    assert [hit.trace.final_rank for hit in answer.hits] == [1, 2, 3, 4]


@pytest.mark.parametrize("reply", [Reply(status=401), Reply(status=503), Reply(body=b"<html>"), Reply("  \n "), Reply(release=Event())])
def test_a_language_model_that_fails_costs_the_method_not_the_answer(corpus, ask, settings, llm, reply):
    corpus.publish("a.md", "a needle")
    llm.say(reply)
    for method in ("hyde", "expanded"):
        answer = ask("needle", method=method, settings=settings(llm_attempts=1, llm_timeout_s=0.2))
        assert contents(answer) == ["a needle"]
        assert len(answer.degraded) == 1 and "query itself was searched" in answer.degraded[0]
    if reply.release:
        reply.release.set()


def test_reranking_orders_by_what_the_model_says_of_each_pair_and_says_how_far_hits_moved(corpus, ask, settings, cross_encoder):
    from sentence_transformers import CrossEncoder

    corpus.publish("a.md", *(f"needle {'and so on ' * number}".strip() for number in range(6)), context="A title")
    base, answer = ask("needle"), ask("needle", method="reranked", settings=settings(rerank_model=cross_encoder))
    model = CrossEncoder(cross_encoder, device="cpu", local_files_only=True)
    scores = {hit.chunk_id: float(model.predict([("needle", f"A title\n\n{hit.content}")])[0]) for hit in base.hits}
    assert [hit.chunk_id for hit in answer.hits] == sorted(scores, key=lambda chunk_id: -scores[chunk_id])
    assert [hit.chunk_id for hit in answer.hits] != [hit.chunk_id for hit in base.hits]
    assert answer.degraded == []
    before = {hit.chunk_id: hit.trace for hit in base.hits}
    for rank, hit in enumerate(answer.hits, start=1):
        old, new = before[hit.chunk_id], hit.trace
        assert (new.final_rank, new.rerank_delta) == (rank, old.final_rank - rank)
        assert hit.score == new.rerank_score == pytest.approx(scores[hit.chunk_id], abs=1e-5)
        assert new.model_copy(update={"rerank_score": None, "rerank_delta": None, "final_rank": old.final_rank}) == old


def test_only_the_first_candidates_are_read_and_the_others_follow_as_they_were(corpus, ask, settings, cross_encoder):
    corpus.publish("a.md", *(f"needle {'and so on ' * number}" for number in range(1, 9)))
    few = settings(rerank_model=cross_encoder, rerank_candidates=3, rerank_batch_size=2, rerank_base="bm25")
    base, answer = ask("needle", method="bm25").hits, ask("needle", method="reranked", settings=few).hits
    assert [hit.chunk_id for hit in answer[3:]] == [hit.chunk_id for hit in base[3:]]
    assert {hit.chunk_id for hit in answer[:3]} == {hit.chunk_id for hit in base[:3]}
    assert [hit.trace.rerank_delta is None for hit in answer] == [False] * 3 + [True] * 5
    assert [hit.trace.final_rank for hit in answer] == list(range(1, 9))
    assert [hit.chunk_id for hit in ask("needle", method="reranked", settings=few, k=2).hits] == [hit.chunk_id for hit in answer[:2]]


@pytest.mark.parametrize("folder", ["absent", "empty", "two scores"])
def test_a_reranker_that_cannot_be_used_costs_the_order_not_the_answer(corpus, ask, settings, tmp_path, folder):
    corpus.publish("a.md", "a needle", "needle")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}")
    if folder == "two scores":
        random_cross_encoder(tmp_path / folder, n_scores=2)
    answer = ask("needle", method="reranked", settings=settings(rerank_model=str(tmp_path / folder)))
    assert answer.hits == ask("needle").hits
    assert len(answer.degraded) == 1 and "rerank_model_unavailable" in answer.degraded[0]
