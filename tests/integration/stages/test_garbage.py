"""The lake and the vector cache keep their limits, and nothing that a document stands on is ever removed."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from ingested_corpus import Corpus

from stemma.audit.audit import audit
from stemma.stages.corpus import publish_documents
from stemma.stages.garbage import Reclaimed, collect_garbage

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
