"""Changing the embedding model while searches go on: whole before it is read, one model per answer, killed anywhere, and back again."""

import shutil
import threading
from datetime import UTC, datetime, timedelta

import pytest
from small_models import prefixed_minilm, random_model

from stemma.embedding.models import embedding_spec, open_embedder
from stemma.embedding.sentence_transformers_embedder import UnsoundVector
from stemma.errors import EmbeddingMissing
from stemma.retrieval.errors import EmbeddingMismatch
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.question import SearchRequest
from stemma.retrieval.search import search, search_by_active_model
from stemma.stages import reembed as reembedding
from stemma.stages.corpus import publish_documents
from stemma.stages.models_at_hand import ModelNotAtHand
from stemma.stages.reembed import (
    NothingToRollBackTo,
    abandon_reembed,
    drop_retired_indexes,
    plan_reembed,
    reembed,
    unmet_wish,
)
from stemma.store.app_settings import read_overrides, set_overrides
from stemma.store.embedding_indexes import active_embedding_index, ensure_embedding_index, open_embedding_indexes
from stemma.store.embedding_switch import EmbeddingIndexIncomplete, switch_embedding_index
from stemma.store.hnsw import build_hnsw
from stemma.store.index_lock import IndexesBusy, alone
from stemma.store.locks import EMBEDDING_INDEX_LOCK
from stemma.store.postgres import autocommitted

TEXTS = {f"note{n}.txt": f"Note number {n} is about the harbour of town {n} and its {n + 2} piers." for n in range(6)}


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, str]:
    """Two models of one dimension, so that nothing but the rules keeps them apart, and one of another."""
    folder = tmp_path_factory.mktemp("models")
    return {
        "one": random_model(folder / "one", seed=1),
        "two": random_model(folder / "two", seed=2),
        "wide": random_model(folder / "wide", dimension=48, seed=3),
    }


class Counting:
    """The embedders of an installation; counts the strings that each model was asked for, and may fail when a model was asked often enough."""

    def __init__(self, real) -> None:
        self.real, self.asked, self.fails_after, self.poison = real, 0, None, None

    def __call__(self, spec):
        return _Counted(self, self.real(spec))


class _Counted:
    def __init__(self, counting, embedder) -> None:
        self.counting, self.embedder, self.spec = counting, embedder, embedder.spec

    def embed_passages(self, passages):
        counting = self.counting
        if counting.poison and (bad := tuple(n for n, text in enumerate(passages) if counting.poison in text)):
            raise UnsoundVector(bad)
        if counting.fails_after is not None and counting.asked + len(passages) > counting.fails_after:
            raise KeyboardInterrupt
        counting.asked += len(passages)
        return self.embedder.embed_passages(passages)

    def embed_query(self, query):
        return self.embedder.embed_query(query)


@pytest.fixture
def counting(corpus, models) -> Counting:
    """A corpus of six notes under the model `one`; the count begins after its ingest."""
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"EMBEDDING_MODEL": models["one"]})
    counting = corpus.installation.embedder_of = Counting(corpus.installation.embedder_of)
    for path, text in TEXTS.items():
        corpus.write(path, text)
    corpus.ingest()
    counting.asked = 0
    return counting


def active_model(corpus) -> str:
    with corpus.installation.pool.connection() as connection:
        return active_embedding_index(connection).spec.model


def states(corpus) -> list[tuple[str, str]]:
    return corpus.rows("SELECT spec ->> 'model', state FROM embedding_indexes ORDER BY embedding_index_id")


def n_vectors(corpus) -> dict[str, int]:
    tables = corpus.rows("SELECT spec ->> 'model', vector_table FROM embedding_indexes")
    return {model: corpus.value(f"SELECT count(*) FROM {table}") for model, table in tables}


def ask(corpus, query: str, **options):
    here = corpus.installation
    request = SearchRequest(query, method=options.pop("method", "semantic"), k=options.pop("k", 3))
    return search_by_active_model(
        request, pool=here.pool, lexical=OpenKeywordIndexes(corpus.settings), embedder_of=here.embedder_of, settings=here.settings()
    )


def passage(corpus, path: str) -> str:
    return corpus.value(
        "SELECT c.contextualized_content FROM chunks c JOIN documents USING (publication_id) WHERE source_path = %s", [path]
    )


def test_every_chunk_gets_its_vector_and_then_searches_read_the_new_model(corpus, counting, models):
    done = reembed(corpus.installation, models["wide"])
    assert (done.switched, done.previous, done.model) == (True, "one", "wide")
    assert (done.n_chunks, done.n_filled, done.n_embedded) == (6, 6, 6)
    assert states(corpus) == [("one", "retired"), ("wide", "active")]
    assert n_vectors(corpus) == {"one": 6, "wide": 6}
    hit = ask(corpus, passage(corpus, "note3.txt")).hits[0]
    assert (hit.source_path, hit.score) == ("note3.txt", pytest.approx(1, abs=1e-4))


def test_the_switch_makes_what_is_wanted_and_what_is_there_agree(corpus, counting, models):
    reembed(corpus.installation, models["wide"])
    with corpus.installation.pool.connection() as connection:
        assert read_overrides(connection)["EMBEDDING_MODEL"] == models["wide"]
    assert unmet_wish(corpus.installation) is None
    assert corpus.look().batches == ()


def test_a_model_that_is_active_already_is_not_switched_to(corpus, counting, models):
    done = reembed(corpus.installation)
    assert (done.switched, done.n_filled, counting.asked) == (False, 0, 0)
    assert states(corpus) == [("one", "active")]


def test_a_dry_run_says_what_it_takes_and_changes_nothing(corpus, counting, models):
    corpus.write("copy/note1.txt", TEXTS["note1.txt"])
    corpus.ingest()
    plan = plan_reembed(corpus.installation, models["two"])
    assert (plan.model, plan.dimension, plan.state) == ("two", 32, None)
    assert (plan.coverage.n_covered, plan.coverage.n_chunks) == (0, 7)
    assert (plan.cost.n_chunks, plan.cost.n_strings, plan.cost.n_model_calls) == (7, 6, 6)
    assert states(corpus) == [("one", "active")] and counting.asked == 0


def test_killed_between_batches_it_goes_on_and_asks_the_model_for_nothing_twice(corpus, counting, models, monkeypatch):
    monkeypatch.setattr(reembedding, "CHUNKS_PER_BATCH", 2)
    counting.fails_after = 5
    with pytest.raises(KeyboardInterrupt):
        reembed(corpus.installation, models["two"])
    assert states(corpus) == [("one", "active"), ("two", "building")] and n_vectors(corpus)["two"] == 4
    assert ask(corpus, passage(corpus, "note3.txt")).hits[0].source_path == "note3.txt"
    counting.fails_after = None
    done = reembed(corpus.installation, models["two"])
    assert (done.n_filled, done.n_embedded, counting.asked) == (2, 2, 6)
    assert active_model(corpus) == "two"


def test_killed_before_the_switch_it_only_switches(corpus, counting, models, monkeypatch):
    def killed(*_arguments, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(reembedding, "switch_embedding_index", killed)
        with pytest.raises(KeyboardInterrupt):
            reembed(corpus.installation, models["two"])
    assert active_model(corpus) == "one"
    done = reembed(corpus.installation, models["two"])
    assert (done.switched, done.n_filled, done.n_embedded) == (True, 0, 0)


def building(corpus, model: str):
    with corpus.installation.pool.connection() as connection:
        return ensure_embedding_index(connection, embedding_spec(model), location=model)


def test_what_is_published_while_an_index_is_built_gets_vectors_in_both(corpus, counting, models):
    index = building(corpus, models["two"])
    corpus.write("new.txt", "A new note about lighthouses.")
    corpus.write("note0.txt", "The first note was written anew, about ferries.")
    (corpus.settings.library / "note5.txt").unlink()
    for _ in range(3):
        corpus.ingest()
    assert n_vectors(corpus) == {"one": 6, "two": 2}
    assert corpus.value(f"SELECT count(*) FROM {index.vector_table} JOIN documents USING (publication_id)") == 2
    done = reembed(corpus.installation, models["two"])
    assert (done.n_filled, n_vectors(corpus)) == (4, {"one": 6, "two": 6})


def test_a_rename_and_a_revert_call_no_model_for_either_index(corpus, counting, models):
    building(corpus, models["two"])
    corpus.write("a.txt", "A note about tides.")
    corpus.ingest()
    corpus.write("a.txt", "A note about ebbs.")
    corpus.ingest()
    asked = counting.asked
    (corpus.settings.library / "a.txt").rename(corpus.settings.library / "b.txt")
    corpus.ingest()
    corpus.write("b.txt", "A note about tides.")
    corpus.ingest()
    assert counting.asked == asked
    assert n_vectors(corpus) == {"one": 7, "two": 1}


def test_an_index_that_lacks_one_vector_is_never_switched_to(corpus, counting, models):
    index = building(corpus, models["two"])
    reembed(corpus.installation, models["two"])
    reembed(corpus.installation, rollback=True)
    building(corpus, models["two"])
    corpus.rows(
        f"DELETE FROM {index.vector_table} WHERE chunk_index = 0 AND publication_id = (SELECT min(publication_id) FROM chunks) RETURNING 1"
    )
    with autocommitted(corpus.installation.pool) as connection, pytest.raises(EmbeddingIndexIncomplete, match="1 published chunks"):
        switch_embedding_index(connection, index, corpus.settings, now=datetime.now(UTC))
    assert active_model(corpus) == "one"


def test_an_index_without_its_search_structure_is_never_switched_to(corpus, counting, models):
    corpus.rows("DELETE FROM documents RETURNING 1")
    index = building(corpus, models["two"])
    with autocommitted(corpus.installation.pool) as connection:
        with pytest.raises(EmbeddingIndexIncomplete, match="search structure"):
            switch_embedding_index(connection, index, corpus.settings, now=datetime.now(UTC))
        build_hnsw(connection, index.vector_table)
        assert switch_embedding_index(connection, index, corpus.settings, now=datetime.now(UTC))


def test_of_two_at_once_the_second_is_told_so(corpus, counting, models, database_url):
    with alone(database_url, EMBEDDING_INDEX_LOCK), pytest.raises(IndexesBusy):
        reembed(corpus.installation, models["two"])
    assert states(corpus) == [("one", "active")]


def embedded_run(corpus, path: str, text: str):
    """A run that has done everything for a new document but publish it."""
    corpus.write(path, text)
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    corpus.work(run, publish=False)
    return run


def test_a_run_that_embedded_for_the_model_before_the_switch_publishes_nothing_and_fails_nothing(corpus, counting, models):
    run = embedded_run(corpus, "late.txt", "A late note about a zeppelin.")
    reembed(corpus.installation, models["two"])
    outcome = publish_documents(run, run.sources())
    assert outcome.versions == {} and outcome.failures == {}
    assert corpus.value("SELECT state FROM attempts WHERE run_id = %s", [run.run_id]) == "abandoned"
    corpus.runs.ended.add(run.run_id)
    corpus.ingest()
    assert n_vectors(corpus)["two"] == 7
    assert ask(corpus, passage(corpus, "late.txt")).hits[0].source_path == "late.txt"


def test_what_is_published_after_the_filling_and_before_the_switch_is_filled_too(corpus, counting, models):
    run = embedded_run(corpus, "late.txt", "A late note about a zeppelin.")
    published = []

    def publish_once(covered):
        if not published and covered.n_covered == covered.n_chunks:
            published.append(publish_documents(run, run.sources()))

    done = reembed(corpus.installation, models["two"], progress=publish_once)
    assert list(published[0].versions) == ["late.txt"]
    assert done.switched and n_vectors(corpus)["two"] == 7


def test_a_run_that_publishes_after_its_index_was_dropped_is_not_disturbed(corpus, counting, models):
    building(corpus, models["wide"])
    run = embedded_run(corpus, "late.txt", "A late note about a zeppelin.")
    abandon_reembed(corpus.installation)
    corpus.rows("UPDATE embedding_indexes SET retired_at = retired_at - interval '1 day' RETURNING 1")
    assert [index.spec.model for index in drop_retired_indexes(corpus.installation)] == ["wide"]
    assert list(publish_documents(run, run.sources()).versions) == ["late.txt"]


def test_rolling_back_fills_the_gap_and_lets_the_setting_name_the_model_of_before(corpus, counting, models):
    reembed(corpus.installation, models["wide"])
    corpus.write("new.txt", "A new note about lighthouses.")
    corpus.write("note0.txt", "The first note was written anew, about ferries.")
    corpus.ingest()
    assert n_vectors(corpus) == {"one": 5, "wide": 7}
    counting.asked = 0
    done = reembed(corpus.installation, rollback=True)
    assert (done.model, done.switched, done.n_filled, counting.asked) == ("one", True, 2, 2)
    assert states(corpus) == [("one", "active"), ("wide", "retired")]
    assert corpus.installation.settings().embedding_model == models["one"]
    assert ask(corpus, passage(corpus, "new.txt")).hits[0].source_path == "new.txt"
    assert corpus.look().batches == ()


def test_rolling_back_what_the_cache_holds_calls_no_model(corpus, counting, models):
    reembed(corpus.installation, models["two"])
    (corpus.settings.library / "note0.txt").rename(corpus.settings.library / "moved.txt")
    corpus.ingest()
    counting.asked = 0
    done = reembed(corpus.installation, rollback=True)
    assert (done.n_filled, counting.asked) == (1, 0)


def test_there_is_nothing_to_roll_back_to_before_the_first_switch(corpus, counting):
    with pytest.raises(NothingToRollBackTo):
        reembed(corpus.installation, rollback=True)


def test_retired_vectors_are_dropped_once_no_query_can_read_them_and_the_active_ones_never(corpus, counting, models):
    reembed(corpus.installation, models["two"])
    assert drop_retired_indexes(corpus.installation) == []
    corpus.rows("UPDATE embedding_indexes SET retired_at = retired_at - interval '61 seconds' WHERE state = 'retired' RETURNING 1")
    assert [index.spec.model for index in drop_retired_indexes(corpus.installation)] == ["one"]
    assert states(corpus) == [("two", "active")]
    assert corpus.value("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'chunk_vectors_%%'") == 1
    with pytest.raises(NothingToRollBackTo):
        reembed(corpus.installation, rollback=True)
    assert ask(corpus, passage(corpus, "note1.txt")).hits[0].source_path == "note1.txt"


def test_a_changed_setting_is_said_until_it_is_met_and_searches_keep_their_model(corpus, counting, models):
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"EMBEDDING_MODEL": models["two"]})
    assert "0% of the chunks" in unmet_wish(corpus.installation).sentence
    assert ask(corpus, passage(corpus, "note3.txt")).hits[0].source_path == "note3.txt"
    corpus.ingest()
    assert active_model(corpus) == "one"
    reembed(corpus.installation)
    assert unmet_wish(corpus.installation) is None and active_model(corpus) == "two"


def test_an_abandoned_index_takes_part_no_more_and_the_setting_names_the_active_model(corpus, counting, models):
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"EMBEDDING_MODEL": models["two"]})
    building(corpus, models["two"])
    assert [index.spec.model for index in abandon_reembed(corpus.installation)] == ["two"]
    with corpus.installation.pool.connection() as connection:
        assert [index.spec.model for index in open_embedding_indexes(connection)] == ["one"]
    assert corpus.installation.settings().embedding_model == models["one"]


def test_a_chunk_without_a_sound_vector_stops_the_switch_and_names_its_document(corpus, counting, models):
    counting.poison = "number 4"
    with pytest.raises(EmbeddingIndexIncomplete, match=r"1 chunks, the first in note4\.txt"):
        reembed(corpus.installation, models["two"])
    assert active_model(corpus) == "one" and n_vectors(corpus)["two"] == 5


def test_the_lost_model_of_an_index_being_built_stops_no_document(corpus, counting, models, tmp_path):
    lost = str(shutil.copytree(models["wide"], tmp_path / "lost"))
    building(corpus, lost)
    shutil.rmtree(lost)
    corpus.write("new.txt", "A new note about lighthouses.")
    [outcomes] = corpus.ingest()
    assert list(outcomes["corpus"].versions) == ["new.txt"]
    assert states(corpus) == [("one", "active"), ("lost", "building")]


def test_the_lost_model_of_the_active_index_is_named_and_keywords_still_answer(corpus, counting, models, tmp_path):
    lost = str(shutil.copytree(models["wide"], tmp_path / "lost"))
    reembed(corpus.installation, lost)
    shutil.rmtree(lost)
    corpus.installation.embedder_of.real.forget_others(())
    with pytest.raises(ModelNotAtHand, match="lost"):
        ask(corpus, "harbour")
    assert ask(corpus, "harbour", method="bm25").hits


def test_a_model_with_other_prefixes_is_another_model(tmp_path):
    plain, prefixed = embedding_spec("minilm"), embedding_spec(prefixed_minilm(tmp_path / "prefixed"))
    assert (prefixed.query_prefix, prefixed.passage_prefix) == ("query: ", "passage: ")
    assert plain.dimension == prefixed.dimension and plain.spec_hash != prefixed.spec_hash


def test_a_query_by_another_model_of_the_same_dimension_is_refused(corpus, counting, models):
    other = open_embedder(models["two"], batch_size=8)
    with pytest.raises(EmbeddingMismatch, match=r"embedded by two .* holds vectors of one"):
        search(
            SearchRequest("harbour", method="semantic"), pool=corpus.installation.pool,
            lexical=OpenKeywordIndexes(corpus.settings), embedder=other, settings=corpus.settings,
        )  # fmt: skip


def test_every_answer_is_of_one_model_while_documents_and_models_change(corpus, counting, models):
    """A text is at distance 0 from itself under any model; under two that meet by mistake it is not."""
    texts = {path: passage(corpus, path) for path in TEXTS}
    stop, failures, answers = threading.Event(), [], []

    def read():
        while not stop.is_set():
            for path, text in texts.items():
                try:
                    hits = ask(corpus, text, k=len(texts) + 1).hits
                    best = hits[0]
                    assert (best.source_path, best.score) == (path, pytest.approx(1, abs=1e-4))
                    assert {hit.source_path for hit in hits} >= set(texts), "an answer lost documents"
                    answers.append(path)
                except BaseException as error:
                    failures.append(error)
                    return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for round_number, target in enumerate(["two", "one", "two"]):
            reembed(corpus.installation, models[target])
            corpus.write("busy.txt", f"Something else entirely, version {round_number}.")
            corpus.ingest()
            seen = len(answers)
            deadline = datetime.now(UTC) + timedelta(seconds=30)
            while len(answers) < seen + 6 and not failures and datetime.now(UTC) < deadline:
                stop.wait(0.01)
        reembed(corpus.installation, rollback=True)
    finally:
        stop.set()
        reader.join()
    assert failures == [] and len(answers) >= 18


def test_a_vector_that_is_missing_though_the_run_embedded_for_the_active_index_is_a_failure(corpus, counting):
    run = embedded_run(corpus, "late.txt", "A late note about a zeppelin.")
    corpus.rows("DELETE FROM embedding_cache WHERE created_at >= (SELECT max(created_at) FROM embedding_cache) RETURNING 1")
    outcome = publish_documents(run, run.sources())
    assert {path: type(error) for path, error in outcome.failures.items()} == {"late.txt": EmbeddingMissing}
