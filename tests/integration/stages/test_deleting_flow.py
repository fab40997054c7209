"""Deleting through everything: no search finds the document, a run under way cannot bring it back, and a kill at any step changes nothing."""

from datetime import UTC, datetime

import pytest

from stemma.embedding.models import embedding_spec
from stemma.lexical.errors import LexicalIndexUnavailable
from stemma.library import deletion
from stemma.library.looks import last_look
from stemma.library.progress import progress
from stemma.library.selection import Selection, delete_selected, select_sources
from stemma.library.wishes import request_ingest
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.question import SearchRequest
from stemma.retrieval.search import search
from stemma.stages.corpus import publish_documents


@pytest.fixture
def ingested(corpus):
    corpus.write("a.txt", "The needle is in the haystack of herons.")
    corpus.write("b.txt", "Another text, about storks.")
    corpus.ingest()
    return corpus


def delete(corpus, *paths: str, intent="keep_file", remove_sparse=None):
    here = corpus.installation
    with here.pool.connection() as connection:
        selected = select_sources(connection, Selection(paths=paths), remove_file=intent == "remove_file")
    return delete_selected(here.pool, selected, remove_sparse or here.remove_sparse, library=corpus.settings.library, intent=intent)


def found(corpus, query: str = "needle haystack") -> set[tuple[str, str]]:
    """(method, path) of every hit, by every method."""
    here, settings = corpus.installation, corpus.settings
    keyword_indexes = OpenKeywordIndexes(settings)
    hits = set()
    for method in ("semantic", "bm25", "hybrid"):
        request = SearchRequest(query, method=method, k=10)
        embedder = here.embedder_of(embedding_spec(settings.embedding_model))
        answer = search(request, pool=here.pool, lexical=keyword_indexes, embedder=embedder, settings=settings)
        hits |= {(method, hit.source_path) for hit in answer.hits}
    keyword_indexes.close()
    return hits


def wish(corpus, *paths: str, force: bool = False) -> int:
    with corpus.installation.pool.connection() as connection:
        return request_ingest(connection, paths=paths or None, force=force, now=datetime.now(UTC))


def state(corpus) -> dict[str, tuple]:
    rows = corpus.rows(
        "SELECT s.source_path, s.status, s.excluded_hash IS NOT NULL, d.doc_id IS NOT NULL FROM sources s LEFT JOIN documents d USING (source_id)"
    )
    return {path: tuple(rest) for path, *rest in rows}


def test_a_deleted_document_is_found_by_no_method_and_stays_out_until_its_path_is_asked_for(ingested):
    assert ("bm25", "a.txt") in found(ingested)
    assert [source.source_path for source in delete(ingested, "a.txt").excluded] == ["a.txt"]
    assert {path for _, path in found(ingested)} == {"b.txt"}
    assert ingested.keyword_hits("needle") == []
    assert ingested.ingest() == []
    wish(ingested, force=True)
    ingested.ingest()
    assert state(ingested)["a.txt"] == ("cancelled", True, False)
    assert wish(ingested, "a.txt") == 1
    ingested.ingest()
    assert state(ingested)["a.txt"] == ("ready", False, True)
    assert ("semantic", "a.txt") in found(ingested)


def test_changed_bytes_bring_a_kept_file_back_and_a_touch_does_not(ingested):
    delete(ingested, "a.txt")
    ingested.write("a.txt", "The needle is in the haystack of herons.")
    ingested.ingest()
    assert state(ingested)["a.txt"] == ("cancelled", True, False)
    ingested.write("a.txt", "The needle has moved.")
    ingested.ingest()
    assert state(ingested)["a.txt"] == ("ready", False, True)


def test_a_document_that_is_deleted_while_it_is_ingested_ends_deleted(ingested):
    ingested.write("a.txt", "The needle was sharpened.")
    (batch,) = ingested.look().batches
    run = ingested.open(batch.batch_id)
    ingested.work(run, publish=False)
    delete(ingested, "a.txt")
    publish_documents(run, run.sources())
    ingested.runs.ended.add(run.run_id)
    assert ingested.ingest() == []
    assert state(ingested)["a.txt"] == ("cancelled", True, False)
    assert ("bm25", "a.txt") not in found(ingested)


def test_a_document_whose_batch_waits_for_its_run_is_not_parsed_once_it_is_deleted(ingested):
    ingested.write("a.txt", "The needle was sharpened.")
    (batch,) = ingested.look().batches
    delete(ingested, "a.txt", intent="remove_file")
    run = ingested.open(batch.batch_id)
    outcomes = ingested.work(run)
    assert not any(outcome.versions for outcome in outcomes.values())
    assert set(state(ingested)) == {"b.txt"}


@pytest.mark.parametrize("step", ["_remove_entries", "_remove_files", "_remove_rows"])
@pytest.mark.parametrize("after", [False, True])
def test_a_deletion_killed_around_any_step_is_ended_by_the_next_look(ingested, monkeypatch, step: str, after: bool):
    real = getattr(deletion, step)

    class Killed(BaseException):
        pass

    def killed(*arguments, **options):
        if after:
            real(*arguments, **options)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(deletion, step, killed)
        with pytest.raises(Killed):
            delete(ingested, "a.txt", intent="remove_file")
    assert {path for _, path in found(ingested)} == {"b.txt"}
    ingested.look()
    assert set(state(ingested)) == {"b.txt"}
    assert not (ingested.settings.library / "a.txt").exists()
    assert ingested.keyword_hits("needle") == []


def test_a_keyword_index_that_is_away_delays_a_deletion_and_nothing_else(ingested, monkeypatch):
    def away(_publications):
        raise LexicalIndexUnavailable("its disk is away")

    with pytest.raises(LexicalIndexUnavailable):
        delete(ingested, "a.txt", remove_sparse=away)
    assert {path for _, path in found(ingested)} == {"b.txt"}
    ingested.write("c.txt", "A third text.")
    with monkeypatch.context() as patched:
        patched.setattr(ingested.installation, "remove_sparse", away)
        look = ingested.look()
    assert "1 deleted documents are out of every search, but still in the stores" in look.message
    assert [batch.partitions for batch in look.batches] == [("c.txt",)]
    assert [source.source_path for source in delete(ingested, "a.txt").excluded] == ["a.txt"]


def test_what_the_walk_found_worth_attention_is_kept_for_whoever_asks(ingested):
    since = datetime.now(UTC)
    for path in ("a.txt", "b.txt"):
        (ingested.settings.library / path).unlink()
    ingested.look()
    with ingested.installation.pool.connection() as connection:
        notices = progress(connection, since).notices
        assert notices == last_look(connection).notices
    assert notices[0] == f"The library {ingested.settings.library} holds no file."
    assert "stemma prune --confirm" in notices[1]
