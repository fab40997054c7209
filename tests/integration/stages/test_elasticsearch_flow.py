"""A corpus whose keyword index lies on a server: the same flows, and what they do while the server refuses, is away, or has lost it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from elasticsearch_under_test import RunningServer
from ingested_corpus import Corpus

from stemma.audit.audit import audit
from stemma.audit.repair import repair
from stemma.lexical import elasticsearch_bulk
from stemma.lexical.elasticsearch_server import connect
from stemma.lexical.errors import LexicalIndexUnavailable
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.search import SearchRequest, search_by_active_model
from stemma.settings import Settings, load_settings
from stemma.stages.installation import Installation
from stemma.stages.keyword_rebuild import rebuild_keyword_index, tend_keyword_index
from stemma.store.sparse_indexes import SparseIndex, active_sparse_index


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningServer]:
    with RunningServer(tmp_path / "server") as running:
        yield running


@pytest.fixture
def library(database_url: str, tmp_path: Path, server: RunningServer) -> Iterator[Corpus]:
    """Three documents, published; their keyword entries lie on the server."""
    (tmp_path / "library").mkdir()
    settings = settings_of(database_url, tmp_path, server.url)
    installation = Installation(settings)
    corpus = Corpus(settings, installation)
    corpus.write("sea/tides.md", "# Tides\n\nThe lighthouse keeper writes down every tide.")
    corpus.write("sea/waves.txt", "Wind makes waves near the lighthouse.")
    corpus.write("library.txt", "北京大学的图书馆每天开放。")
    corpus.ingest()
    yield corpus
    installation.close()


def settings_of(database_url: str, folder: Path, url: str | None) -> Settings:
    return load_settings(
        home=folder / "home",
        library=folder / "library",
        postgres_url=database_url,
        elasticsearch_url=url,
        prune_grace_s=0,
        retire_after_s=31,
        retry_backoff_s=0,
    )


def found(corpus: Corpus, query: str) -> tuple[set[str], bool]:
    """Paths found by the keyword arm, and whether the answer says that it is less than it should be."""
    here, opened = corpus.installation, OpenKeywordIndexes(corpus.settings)
    answer = search_by_active_model(
        SearchRequest(query, method="bm25"), pool=here.pool, lexical=opened, embedder_of=here.embedder_of, settings=here.settings()
    )
    opened.close()
    return {hit.source_path for hit in answer.hits}, bool(answer.degraded)


def active(corpus: Corpus) -> SparseIndex:
    with corpus.installation.pool.connection() as connection:
        index = active_sparse_index(connection)
    assert index is not None
    return index


def violations(corpus: Corpus) -> list[tuple[object, ...]]:
    return audit(corpus.installation, now=datetime.now(UTC)).rows()


def entries_held(corpus: Corpus) -> dict[int, int]:
    return corpus.installation.index_of(active(corpus)).publications()


def test_documents_come_change_and_leave_and_the_audit_finds_nothing(library: Corpus):
    assert active(library).backend == "elasticsearch"
    assert found(library, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, False)
    assert found(library, "北京大学") == ({"library.txt"}, False)
    library.write("sea/waves.txt", "Ships make wakes.")
    library.ingest()
    assert found(library, "lighthouse") == ({"sea/tides.md"}, False)
    assert found(library, "ship") == ({"sea/waves.txt"}, False)
    assert violations(library) == []

    library.rows_affected("UPDATE publications SET superseded_at = now() - interval '1 hour' WHERE state = 'superseded'")
    (library.settings.library / "sea/waves.txt").unlink()
    for _ in range(3):
        library.look()
    assert found(library, "ship") == (set(), False)
    live = {row[0]: row[1] for row in library.rows("SELECT publication_id, n_chunks FROM documents")}
    assert entries_held(library) == live
    assert violations(library) == []


def test_an_index_that_the_server_has_lost_is_made_again_and_a_rebuild_moves_the_alias(library: Corpus, server: RunningServer):
    client, alias = connect(library.settings), library.settings.elasticsearch_alias
    lost = active(library)
    tend_keyword_index(library.installation, budget_s=60)
    assert set(client.indices.get_alias(name=alias)) == {lost.name}

    client.indices.delete(index=lost.name)
    assert found(library, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, True)
    said = tend_keyword_index(library.installation, budget_s=60)
    assert said[0].startswith("the keyword index was lost")
    assert found(library, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, False)

    publication_id = library.value("SELECT publication_id FROM documents WHERE source_path = 'sea/tides.md'")
    library.installation.remove_sparse([publication_id])
    broken = audit(library.installation, now=datetime.now(UTC))
    assert broken["check"].to_list() == ["keyword_entries_missing"]
    repair(library.installation, broken, now=datetime.now(UTC))
    assert violations(library) == []

    before = active(library)
    rebuild_keyword_index(library.installation)
    assert active(library).name != before.name and set(client.indices.get_alias(name=alias)) == {active(library).name}
    library.rows_affected("UPDATE sparse_indexes SET retired_at = now() - interval '1 hour' WHERE state = 'retired'")
    tend_keyword_index(library.installation, budget_s=60)
    assert list(client.indices.get(index="stemma_bm25_*")) == [active(library).name]
    assert violations(library) == []


def test_an_index_closed_to_writes_while_its_server_is_healthy_keeps_the_live_version_until_it_opens(
    library: Corpus, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(elasticsearch_bulk, "FIRST_WAIT_S", 0.0)
    client, index = connect(library.settings), active(library).name
    client.indices.put_settings(index=index, settings={"index.blocks.read_only_allow_delete": True})
    library.write("sea/waves.txt", "Ships make wakes.")
    (batch,) = library.look().batches
    run = library.open(batch.batch_id)
    with pytest.raises(LexicalIndexUnavailable) as refused:
        library.work(run)
    assert refused.value.retryable and "read-only-allow-delete" in str(refused.value)
    assert found(library, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, False)

    client.indices.put_settings(index=index, settings={"index.blocks.read_only_allow_delete": None})
    library.runs.endings[run.run_id] = "unavailable"  # as the instance tells of a step that ended with this error
    library.ingest()
    assert found(library, "ship") == ({"sea/waves.txt"}, False)
    assert found(library, "lighthouse") == ({"sea/tides.md"}, False)
    assert violations(library) == []


def test_full_text_search_answers_while_the_server_is_away_and_ingestion_waits(library: Corpus, server: RunningServer):
    server.stop()
    assert found(library, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, True)
    library.write("new.md", "A lighthouse of glass.")
    (batch,) = library.look().batches
    with pytest.raises(LexicalIndexUnavailable, match="Connection refused"):
        library.work(library.open(batch.batch_id))
    server.start()
    assert found(library, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, False)


def test_the_index_moves_to_the_server_and_back_by_the_settings_alone(library: Corpus, database_url: str, tmp_path: Path):
    """Back, the server is not asked any more, so its index counts as lost; searches never go without an answer."""
    installation = Installation(settings_of(database_url, tmp_path, None))
    embedded = Corpus(installation.base, installation)
    assert found(embedded, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, True)
    tend_keyword_index(installation, budget_s=60)
    assert active(embedded).backend == "tantivy"
    assert found(embedded, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, False)
    installation.close()

    rebuild_keyword_index(library.installation)
    assert active(library).backend == "elasticsearch"
    assert found(library, "lighthouse") == ({"sea/tides.md", "sea/waves.txt"}, False)
