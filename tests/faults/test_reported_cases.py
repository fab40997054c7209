"""What went wrong elsewhere, by its steps: the cases of the shared inputs that are about publishing, deleting and racing."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import numpy as np
import psycopg
import pytest
from fault_state import read_state
from ingested_corpus import Corpus

from stemma.embedding.models import MINILM, embedding_spec
from stemma.library.selection import Selection, delete_selected, select_sources
from stemma.library.wishes import request_ingest
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.search import SearchRequest, search
from stemma.stages import embeddings
from stemma.stages.installation import Installation
from stemma.store.app_settings import set_overrides
from stemma.store.postgres import StoreBusy, StoreUnavailable


class CheapEmbedder:
    """Vectors by a string's hash: for what is about numbers of chunks, not about meaning."""

    spec = embedding_spec(MINILM)

    def embed_passages(self, passages):
        vectors = np.stack([np.random.default_rng(abs(hash(text))).standard_normal(self.spec.dimension) for text in passages])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def embed_query(self, query):
        return self.embed_passages([query])[0]


@pytest.fixture
def cheap(corpus: Corpus, monkeypatch) -> Corpus:
    """A corpus whose vectors cost nothing, and are kept four at a time."""
    monkeypatch.setattr(embeddings, "PASSAGES_PER_COMMIT", 4)
    corpus.installation.embedder_of = lambda spec: CheapEmbedder()
    return corpus


def texts(corpus: Corpus) -> dict[str, str]:
    return dict(corpus.rows("SELECT source_path, text FROM documents ORDER BY 1"))


def broken(corpus: Corpus) -> list[str]:
    with corpus.installation.pool.connection() as connection:
        return read_state(connection, corpus.settings.home).broken


def set_sizes(corpus: Corpus, chunk_size: int) -> None:
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNK_SIZE": str(chunk_size), "CHUNK_OVERLAP": "0"})


def sizes(corpus: Corpus) -> dict[str, set[str]]:
    """Source path -> the chunk sizes that its chunks record."""
    rows = corpus.rows("SELECT DISTINCT source_path, c.metadata ->> 'chunk_size' FROM documents JOIN chunks AS c USING (publication_id)")
    found: dict[str, set[str]] = {}
    for path, size in rows:
        found.setdefault(path, set()).add(size)
    return found


def keyword_paths(corpus: Corpus, query: str) -> list[str]:
    """The documents that a keyword search answers with, as a client asks it."""
    indexes = OpenKeywordIndexes(corpus.settings)
    request = SearchRequest(query, method="bm25", k=10)
    patient = corpus.settings.model_copy(update={"query_timeout_s": 30})
    answer = search(request, pool=corpus.installation.pool, lexical=indexes, embedder=None, settings=patient)
    indexes.close()
    return sorted({hit.source_path for hit in answer.hits})


def delete(corpus: Corpus, path: str):
    here = corpus.installation
    with here.pool.connection() as connection:
        selected = select_sources(connection, Selection(paths=(path,)), remove_file=True)
    return delete_selected(here.pool, selected, here.remove_sparse, library=corpus.settings.library, intent="remove_file")


# Case 14: an update that fails loses nothing.


@pytest.mark.parametrize(
    ("point", "what"),
    [
        ("embeddings.before_store", "full"),
        ("embeddings.before_store", "full:3"),
        ("keywords.before_commit", "read_only"),
        ("keywords.committed", "full"),
        ("coverage.recorded", "full"),
        ("publish.before_commit", "full"),
    ],
)
def test_an_update_that_fails_anywhere_leaves_the_old_version_whole_and_the_next_run_brings_the_new_one(
    cheap, failing, shared, point, what
):
    old = (shared / "cases" / "14-failed-update-loses-old-version" / "v1.txt").read_text("utf-8")
    set_sizes(cheap, 100)
    cheap.write("v1.txt", old)
    cheap.ingest()
    before = cheap.rows("SELECT chunk_id, publication_id FROM chunks ORDER BY 1")
    new = "Another beginning. " + old[::-1]
    cheap.write("v1.txt", new)
    failing.arm(point, what)
    [batch] = cheap.look().batches
    run = cheap.open(batch.batch_id)
    with pytest.raises(Exception, match=r"No space|Read-only"):
        cheap.work(run)
    cheap.runs.ended.add(run.run_id)
    assert texts(cheap) == {"v1.txt": old}
    assert cheap.rows("SELECT chunk_id, publication_id FROM chunks ORDER BY 1") == before
    cheap.ingest()
    cheap.ingest()
    assert texts(cheap) == {"v1.txt": new}
    assert broken(cheap) == []


def test_an_update_whose_server_goes_away_in_the_publishing_transaction_leaves_the_old_version_whole(cheap, failing):
    cheap.write("v1.txt", "The old text.")
    cheap.ingest()
    cheap.write("v1.txt", "The new text.")
    [batch] = cheap.look().batches
    run = cheap.open(batch.batch_id)
    with pytest.raises((psycopg.OperationalError, StoreUnavailable)), failing.paused("publish.before_commit", lambda: cheap.work(run)):
        cheap.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'"
        )
    assert texts(cheap) == {"v1.txt": "The old text."}
    cheap.runs.ended.add(run.run_id)
    cheap.ingest()
    cheap.ingest()
    assert texts(cheap) == {"v1.txt": "The new text."}
    assert broken(cheap) == []


# Case 26: found as soon as the run is over, not found as soon as the deletion is.


@pytest.mark.parametrize("n_times", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_what_was_ingested_is_found_at_once_and_what_was_deleted_is_not_found_at_once(cheap, shared, n_times):
    text = (shared / "cases" / "26-visible-after-ingest" / "f.txt").read_text("utf-8")
    needle = next(word for word in text.split() if word.startswith("needle"))
    for _ in range(n_times):
        cheap.write("f.txt", text)
        cheap.ingest()
        assert keyword_paths(cheap, needle) == ["f.txt"]
        delete(cheap, "f.txt")
        assert keyword_paths(cheap, needle) == []
        assert cheap.keyword_hits(needle) == []


# Case 27: no list, no deletion and no check stops at a round number.


@pytest.mark.parametrize(("n_lines", "least"), [(11, 11), (1_300, 1_001), pytest.param(12_000, 10_001, marks=pytest.mark.slow)])
def test_every_chunk_of_a_long_document_is_indexed_listed_and_deleted(cheap, shared, n_lines, least):
    script = shared / "cases" / "27-more-than-10000" / "make_12000.py"
    lines = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout.splitlines(keepends=True)
    set_sizes(cheap, 60)
    cheap.write("big.txt", "".join(lines[: 2 * n_lines]))
    cheap.ingest()
    n_chunks = cheap.value("SELECT n_chunks FROM documents")
    assert n_chunks >= least
    assert cheap.value("SELECT count(*) FROM chunks") == n_chunks
    assert broken(cheap) == [], "vectors and keyword entries are as many"
    assert keyword_paths(cheap, f"needle-l{n_lines - 1:05d}") == ["big.txt"]
    assert [source.source_path for source in delete(cheap, "big.txt").deleted] == ["big.txt"]
    assert cheap.value("SELECT count(*) FROM chunks") == 0
    assert cheap.value(f"SELECT count(*) FROM {cheap.value('SELECT vector_table FROM embedding_indexes')}") == 0
    cheap.look()
    assert broken(cheap) == [], "no entry of the keyword index is left"


# Case 34: many workers, the same documents, and a deletion among them.


def test_workers_that_ingest_and_delete_the_same_documents_at_once_leave_each_whole_and_once(cheap):
    paths = [f"w/{number}.txt" for number in range(12)]
    for path in paths:
        cheap.write(path, f"The text of {path}. " * 20)

    def worker(number: int) -> None:
        corpus = Corpus(cheap.settings, Installation(cheap.settings))
        corpus.installation.embedder_of = lambda spec: CheapEmbedder()
        for turn in range(4):
            try:
                if number == 0:
                    delete(corpus, paths[turn])
                    cheap.write(paths[turn], f"The text of {paths[turn]}, after turn {turn}. " * 20)
                else:
                    with corpus.installation.pool.connection() as connection:
                        request_ingest(connection, paths=["w"], force=number == 1, now=datetime.now(UTC))
                    corpus.ingest()
            except StoreBusy:
                continue  # another holds the document: said, and to be repeated
        corpus.installation.close()

    with ThreadPoolExecutor(4) as workers:
        for done in [workers.submit(worker, number) for number in range(4)]:
            done.result()
    cheap.runs.ended |= {run_id for (run_id,) in cheap.rows("SELECT DISTINCT run_id FROM attempts WHERE run_id IS NOT NULL")}
    for _ in range(4):
        cheap.ingest()
    assert sorted(texts(cheap)) == sorted(paths)
    assert broken(cheap) == [], "one document per file, numbers unique, all stores agree"
    counts = cheap.rows("SELECT count(*), count(DISTINCT original_index), count(DISTINCT chunk_id) FROM chunks")[0]
    assert len(set(counts)) == 1


# Case 47: settings that change and change back, half applied.


def test_settings_that_change_back_half_way_leave_no_document_of_two_settings(cheap, failing, shared):
    text = (shared / "cases" / "47-setting-change-half-applied" / "v1.txt").read_text("utf-8")
    set_sizes(cheap, 400)
    for number in range(4):
        cheap.write(f"{number}.txt", f"Number {number}. {text}")
    cheap.ingest()
    set_sizes(cheap, 800)
    cheap.write("new.txt", f"A new one. {text}")
    [batch] = cheap.look().batches
    run = cheap.open(batch.batch_id)
    failing.arm("publish.committed", "full:3")
    with pytest.raises(OSError, match="No space"):
        cheap.work(run)
    cheap.runs.ended.add(run.run_id)
    half = sizes(cheap)
    assert all(len(of_document) == 1 for of_document in half.values()), "each document is of one setting"
    assert {"400", "800"} == set().union(*half.values()), "some of the old, some of the new"
    set_sizes(cheap, 400)
    cheap.ingest()
    cheap.ingest()
    assert sizes(cheap) == {path: {"400"} for path in ("0.txt", "1.txt", "2.txt", "3.txt", "new.txt")}
    assert cheap.look().batches == ()
    assert broken(cheap) == []
