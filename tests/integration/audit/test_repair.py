"""What an audit finds is put right from what is still true: afterwards, and after one ingest, the corpus is clean again."""

from datetime import UTC, datetime, timedelta

import pytest
from damaged_corpus import DAMAGE, TEXT
from ingested_corpus import Corpus

from stemma.audit.audit import audit
from stemma.audit.repair import repair


@pytest.fixture
def sound(corpus: Corpus) -> Corpus:
    corpus.write("sea/tides.md", TEXT)
    corpus.write("sea/waves.txt", "Wind makes waves. Long fetch makes long waves.")
    corpus.ingest()
    return corpus


def repaired(corpus: Corpus, *, now: datetime | None = None) -> list[str]:
    now = now or datetime.now(UTC)
    return repair(corpus.installation, audit(corpus.installation, now=now), now=now)


def embedded(corpus: Corpus) -> int:
    return corpus.value("SELECT coalesce(sum(n_embedded), 0) FROM attempts")


QUICK = {"document_not_live", "offsets_differ", "vector_missing", "vector_differs"}


@pytest.mark.parametrize("check", [pytest.param(check, marks=[] if check in QUICK else [pytest.mark.slow]) for check in DAMAGE])
def test_every_damage_is_repaired_without_asking_the_model(sound: Corpus, check: str):
    chunks = "SELECT chunk_id, content, char_start, char_end FROM chunks ORDER BY chunk_id"
    before, n_embedded = sound.rows(chunks), embedded(sound)
    sound.rows_affected(DAMAGE[check])
    repaired(sound)
    sound.ingest()
    assert audit(sound.installation, now=datetime.now(UTC)).rows() == []
    assert sound.rows(chunks) == before
    assert embedded(sound) == n_embedded


def test_lost_keyword_entries_come_back_without_a_run(sound: Corpus):
    hits = sound.keyword_hits("moon")
    sound.installation.remove_sparse([sound.value("SELECT publication_id FROM documents WHERE source_path = 'sea/tides.md'")])
    assert sound.keyword_hits("moon") == []
    repaired(sound)
    assert sound.keyword_hits("moon") == hits
    assert audit(sound.installation, now=datetime.now(UTC)).rows() == []


def test_what_nothing_records_is_removed_with_its_bytes_told(sound: Corpus):
    lake = sound.installation.lake
    n_before = len(list(lake.objects()))
    (sound.settings.home / "lake" / "documents" / ".left.parquet.partial").write_bytes(b"12345")
    said = repaired(sound, now=datetime.now(UTC) + timedelta(hours=2))
    assert said[0] == "1 objects that nothing records were removed from the lake: 5 bytes"
    assert len(list(lake.objects())) == n_before


def test_a_clean_corpus_is_left_alone(sound: Corpus):
    assert repaired(sound) == []
