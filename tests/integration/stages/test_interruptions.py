"""Runs that end with their documents unfinished: who is suspected, who is not, and how the one that ends them is found."""

from datetime import UTC, datetime

import pytest

from stemma.library import claims
from stemma.store.postgres import autocommitted


def look(corpus):
    """The partitions of each batch that is requested now, whatever waits had been agreed on."""
    corpus.rows("UPDATE sources SET retry_at = now() - interval '1 s' WHERE retry_at IS NOT NULL RETURNING 1")
    return corpus.look().batches


def end(corpus, run, ending: claims.Ending = "interrupted", **settings) -> int:
    """The run's process is gone."""
    with autocommitted(corpus.installation.pool) as connection:
        under = corpus.settings.model_copy(update=settings)
        return claims.close_run(connection, run.run_id, ending, under, now=datetime.now(UTC))


def attempts(corpus, path: str) -> list[tuple[str, str | None]]:
    return corpus.rows(
        "SELECT a.state, a.error_code FROM attempts AS a JOIN sources USING (source_id) WHERE source_path = %s ORDER BY attempt_number",
        [path],
    )


def test_what_was_interrupted_together_is_tried_again_in_halves(corpus):
    for n in range(6):
        corpus.write(f"{n}.txt", f"Text {n}.")
    [batch] = look(corpus)
    assert end(corpus, corpus.open(batch.batch_id)) == 6
    assert corpus.look().batches == ()  # they wait
    assert [len(batch.partitions) for batch in look(corpus)] == [3, 3]


def test_a_new_file_does_not_share_the_fate_of_suspects(corpus):
    corpus.write("a.txt", "Text.")
    corpus.write("b.txt", "Text two.")
    [batch] = look(corpus)
    end(corpus, corpus.open(batch.batch_id))
    corpus.write("aa.txt", "New text.")
    assert sorted(batch.partitions for batch in look(corpus)) == [("a.txt",), ("aa.txt",), ("b.txt",)]


def test_a_document_that_ends_its_run_each_time_fails_alone_and_its_mates_are_published(corpus):
    for n in range(4):
        corpus.write(f"{n}.txt", f"Text {n}.")
    n_runs = 0
    while batches := look(corpus):
        for batch in batches:
            run = corpus.open(batch.batch_id)
            n_runs += 1
            if "2.txt" in batch.partitions:
                end(corpus, run)
            else:
                corpus.work(run)
    assert corpus.rows("SELECT source_path, status, error_code FROM sources ORDER BY 1") == [
        ("0.txt", "ready", None),
        ("1.txt", "ready", None),
        ("2.txt", "failed", "worker_died"),
        ("3.txt", "ready", None),
    ]
    assert attempts(corpus, "2.txt") == [("interrupted", None)] * 4 + [("failed", "worker_died")]  # with 4, with 2, three times alone
    assert n_runs == 1 + 2 + 1 + 2 + 1  # all, two halves, its mate, and alone three times
    corpus.write("2.txt", "Mended.")
    corpus.ingest()
    assert corpus.value("SELECT status FROM sources WHERE source_path = '2.txt'") == "ready"


@pytest.mark.parametrize("other", ["supervisor", "server"])
def test_an_end_that_came_with_the_end_of_its_surroundings_says_nothing_of_the_document(corpus, other):
    corpus.write("a.txt", "Text.")
    for _ in range(4):
        [batch] = corpus.look().batches  # at once, without a wait
        run = corpus.open(batch.batch_id)
        if other == "server":
            corpus.rows("UPDATE attempts SET bound_under = '|1.5' WHERE finished_at IS NULL RETURNING 1")
        assert end(corpus, run, **({"supervisor": "a later one"} if other == "supervisor" else {})) == 1
    assert attempts(corpus, "a.txt") == [("cancelled", None)] * 4
    assert corpus.rows("SELECT status, error_code FROM sources") == [("pending", None)]


def test_a_store_that_was_away_is_waited_for_and_never_held_against_a_document(corpus):
    corpus.write("a.txt", "Text.")
    for _ in range(4):
        [batch] = look(corpus)
        assert end(corpus, corpus.open(batch.batch_id), "unavailable") == 1
        assert corpus.look().batches == ()
    assert {state for state, _ in attempts(corpus, "a.txt")} == {"cancelled"}


def test_other_bytes_begin_the_count_anew(corpus):
    corpus.write("a.txt", "Text.")
    for text in ("Other text.", "Third text.", "Fourth text."):
        [batch] = look(corpus)
        end(corpus, corpus.open(batch.batch_id))
        corpus.write("a.txt", text)
    [batch] = look(corpus)
    end(corpus, corpus.open(batch.batch_id))
    assert corpus.value("SELECT status FROM sources") == "pending"


def test_the_documents_of_a_run_that_a_person_cancelled_wait_for_a_change(corpus):
    corpus.write("a.txt", "Text.")
    corpus.ingest()
    corpus.write("a.txt", "Other text.")
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    corpus.runs.endings[run.run_id] = "cancelled"
    assert corpus.look().batches == ()
    assert corpus.rows("SELECT status, text FROM sources JOIN documents USING (source_id)") == [("cancelled", "Text.")]
    corpus.write("a.txt", "Third text.")
    corpus.ingest()
    assert corpus.rows("SELECT status, text FROM sources JOIN documents USING (source_id)") == [("ready", "Third text.")]


def test_a_run_cancelled_in_the_queue_takes_its_batch_with_it(corpus):
    corpus.write("a.txt", "Text.")
    [batch] = corpus.look().batches
    corpus.runs.cancelled.add(batch.batch_id)
    assert corpus.look().batches == ()
    assert corpus.rows("SELECT status FROM sources") == [("cancelled",)]
    assert attempts(corpus, "a.txt") == [("cancelled", None)]
