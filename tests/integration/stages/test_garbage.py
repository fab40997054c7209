"""The lake and the vector cache keep their limits, and nothing that a document stands on is ever removed."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from ingested_corpus import Corpus

from stemma.audit.audit import audit
from stemma.library.selection import Selection, delete_selected, select_sources
from stemma.library.wishes import request_ingest
from stemma.stages.corpus import publish_documents
from stemma.stages.garbage import Reclaimed, collect_garbage
from stemma.store.forgotten_results import Swept, sweep_forgotten

NO_LIMIT = 10**12


def collect(corpus: Corpus, *, lake: int = NO_LIMIT, vectors: int = NO_LIMIT, later: timedelta = timedelta(hours=2)) -> Reclaimed:
    here = corpus.installation
    settings = here.settings().model_copy(update={"lake_max_bytes": lake, "embedding_cache_max_bytes": vectors})
    return collect_garbage(here.pool, here.lake, settings, now=datetime.now(UTC) + later)


@pytest.fixture
def edited(corpus: Corpus) -> Corpus:
    """A document that has had two texts: what the first was made into lies in the lake and in the cache still."""
    corpus.write("a.txt", "The first text, about herons.")
    corpus.ingest()
    corpus.write("a.txt", "The second text, about storks.")
    corpus.ingest()
    return corpus


def test_below_the_limits_nothing_is_removed(edited: Corpus):
    assert collect(edited) == Reclaimed(0, 0, 0, 0)


def test_above_the_limits_only_what_nobody_stands_on_is_removed(edited: Corpus):
    reclaimed = collect(edited, lake=0, vectors=0)
    assert (reclaimed.n_evicted, reclaimed.n_vectors) == (3, 1)
    assert audit(edited.installation, now=datetime.now(UTC)).rows() == []
    assert edited.value("SELECT count(*) FROM embedding_cache") == 1


def test_what_was_evicted_is_made_again_when_it_is_needed(edited: Corpus):
    collect(edited, lake=0, vectors=0)
    edited.write("a.txt", "The first text, about herons.")
    edited.ingest()
    assert edited.value("SELECT text FROM documents") == "The first text, about herons."
    assert audit(edited.installation, now=datetime.now(UTC)).rows() == []


def test_what_was_used_an_hour_ago_may_be_in_use(edited: Corpus):
    assert collect(edited, lake=0, vectors=0, later=timedelta(minutes=50)) == Reclaimed(0, 0, 0, 0)


def test_what_an_open_attempt_made_stays_until_it_is_published(edited: Corpus):
    edited.write("b.txt", "A third text, about cranes.")
    (batch,) = edited.look().batches
    run = edited.open(batch.batch_id)
    edited.work(run, publish=False)
    assert collect(edited, lake=0, vectors=0).n_vectors == 1
    assert set(publish_documents(run, run.sources()).versions) == {"b.txt"}


def test_orphans_go_whatever_the_limits(edited: Corpus):
    edited.installation.lake.write("documents", pl.DataFrame({"key": ["a"]}))
    assert collect(edited).n_orphaned == 1


def in_lake(corpus: Corpus) -> str:
    """Every string that lies in the lake."""
    lake = corpus.installation.lake
    frames = [pl.read_parquet(corpus.settings.home / "lake" / stored.name) for stored in lake.objects()]
    return str([frame.to_dicts() for frame in frames])


def delete(corpus: Corpus, path: str) -> None:
    here = corpus.installation
    with here.pool.connection() as connection:
        selected = select_sources(connection, Selection(paths=(path,)), remove_file=True)
    delete_selected(here.pool, selected, here.remove_sparse, library=corpus.settings.library, intent="remove_file")


@pytest.fixture
def three(corpus: Corpus) -> Corpus:
    """Two documents of the same bytes and another one, made in one batch."""
    corpus.write("a.txt", "The text about herons.")
    corpus.write("twin.txt", "The text about herons.")
    corpus.write("b.txt", "The text about storks.")
    corpus.ingest()
    return corpus


def test_what_a_deleted_document_was_made_into_leaves_the_lake_also_out_of_objects_that_others_use(three: Corpus):
    delete(three, "b.txt")
    swept = sweep_forgotten(three.installation.pool, three.installation.lake)
    assert swept.n_results == 3
    assert "storks" not in in_lake(three)
    assert "herons" in in_lake(three)
    assert audit(three.installation, now=datetime.now(UTC)).rows() == []


def test_what_another_document_stands_on_stays_until_the_last_of_them_is_deleted(three: Corpus):
    delete(three, "a.txt")
    assert sweep_forgotten(three.installation.pool, three.installation.lake) == Swept()
    assert "herons" in in_lake(three)
    delete(three, "twin.txt")
    delete(three, "b.txt")
    sweep_forgotten(three.installation.pool, three.installation.lake)
    assert list(three.installation.lake.objects()) == []


def test_the_lake_says_by_how_many_bytes_it_became_smaller(three: Corpus):
    before = sum(stored.size for stored in three.installation.lake.objects())
    delete(three, "b.txt")
    reclaimed = collect(three)
    after = sum(stored.size for stored in three.installation.lake.objects())
    assert (reclaimed.n_forgotten, reclaimed.n_bytes) == (3, before - after)


def test_results_of_a_run_under_way_are_not_taken_from_under_it(three: Corpus):
    three.write("new.txt", "The text about storks.")
    (batch,) = three.look().batches
    run = three.open(batch.batch_id)
    delete(three, "b.txt")
    assert sweep_forgotten(three.installation.pool, three.installation.lake) == Swept()
    three.work(run)
    three.ingest()
    assert sorted(path for (path,) in three.rows("SELECT source_path FROM documents")) == ["a.txt", "new.txt", "twin.txt"]
    assert three.value("SELECT count(*) FROM stage_results WHERE starts_with(key, 'forgotten:')") == 0


def test_a_result_that_is_made_again_leaves_no_second_copy(three: Corpus):
    with three.installation.pool.connection() as connection:
        request_ingest(connection, paths=["b.txt"], force=True, now=datetime.now(UTC))
    three.ingest()
    three.look()
    delete(three, "b.txt")
    sweep_forgotten(three.installation.pool, three.installation.lake)
    assert "storks" not in in_lake(three)
