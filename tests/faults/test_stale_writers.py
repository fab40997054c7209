"""A writer that is held at a fail point while the world moves on: what it brings is out of date, and exactly it is abandoned."""

import time
from datetime import UTC, datetime
from threading import Thread

import pytest
from fault_state import read_state

from stemma.library.deletion import delete_sources, mark_deleting
from stemma.stages.corpus import publish_documents
from stemma.store.app_settings import set_overrides
from stemma.store.postgres import autocommitted
from stemma.store.sparse_indexes import ensure_sparse_index

FINISHED = "coverage.recorded"
"""Everything is done but the publishing."""


def opened(corpus):
    """A run that has bound the one batch there is."""
    [batch] = corpus.look().batches
    return corpus.open(batch.batch_id)


def taken_for_dead(corpus, run) -> None:
    corpus.runs.ended.add(run.run_id)


def deleted(corpus, intent) -> None:
    here = corpus.installation
    with autocommitted(here.pool) as connection:
        [(source_id,)] = connection.execute("SELECT source_id FROM sources").fetchall()
        mark_deleting(connection, [source_id], intent, now=datetime.now(UTC))
    delete_sources(here.pool, [source_id], here.remove_sparse, library=corpus.settings.library)


def texts(corpus) -> dict[str, str]:
    """Source path -> the live text."""
    return dict(corpus.rows("SELECT source_path, text FROM documents ORDER BY 1"))


def broken(corpus) -> list[str]:
    """What is wrong once everything is at rest."""
    for _ in range(3):
        corpus.ingest()
    with corpus.installation.pool.connection() as connection:
        return read_state(connection, corpus.settings.home).broken


@pytest.mark.parametrize("held_at", ["spool.recorded", "documents.recorded", "embeddings.recorded", FINISHED])
def test_a_slow_run_with_old_bytes_that_ends_after_a_newer_one_publishes_nothing(corpus, failing, held_at):
    corpus.write("a.md", "The old text.")
    slow = opened(corpus)
    with failing.paused(held_at, lambda: corpus.work(slow)):
        taken_for_dead(corpus, slow)
        corpus.write("a.md", "The new text.")
        corpus.ingest()
    assert texts(corpus) == {"a.md": "The new text."}
    assert corpus.rows("SELECT state FROM publications WHERE run_id = %s", [slow.run_id]) in ([("abandoned",)], [("retired",)])
    assert corpus.rows("SELECT status, error_code FROM sources") == [("ready", None)]
    assert broken(corpus) == []


def test_bytes_that_come_back_are_whole_whatever_a_late_clean_up_removes(corpus, failing):
    corpus.write("a.md", "The first text.")
    corpus.ingest()
    corpus.write("a.md", "The second text.")
    corpus.work(opened(corpus))  # what was first is superseded, and its entries are due
    with failing.paused("retire.before_entries", corpus.look):
        corpus.write("a.md", "The first text.")
        failing.disarm("retire.before_entries")
        corpus.ingest()
    assert texts(corpus) == {"a.md": "The first text."}
    [(chunk_id, publication_id)] = corpus.rows("SELECT chunk_id, publication_id FROM chunks")
    assert (chunk_id, publication_id) in corpus.keyword_hits("first")
    assert broken(corpus) == []


def test_a_file_that_is_renamed_while_its_run_is_under_way_is_published_under_its_new_name(corpus, failing):
    corpus.write("w/a.md", "The text.")
    run = opened(corpus)
    with failing.paused(FINISHED, lambda: corpus.work(run)):
        (corpus.settings.library / "w/a.md").rename(corpus.settings.library / "w/b.md")
        corpus.look()
    assert texts(corpus) == {}
    outcomes = corpus.ingest()
    assert texts(corpus) == {"w/b.md": "The text."}
    assert [outcome["documents"].versions["w/b.md"].metadata["parse_calls"] for outcome in outcomes] == [0]
    assert broken(corpus) == []


def test_a_file_that_vanishes_while_its_run_is_under_way_is_not_published(corpus, failing):
    corpus.write("w/a.md", "The text.")
    corpus.write("w/b.md", "Another text.")
    run = opened(corpus)
    with failing.paused(FINISHED, lambda: corpus.work(run)):
        (corpus.settings.library / "w/a.md").unlink()
        corpus.look()
    assert texts(corpus) == {"w/b.md": "Another text."}
    assert broken(corpus) == []
    assert corpus.rows("SELECT source_path FROM sources") == [("w/b.md",)]


@pytest.mark.parametrize("intent", ["keep_file", "remove_file"])
@pytest.mark.parametrize("held_at", ["spool.recorded", "keywords.committed", FINISHED])
def test_a_document_that_is_deleted_while_it_is_ingested_ends_deleted(corpus, failing, intent, held_at):
    path = corpus.write("a.md", "The text.")
    run = opened(corpus)
    with failing.paused(held_at, lambda: corpus.work(run)):
        deleted(corpus, intent)
    assert texts(corpus) == {}
    assert broken(corpus) == []
    assert corpus.rows("SELECT status FROM sources") == ([("cancelled",)] if intent == "keep_file" else [])
    assert path.exists() == (intent == "keep_file")


def test_a_deletion_that_meets_a_publication_in_its_transaction_waits_for_it(corpus, failing):
    corpus.write("a.md", "The text.")
    run = opened(corpus)
    corpus.work(run, publish=False)
    deleting = Thread(target=deleted, args=(corpus, "keep_file"))
    with failing.paused("publish.before_commit", lambda: publish_documents(run, run.sources())):
        deleting.start()
        deadline = time.monotonic() + 10
        while not corpus.value("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            assert deleting.is_alive() and time.monotonic() < deadline, "the deletion did not wait for the publication"
    deleting.join(10)
    assert corpus.rows("SELECT state FROM attempts") == [("succeeded",)]
    assert texts(corpus) == {}
    assert broken(corpus) == []


def test_a_keyword_index_that_is_switched_between_coverage_and_publishing_is_not_published_into(corpus, failing):
    corpus.write("a.md", "The text.")
    run = opened(corpus)
    with failing.paused(FINISHED, lambda: corpus.work(run)), autocommitted(corpus.installation.pool) as connection:
        other = ensure_sparse_index(connection, backend="tantivy", fingerprint="e" * 64)
        connection.execute("UPDATE sparse_indexes SET state = 'retired' WHERE state = 'active'")
        connection.execute("UPDATE sparse_indexes SET state = 'active' WHERE sparse_index_id = %s", [other.sparse_index_id])
        connection.execute("UPDATE corpus_state SET active_sparse_index = %s", [other.sparse_index_id])
    assert texts(corpus) == {}
    assert corpus.rows("SELECT state, error_code FROM attempts") == [("abandoned", None)]
    corpus.ingest()
    assert texts(corpus) == {"a.md": "The text."}
    assert len(corpus.keyword_hits("text")) == 1


def test_a_restore_meanwhile_leaves_nothing_of_the_runs_that_began_before_it(corpus, failing):
    corpus.write("a.md", "The text.")
    run = opened(corpus)
    with failing.paused(FINISHED, lambda: corpus.work(run)):
        corpus.rows("UPDATE corpus_state SET epoch = epoch + 1 RETURNING 1")
    assert texts(corpus) == {}
    assert corpus.rows("SELECT state FROM attempts") == [("abandoned",)]
    corpus.ingest()
    assert texts(corpus) == {"a.md": "The text."}
    assert broken(corpus) == []


def test_a_run_keeps_the_settings_it_began_with_and_what_it_made_is_stale_at_once(corpus, failing):
    corpus.write("a.md", "A text of words. " * 30)
    run = opened(corpus)
    with failing.paused("documents.recorded", lambda: corpus.work(run)):
        _set(corpus, CHUNK_SIZE="120")
    assert corpus.rows("SELECT DISTINCT metadata ->> 'chunk_size' FROM chunks") == [("800",)]
    corpus.ingest()
    assert corpus.rows("SELECT DISTINCT metadata ->> 'chunk_size' FROM chunks") == [("120",)]
    assert broken(corpus) == []


def test_a_run_with_old_settings_that_ends_after_one_with_new_ones_publishes_nothing(corpus, failing):
    corpus.write("a.md", "A text of words. " * 30)
    slow = opened(corpus)
    with failing.paused(FINISHED, lambda: corpus.work(slow)):
        taken_for_dead(corpus, slow)
        _set(corpus, CHUNK_SIZE="120")
        corpus.ingest()
    assert corpus.rows("SELECT DISTINCT metadata ->> 'chunk_size' FROM chunks") == [("120",)]
    assert broken(corpus) == []


def _set(corpus, **given: str) -> None:
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNK_OVERLAP": "0", **given})
