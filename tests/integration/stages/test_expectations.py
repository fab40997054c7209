"""Every expectation is met by what ingestion publishes, and broken by exactly the fault that it is about."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evals.expectations.languages import is_english
from evals.expectations.layers import LAYERS, Published, drift, hold, orphaned
from stemma.retrieval.published_facts import published
from stemma.store.app_settings import set_overrides
from stemma.store.embedding_indexes import active_embedding_index

ENGLISH = "The heron stands in the reeds of the lake and waits for a fish that is not there, as it has done for an hour. "
GERMAN = "Der Reiher steht im Schilf und wartet geduldig auf einen Fisch, der heute wohl nicht mehr kommen wird, wie schon gestern. "
PROJECT = Path(__file__).resolve().parents[3]


def verdicts(corpus, layers=LAYERS):
    with corpus.installation.pool.connection() as connection:
        return hold(Published(connection, list(published(connection).values())), layers, index_of=corpus.installation.index_of)


def drifts(corpus):
    with corpus.installation.pool.connection() as connection:
        live = Published(connection, list(published(connection).values()))
        return drift(live, spec=active_embedding_index(connection).spec, knows="english")


@pytest.fixture
def library(corpus):
    """Two documents of several chunks, one without text, one that failed."""
    corpus.write("a.md", "# Herons\n\n" + ENGLISH * 20 + "\n\n| bird | fish |\n| --- | --- |\n| heron | 3 |\n")
    corpus.write("b.txt", ENGLISH * 20)
    corpus.write("empty.txt", b"")
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    corpus.ingest()
    return corpus


@pytest.mark.parametrize("strategy", ["markdown_aware", "token_based"])
def test_what_ingestion_publishes_is_as_expected_in_every_layer(corpus, strategy):
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNKING_STRATEGY": strategy, "CHUNK_SIZE": "100", "CHUNK_OVERLAP": "10"})
    corpus.write("a.md", "# Herons\n\n" + ENGLISH * 10 + "\n\n```\n" + "code and more code\n" * 30 + "```\n")
    corpus.write("empty.txt", b"")
    corpus.ingest()
    held = verdicts(corpus)
    assert {layer: verdict.broken for layer, verdict in held.items()} == dict.fromkeys(LAYERS, ())
    assert held["chunks"].n_rows == corpus.value("SELECT count(*) FROM chunks") > 3
    assert all(verdict.expected for verdict in held.values())


FAULTS = {
    "documents": [
        ("UPDATE documents SET n_chars = n_chars + 1 WHERE source_path = 'a.md'", "The text is as long as was recorded."),
        ("DELETE FROM chunks USING documents AS d WHERE d.publication_id = chunks.publication_id AND d.source_path = 'a.md'; "
         "UPDATE documents SET n_chunks = 0 WHERE source_path = 'a.md'", "A text with visible characters has chunks."),
    ],
    "chunks": [
        ("UPDATE documents SET text = 'x' || text, n_chars = n_chars + 1 WHERE source_path = 'a.md'", "The text between a chunk's offsets is its content."),
        ("DELETE FROM chunks USING documents AS d WHERE d.publication_id = chunks.publication_id AND d.source_path = 'a.md' AND chunk_index = 1",
         "Chunk indexes are dense, from 0."),
        ("UPDATE chunks SET metadata = jsonb_set(metadata, '{chunk_size}', '20') FROM documents AS d "
         "WHERE d.publication_id = chunks.publication_id AND d.source_path = 'a.md' AND chunk_index = 0", "No chunk is longer than its strategy allows."),
    ],
    "contextualized_chunks": [
        ("UPDATE chunks SET context = '  ', contextualized_content = E'  \\n\\n' || content FROM documents AS d "
         "WHERE d.publication_id = chunks.publication_id AND d.source_path = 'a.md'", "A context is not blank and has at most 10,000 characters."),
    ],
    "embeddings": [
        ("DELETE FROM chunk_vectors_1 USING documents AS d WHERE d.publication_id = chunk_vectors_1.publication_id AND d.source_path = 'a.md'",
         "Every chunk has a vector."),
        ("UPDATE chunk_vectors_1 SET embedding = embedding + embedding FROM documents AS d "
         "WHERE d.publication_id = chunk_vectors_1.publication_id AND d.source_path = 'a.md'", "Vectors are finite and of length 1."),
    ],
    "bm25_index": [
        ("UPDATE sparse_coverage SET n_entries = 0 FROM documents AS d WHERE d.publication_id = sparse_coverage.publication_id AND d.source_path = 'a.md'",
         "As many entries are recorded as chunks are published."),
    ],
    "corpus": [
        ("UPDATE documents SET content_hash = repeat('0', 64) WHERE source_path = 'a.md'", "Its doc_id is made of its path and its bytes."),
        ("UPDATE documents SET n_chunks = n_chunks + 1 WHERE source_path = 'a.md'", "It has as many chunks as it says."),
    ],
}  # fmt: skip


def test_a_fault_breaks_its_expectation_in_its_partition_alone(library):
    with library.installation.pool.connection() as connection:
        for layer, faults in FAULTS.items():
            for fault, says in faults:
                for statement in fault.split("; "):
                    connection.execute(statement)
                live = Published(connection, list(published(connection).values()))
                [verdict] = hold(live, [layer], index_of=library.installation.index_of).values()
                assert says in [one.says for one in verdict.broken], fault
                assert verdict.partitions == {"a.md"}, fault
                assert verdict.of("b.txt") == () and verdict.of("a.md")[0].rows.height > 0
                connection.rollback()


def test_entries_that_the_engine_lost_are_seen_whatever_the_record_says(library):
    lost = library.value("SELECT publication_id FROM documents WHERE source_path = 'a.md'")
    library.installation.remove_sparse([lost])
    [verdict] = verdicts(library, ["bm25_index"]).values()
    assert [one.says for one in verdict.broken] == ["The keyword index holds as many entries as chunks are published."]


def test_orphans_are_named(library):
    with library.installation.pool.connection() as connection:
        assert orphaned(connection).broken == ()
        connection.execute("DELETE FROM documents WHERE source_path = 'a.md'")
        [broken] = orphaned(connection).broken
    assert set(broken.rows["orphan"]) == {"a live publication without a document", "a ready source without a live document"}


def test_drift_is_seen_in_languages_failures_and_lengths(corpus):
    corpus.write("a.txt", ENGLISH * 5)
    corpus.ingest()
    assert {layer: verdict.broken for layer, verdict in drifts(corpus).items()} == {"documents": (), "chunks": ()}
    for n in range(3):
        corpus.write(f"de{n}.txt", GERMAN * 5 + str(n))
        corpus.write(f"bad{n}.docx", b"PK\x03\x04 broken" + bytes([n]))
        corpus.write(f"scrap{n}.txt", f"scrap {n}")
    corpus.ingest()
    found = drifts(corpus)
    assert len(found["documents"].broken) == 2 and all(one.observed for one in found["documents"].broken)
    assert [one.says for one in found["chunks"].broken] == ["At most 30% of the chunks have fewer than 10 tokens."]


def test_english_is_told_from_other_languages_and_from_too_little_text():
    assert is_english(ENGLISH * 2) is True
    assert is_english(GERMAN * 2) is False
    assert is_english("出汁の取り方を説明します。" * 40) is False
    assert is_english("a few words only") is None


def test_great_expectations_reaches_no_host_and_writes_no_file(tmp_path):
    """A process of its own, in an empty home, with connections beyond loopback refused and written down."""
    home, log = tmp_path / "home", tmp_path / "sockets.log"
    home.mkdir()
    code = (
        "import polars as pl, threading; from evals.expectations.validation import validate; from evals.expectations.bm25_index import suite\n"
        "frame = pl.DataFrame({'partition_key': ['a', 'b'], 'n_recorded': [1, 2], 'n_entries': [1, 1], 'n_chunks': [1, 2]})\n"
        "verdict = validate(frame, suite()); assert verdict.partitions == {'b'}, verdict\n"
        "assert [t.name for t in threading.enumerate() if not t.daemon] == ['MainThread'], threading.enumerate()\n"
    )
    environment = os.environ | {
        "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(home), "SOCKET_GUARD_LOG": str(log),
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "tests" / "e2e" / "socket_guard"), str(PROJECT)]), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    environment = {name: value for name, value in environment.items() if name not in ("DO_NOT_TRACK", "GX_ANALYTICS_ENABLED")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Calculating" not in done.stderr
    assert not log.exists() and list(home.rglob("*")) == []
