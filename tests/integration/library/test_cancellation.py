"""Cancel and retry per document: what is stopped stays stopped until someone, or a change, sets it going again."""

from datetime import UTC, datetime

import pytest

from stemma.library.cancellation import Chosen, cancel_documents, retry_documents
from stemma.library.deletion import delete_sources, mark_deleting
from stemma.library.listing import list_sources
from stemma.library.wishes import request_ingest
from stemma.stages.corpus import publish_documents
from stemma.stages.installation import wanted_fingerprints
from stemma.store.app_settings import set_overrides
from stemma.store.postgres import autocommitted


def cancel(corpus, **chosen):
    settings = corpus.installation.settings()
    with autocommitted(corpus.installation.pool) as connection:
        return cancel_documents(connection, Chosen(**chosen), settings, wanted_fingerprints(settings), now=datetime.now(UTC))


def retry(corpus, *, of=("failed", "cancelled"), **chosen) -> int:
    settings = corpus.installation.settings()
    with autocommitted(corpus.installation.pool) as connection:
        return len(retry_documents(connection, Chosen(**chosen), settings, wanted_fingerprints(settings), of=of, now=datetime.now(UTC)))


def statuses(corpus) -> dict[str, str]:
    return dict(corpus.rows("SELECT source_path, status FROM sources ORDER BY 1"))


def override(corpus, **values: str) -> None:
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, values)


def test_what_is_queued_or_waits_is_cancelled_and_comes_back_with_a_retry(corpus):
    corpus.write("a/1.txt", "One.")
    corpus.write("b/2.txt", "Two.")
    corpus.look()
    assert len(cancel(corpus, workspace="a").source_ids) == 1
    assert statuses(corpus) == {"a/1.txt": "cancelled", "b/2.txt": "processing"}
    assert cancel(corpus, workspace="a").source_ids == ()
    assert retry(corpus, paths=["a"]) == 1
    assert statuses(corpus)["a/1.txt"] == "pending"
    assert [batch.partitions for batch in corpus.look().batches] == [("a/1.txt",)]


def test_what_a_run_is_at_work_on_is_dropped_and_the_rest_of_its_batch_is_published(corpus):
    for name in ("a", "b"):
        corpus.write(f"{name}.txt", f"First {name}.")
    corpus.ingest()
    for name in ("a", "b"):
        corpus.write(f"{name}.txt", f"Second {name}.")
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    corpus.work(run, publish=False)
    cancelled = cancel(corpus, paths=["a.txt"])
    assert cancelled.idle_runs == ()  # it has b.txt to publish
    publish_documents(run, run.sources())
    assert corpus.rows("SELECT source_path, status, text FROM sources JOIN documents USING (source_id, source_path) ORDER BY 1") == [
        ("a.txt", "cancelled", "First a."),
        ("b.txt", "ready", "Second b."),
    ]
    assert corpus.look().batches == ()


def test_a_batch_is_cancelled_whole_and_its_run_has_nothing_left_to_do(corpus):
    corpus.write("a.txt", "One.")
    corpus.write("b.txt", "Two.")
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    cancelled = cancel(corpus, batch_id=batch.batch_id)
    assert (len(cancelled.source_ids), cancelled.idle_runs) == (2, (run.run_id,))
    corpus.work(run)
    assert corpus.value("SELECT count(*) FROM documents") == 0
    assert corpus.rows("SELECT DISTINCT state FROM publications") == [("abandoned",)]


def test_a_backfill_that_was_cancelled_before_it_was_claimed_waits_until_the_settings_change_again(corpus):
    corpus.write("a.txt", "Herons stand still. " * 30)
    corpus.ingest()
    override(corpus, CHUNK_SIZE="300")
    assert len(cancel(corpus).source_ids) == 1
    assert corpus.look().batches == ()
    override(corpus, CHUNK_SIZE="250")
    assert len(corpus.look().batches) == 1


def test_a_failed_document_gets_all_its_attempts_again(corpus):
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    corpus.ingest()
    assert statuses(corpus) == {"bad.docx": "failed"}
    assert cancel(corpus, paths=["bad.docx"]).source_ids == ()
    assert retry(corpus, of=("cancelled",)) == 0
    assert retry(corpus, of=("failed",)) == 1
    assert corpus.rows("SELECT status, error_code, n_failures FROM sources") == [("pending", None, 0)]
    corpus.ingest()
    assert corpus.rows("SELECT status, attempt_number FROM sources JOIN attempts USING (source_id) ORDER BY 2 DESC LIMIT 1") == [
        ("failed", 2)
    ]


def test_a_retry_of_what_is_in_order_but_for_a_wish_that_failed_repeats_the_wish(corpus):
    corpus.write("a.txt", "Text.")
    corpus.ingest()
    with corpus.installation.pool.connection() as connection:
        request_ingest(connection, paths=None, force=True, now=datetime.now(UTC))
    [batch] = corpus.look().batches
    corpus.open(batch.batch_id)
    corpus.rows("UPDATE attempts SET state = 'failed', finished_at = now() WHERE finished_at IS NULL RETURNING 1")
    corpus.rows("UPDATE sources SET status = 'failed', stage = 'parsing', error_code = 'unreadable', wanted_stage = NULL RETURNING 1")
    assert retry(corpus) == 1
    assert corpus.value("SELECT wanted_stage FROM sources") == "documents"
    corpus.ingest()
    assert statuses(corpus) == {"a.txt": "ready"}


def test_a_cancelled_document_that_is_in_order_is_ready_again_after_a_retry(corpus):
    corpus.write("a.txt", "Text.")
    corpus.ingest()
    with corpus.installation.pool.connection() as connection:
        request_ingest(connection, paths=None, force=True, now=datetime.now(UTC))
    cancel(corpus)
    assert statuses(corpus) == {"a.txt": "cancelled"}
    assert retry(corpus) == 1
    assert statuses(corpus) == {"a.txt": "ready"}


def test_what_was_deleted_with_its_file_kept_is_not_brought_back_by_a_retry(corpus):
    corpus.write("a.txt", "Text.")
    corpus.ingest()
    here = corpus.installation
    with here.pool.connection() as connection:
        marked = mark_deleting(connection, [corpus.value("SELECT source_id FROM sources")], "keep_file", now=datetime.now(UTC))
    delete_sources(here.pool, marked, here.remove_sparse, library=corpus.settings.library)
    assert statuses(corpus) == {"a.txt": "cancelled"}
    assert retry(corpus) == 0


@pytest.mark.parametrize(("n", "words"), [(1, "first attempt"), (3, "third attempt"), (12, "attempt 12")])
def test_a_failure_reads_back_as_a_sentence(corpus, n, words):
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    corpus.ingest()
    corpus.rows(
        "UPDATE attempts SET attempt_number = %s, started_at = '2026-01-01 00:00:00Z', finished_at = '2026-01-01 00:00:01.24Z' RETURNING 1",
        [n],
    )
    with corpus.installation.pool.connection() as connection:
        [row], _ = list_sources(connection, limit=1)
    assert row.failure == f"{words} failed at stage parsing with {row.error_code} after 1.2 s"
