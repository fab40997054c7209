"""Each kind of damage is found, named after the promise that it breaks, and a sound corpus is clean."""

import os
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from damaged_corpus import DAMAGE, TEXT
from ingested_corpus import Corpus

from stemma.audit.audit import audit
from stemma.library.selection import Selection, delete_selected, select_sources


def found(corpus: Corpus, *, deep: bool = False, now: datetime | None = None) -> pl.DataFrame:
    return audit(corpus.installation, deep=deep, now=now or datetime.now(UTC))


@pytest.fixture
def sound(corpus: Corpus) -> Corpus:
    corpus.write("sea/tides.md", TEXT)
    corpus.write("sea/waves.txt", "Wind makes waves. Long fetch makes long waves.")
    corpus.write("empty.txt", "")
    corpus.ingest()
    return corpus


def test_a_sound_corpus_is_clean(sound: Corpus):
    assert found(sound, deep=True).rows() == []


def test_a_broken_file_and_one_that_was_taken_out_are_no_broken_promise(sound: Corpus):
    sound.write("broken.pdf", b"%PDF-1.7\nnone")
    sound.write("sea/waves.txt", "")
    sound.ingest()
    here = sound.installation
    with here.pool.connection() as connection:
        selected = select_sources(connection, Selection(paths=("sea/tides.md",)), remove_file=False)
    delete_selected(here.pool, selected, here.remove_sparse, library=sound.settings.library, intent="keep_file")
    sound.ingest()
    assert sound.rows("SELECT source_path, status FROM sources WHERE status <> 'ready' ORDER BY 1") == [
        ("broken.pdf", "failed"),
        ("sea/tides.md", "cancelled"),
    ]
    assert found(sound, deep=True).rows() == []


@pytest.mark.parametrize("check", DAMAGE)
def test_damage_in_the_database_is_found(sound: Corpus, check: str):
    sound.rows_affected(DAMAGE[check])
    assert check in found(sound)["check"].to_list()


def test_a_document_that_lost_its_text_to_no_chunk_is_found(sound: Corpus):
    sound.rows_affected("UPDATE documents SET text = text || ' and more', n_chars = n_chars + 9 WHERE source_path = 'sea/waves.txt'")
    assert found(sound).select("check", "detail").rows() == [("offsets_differ", "text from 46 on is in no chunk")]


def test_lost_keyword_entries_are_found_per_document(sound: Corpus):
    publication_id = sound.value("SELECT publication_id FROM documents WHERE source_path = 'sea/tides.md'")
    sound.installation.remove_sparse([publication_id])
    doc_id = sound.value("SELECT doc_id FROM documents WHERE source_path = 'sea/tides.md'")
    assert found(sound).select("check", "subject").rows() == [("keyword_entries_missing", doc_id)]


def test_keyword_entries_of_a_publication_that_is_gone_are_found(sound: Corpus):
    sound.rows_affected("UPDATE publications SET state = 'retired' WHERE source_path = 'sea/waves.txt'")
    assert "keyword_entries_orphaned" in found(sound)["check"].to_list()


def test_entries_of_a_version_that_a_query_may_still_read_are_no_orphans(sound: Corpus):
    sound.write("sea/waves.txt", "Wind makes waves, and ships make wakes.")
    sound.ingest()
    assert sound.value("SELECT count(*) FROM publications WHERE state = 'superseded'") == 1
    assert found(sound).rows() == []


def test_a_damaged_keyword_index_is_found_and_nothing_else_is_hidden_by_it(sound: Corpus):
    for file in (sound.settings.home / "bm25").rglob("*"):
        if file.is_file():
            file.write_bytes(b"\0" * 10)
    sound.rows_affected("UPDATE original_index_counter SET next = 0")
    assert {"keyword_index_unreadable", "original_index_reused"} <= set(found(sound)["check"])


def test_a_removed_file_and_an_unknown_one_are_found(sound: Corpus):
    (sound.settings.library / "sea/waves.txt").unlink()
    (sound.settings.library / "sea/currents.txt").write_text("The Gulf Stream is warm.")
    assert found(sound).select("check", "subject").rows() == [
        ("document_without_file", "sea/waves.txt"),
        ("file_without_document", "sea/currents.txt"),
    ]


def test_bytes_that_changed_under_an_unchanged_stat_are_found_by_reading(sound: Corpus):
    file = sound.settings.library / "sea/waves.txt"
    before = file.stat()
    file.write_bytes(file.read_bytes().replace(b"Wind", b"Rain"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found(sound).rows() == []
    assert found(sound, deep=True).select("check", "subject").rows() == [("file_differs", "sea/waves.txt")]


def test_objects_that_nothing_records_are_found_once_they_are_old(sound: Corpus):
    name = sound.installation.lake.write("documents", pl.DataFrame({"key": ["a"]}))
    assert found(sound).rows() == []
    later = found(sound, now=datetime.now(UTC) + timedelta(hours=2))
    assert later.select("check", "subject").rows() == [("lake_object_orphaned", name)]
