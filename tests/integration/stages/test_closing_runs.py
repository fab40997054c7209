"""A run that is taken for dead, and attempts that end without a verdict: who closes what, and when it is tried again."""

import threading
from datetime import UTC, datetime, timedelta

import pytest

from stemma.errors import DocumentTooLarge, UnreadableFile
from stemma.library import claims
from stemma.library.wishes import request_ingest
from stemma.settings import CODE_VERSIONS
from stemma.stages.corpus import publish_documents
from stemma.stages.documents import spool_files
from stemma.store import publications
from stemma.store.app_settings import set_overrides
from stemma.store.postgres import autocommitted


def interrupt(corpus, run) -> int:
    with autocommitted(corpus.installation.pool) as connection:
        return claims.close_run(connection, run.run_id, "interrupted", corpus.settings, now=datetime.now(UTC))


def opened(corpus):
    [batch] = corpus.look().batches
    return corpus.open(batch.batch_id)


def fail(corpus, run, error) -> None:
    with corpus.installation.pool.connection() as connection:
        failures = {source_id: error("a.txt", "it failed") for source_id in run.sources()["source_id"]}
        claims.fail_attempts(connection, run.run_id, "parsing", failures, corpus.settings, now=datetime.now(UTC))
    corpus.runs.ended.add(run.run_id)


def waits(corpus) -> bool:
    return corpus.look().batches == ()


def end_the_wait(corpus) -> None:
    corpus.rows("UPDATE sources SET retry_at = now() - interval '1 s' WHERE retry_at IS NOT NULL RETURNING 1")


def test_what_is_being_published_when_its_run_is_taken_for_dead_is_live_or_abandoned_whole(corpus, monkeypatch):
    corpus.write("a.txt", "Text.")
    run = opened(corpus)
    corpus.work(run, publish=False)
    inside, go_on = threading.Event(), threading.Event()
    real = publications._insert_chunks

    def insert_slowly(*args, **options):
        inside.set()
        assert go_on.wait(10)
        real(*args, **options)

    monkeypatch.setattr(publications, "_insert_chunks", insert_slowly)
    publisher = threading.Thread(target=lambda: publish_documents(run, run.sources()))
    publisher.start()
    assert inside.wait(10)
    n_closed: list[int] = []
    interrupter = threading.Thread(target=lambda: n_closed.append(interrupt(corpus, run)))
    interrupter.start()
    with corpus.installation.pool.connection() as connection:
        deadline = datetime.now(UTC) + timedelta(seconds=10)
        while not connection.execute("SELECT count(*) FROM pg_locks WHERE NOT granted").fetchone()[0] and interrupter.is_alive():
            assert datetime.now(UTC) < deadline
    go_on.set()
    publisher.join()
    interrupter.join()
    assert n_closed == [0]
    assert corpus.rows("SELECT p.state FROM documents JOIN publications AS p USING (publication_id)") == [("live",)]
    assert corpus.rows("SELECT state FROM attempts") == [("succeeded",)]


def test_runs_publishing_and_runs_being_closed_never_deadlock(corpus):
    for n in range(40):
        corpus.write(f"{n}.txt", f"Text number {n}.")
    run = opened(corpus)
    corpus.work(run, publish=False)
    sources, errors = run.sources(), []

    def publish() -> None:
        try:
            publish_documents(run, sources)
        except Exception as error:
            errors.append(error)

    publisher = threading.Thread(target=publish)
    publisher.start()
    n_closed = 0
    while publisher.is_alive():
        n_closed += interrupt(corpus, run)
    publisher.join()
    n_live = corpus.value("SELECT count(*) FROM documents JOIN publications USING (publication_id) WHERE state = 'live'")
    assert errors == []
    assert n_live == corpus.value("SELECT count(*) FROM documents")
    assert n_live + n_closed == 40


def test_a_retryable_failure_is_tried_a_few_times_and_then_waits_for_a_change(corpus):
    corpus.write("a.txt", "Text.")
    for _ in range(corpus.settings.max_attempts):
        fail(corpus, opened(corpus), UnreadableFile)
        assert waits(corpus)
        end_the_wait(corpus)
    assert waits(corpus)


@pytest.mark.parametrize("change", ["file", "settings", "code"])
def test_a_final_failure_is_tried_again_after_a_change_of_what_the_stage_depends_on(corpus, monkeypatch, change):
    corpus.write("a.txt", "Text.")
    fail(corpus, opened(corpus), DocumentTooLarge)
    assert waits(corpus)
    if change == "file":
        corpus.write("a.txt", "Other text.")
    elif change == "code":
        monkeypatch.setitem(CODE_VERSIONS, "parsing", "another")
    else:
        with corpus.installation.pool.connection() as connection:
            set_overrides(connection, corpus.settings, {"MAX_DOCUMENT_CHARS": "5000"})
    assert [batch.partitions for batch in corpus.look().batches] == [("a.txt",)]
    assert waits(corpus)  # claimed and requested: not a second time


def test_other_bytes_get_all_their_attempts(corpus):
    corpus.write("a.txt", "Text.")
    for _ in range(corpus.settings.max_attempts):
        fail(corpus, opened(corpus), UnreadableFile)
        end_the_wait(corpus)
    corpus.write("a.txt", "Other text.")
    fail(corpus, opened(corpus), UnreadableFile)
    assert corpus.value("SELECT retry_at IS NOT NULL FROM sources")


@pytest.mark.parametrize("wished", [False, True])
def test_an_interrupted_attempt_waits_even_where_an_earlier_one_failed(corpus, wished):
    corpus.write("a.txt", "Text.")
    fail(corpus, opened(corpus), DocumentTooLarge)
    corpus.write("a.txt", "Other text.")
    if wished:
        with corpus.installation.pool.connection() as connection:
            request_ingest(connection, paths=None, force=True, now=datetime.now(UTC))
    assert interrupt(corpus, opened(corpus)) == 1
    assert waits(corpus)
    end_the_wait(corpus)
    assert len(corpus.look().batches) == 1


def test_a_wish_ends_the_wait_of_a_failure(corpus):
    corpus.write("a.txt", "Text.")
    fail(corpus, opened(corpus), UnreadableFile)
    assert waits(corpus)
    with corpus.installation.pool.connection() as connection:
        request_ingest(connection, paths=["a.txt"], force=True, now=datetime.now(UTC))
    assert len(corpus.look().batches) == 1


def test_an_attempt_under_way_shows_no_failure_of_an_earlier_one(corpus):
    corpus.write("a.txt", "Text.")
    fail(corpus, opened(corpus), DocumentTooLarge)
    assert corpus.rows("SELECT status, error_code FROM sources") == [("failed", "too_large")]
    corpus.write("a.txt", "Other text.")
    opened(corpus)
    assert corpus.rows("SELECT status, error_code, error_message FROM sources") == [("processing", None, None)]


def test_an_excluded_file_that_was_touched_stays_cancelled(corpus):
    from stemma.library.deletion import delete_sources, mark_deleting

    path = corpus.write("a.txt", "Text.")
    corpus.ingest()
    here = corpus.installation
    with here.pool.connection() as connection:
        marked = mark_deleting(connection, [corpus.value("SELECT source_id FROM sources")], "keep_file", now=datetime.now(UTC))
    delete_sources(here.pool, marked, here.remove_sparse, library=corpus.settings.library)
    corpus.write(path.name, "Text.")
    run = opened(corpus)
    assert spool_files(run, run.sources()).files == {}
    assert corpus.rows("SELECT status FROM sources") == [("cancelled",)]
    assert waits(corpus)
