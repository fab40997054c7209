"""Files that are written to while the library is looked at, and a library that is not there."""

import os
from datetime import UTC, datetime, timedelta

from stemma.library.progress import progress
from stemma.library.reconcile import SETTLING_S, reconcile
from stemma.stages.installation import wanted_fingerprints


def look_at(corpus, now: datetime, *, touched: str | None = None):
    """A look at that time; the touched file was modified just then."""
    if touched:
        moment = int(now.timestamp() * 1e9) - 1_000_000
        os.utime(corpus.settings.library / touched, ns=(moment, moment))
    here = corpus.installation
    corpus.request()
    return reconcile(
        here.pool, here.settings(), wanted_fingerprints(here.settings()), corpus.runs, remove_sparse=here.remove_sparse, now=now
    )


def remaining(corpus) -> int:
    with corpus.installation.pool.connection() as connection:
        return progress(connection, datetime.min.replace(tzinfo=UTC)).n_remaining


def test_a_file_that_was_modified_a_moment_ago_waits_for_the_next_look(corpus):
    corpus.write("note.md", "saved just now")
    now = datetime.now(UTC)
    assert look_at(corpus, now, touched="note.md").batches == ()
    assert remaining(corpus) == 1
    assert [batch.partitions for batch in look_at(corpus, now + timedelta(seconds=5)).batches] == [("note.md",)]
    assert remaining(corpus) == 0


def test_a_file_that_is_written_to_all_the_time_is_taken_after_a_while(corpus):
    corpus.write("live.log", "line 1\n")
    began = datetime.now(UTC)
    steps = [look_at(corpus, began + timedelta(seconds=seconds), touched="live.log").batches for seconds in range(0, int(SETTLING_S), 5)]
    assert steps == [()] * len(steps)
    late = began + timedelta(seconds=SETTLING_S)
    assert [batch.partitions for batch in look_at(corpus, late, touched="live.log").batches] == [("live.log",)]
    assert remaining(corpus) == 0


def test_one_restless_file_keeps_no_other_waiting(corpus):
    corpus.write("live.log", "line 1\n")
    corpus.write("quiet.md", "at rest")
    assert [batch.partitions for batch in look_at(corpus, datetime.now(UTC), touched="live.log").batches] == [("quiet.md",)]


def test_a_library_that_is_away_is_said_to_be_and_nothing_is_removed(corpus):
    corpus.write("a.md", "kept")
    corpus.ingest()
    away = corpus.settings.library.rename(corpus.settings.library.with_name("away"))
    since = datetime.now(UTC)
    corpus.look()
    with corpus.installation.pool.connection() as connection:
        assert progress(connection, since).library_away
    away.rename(corpus.settings.library)
    corpus.look()
    with corpus.installation.pool.connection() as connection:
        assert not progress(connection, since).library_away
    assert corpus.value("SELECT count(*) FROM documents") == 1
