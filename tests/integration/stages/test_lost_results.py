"""Stage results that are gone or damaged: the work is done again from the file's bytes."""

import shutil

import pytest

from stemma.stages.corpus import publish_documents

TEXT = "A sentence about herons. " * 50


def damage(corpus, stage: str) -> int:
    """Overwrite every object of the stage; returns how many there were."""
    objects = list((corpus.settings.home / "lake" / stage).iterdir())
    for path in objects:
        path.write_bytes(b"PAR1 and nothing else")
    return len(objects)


@pytest.mark.parametrize("stage", ["documents", "chunks", "contextualized_chunks"])
def test_a_damaged_object_is_made_again(corpus, stage):
    corpus.write("a.txt", TEXT)
    corpus.ingest()
    assert damage(corpus, stage) == 1
    corpus.write("copy.txt", TEXT)
    corpus.ingest()
    assert corpus.rows("SELECT source_path, status FROM sources ORDER BY 1") == [("a.txt", "ready"), ("copy.txt", "ready")]
    assert corpus.rows("SELECT text FROM documents WHERE source_path = 'copy.txt'") == [(TEXT,)]


def test_what_is_lost_before_it_is_published_costs_the_attempt_alone(corpus):
    corpus.write("a.txt", TEXT)
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    corpus.work(run, publish=False)
    sources = run.sources()
    damage(corpus, "documents")
    outcome = publish_documents(run, sources)
    assert outcome.versions == {} and outcome.failures == {}
    assert corpus.rows("SELECT state FROM attempts") == [("abandoned",)]
    shutil.rmtree(corpus.settings.home / "spool", ignore_errors=True)
    corpus.ingest()
    assert corpus.rows("SELECT text FROM documents") == [(TEXT,)]
