"""Policies: a recipe that changes redoes what is live at once, or waits; files always flow."""

from datetime import UTC, datetime

import pytest

from stemma.library.wishes import request_ingest
from stemma.settings import CODE_VERSIONS
from stemma.store.app_settings import set_overrides

TEXT = "A heron stands in the reeds. " * 40


@pytest.fixture
def manual(corpus):
    """Two documents, and then another chunking recipe that waits for a wish."""
    corpus.write("a.txt", TEXT)
    corpus.write("b.txt", TEXT + "Another.")
    corpus.ingest()
    override(corpus, CHUNKING_POLICY="manual", CHUNK_SIZE="300")
    return corpus


def override(corpus, **values: str) -> None:
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, values)


def batches(corpus) -> list[tuple[str, ...]]:
    return [batch.partitions for batch in corpus.look().batches]


def test_a_manual_stage_waits_and_the_tick_says_so(manual):
    look = manual.look()
    assert look.batches == ()
    assert "2 documents wait for a backfill: the policy of a stage is manual" in look.message


def test_what_is_below_a_manual_stage_waits_with_it(manual):
    override(manual, CONTEXTUALIZER="none")
    assert batches(manual) == []


def test_an_eager_stage_above_a_manual_one_takes_both(manual):
    override(manual, MAX_DOCUMENT_CHARS="1000000")
    assert batches(manual) == [("a.txt", "b.txt")]


def test_new_and_changed_and_renamed_files_flow_through_a_manual_stage(manual):
    manual.write("a.txt", TEXT + "Edited.")
    manual.write("c.txt", TEXT)
    (manual.settings.library / "b.txt").rename(manual.settings.library / "d.txt")
    manual.ingest()
    assert manual.rows("SELECT source_path FROM documents ORDER BY 1") == [("a.txt",), ("c.txt",), ("d.txt",)]
    assert manual.value("SELECT count(DISTINCT chunking_fingerprint) FROM documents") == 1


def test_a_wish_redoes_what_was_wished_for_and_leaves_the_rest(manual):
    with manual.installation.pool.connection() as connection:
        request_ingest(connection, paths=["a.txt"], force=True, now=datetime.now(UTC))
    assert batches(manual) == [("a.txt",)]


def test_back_to_eager_everything_that_waited_flows(manual):
    override(manual, CHUNKING_POLICY="eager")
    assert batches(manual) == [("a.txt", "b.txt")]


def test_other_code_of_a_manual_stage_waits_as_well(corpus, monkeypatch):
    corpus.write("a.txt", TEXT)
    corpus.ingest()
    override(corpus, EMBEDDING_POLICY="manual")
    monkeypatch.setitem(CODE_VERSIONS, "embedding", "another")
    assert batches(corpus) == []
    override(corpus, EMBEDDING_POLICY="eager")
    assert batches(corpus) == [("a.txt",)]
