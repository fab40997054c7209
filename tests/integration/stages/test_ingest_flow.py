"""From files to what readers see, stage by stage, without Dagster."""

import os

import pytest

from stemma.parsing.document import ParsedDocument

NOTE = "# Tides\n\nThe tide at Brest rises seven metres.\n\n## Neap\n\nNeap tides are weak.\n"


def model_calls(corpus) -> tuple[int, int, int]:
    return corpus.rows(
        "SELECT coalesce(sum(n_parsed), 0)::int, coalesce(sum(n_contexts), 0)::int, coalesce(sum(n_embedded), 0)::int FROM attempts"
    )[0]


def live_paths(corpus) -> list[str]:
    return [path for (path,) in corpus.rows("SELECT source_path FROM documents ORDER BY source_path")]


def test_a_new_file_is_published_whole(corpus):
    corpus.write("sea/tides.md", NOTE)
    corpus.ingest()
    [(status, n_chunks, text)] = corpus.rows("SELECT s.status, d.n_chunks, d.text FROM sources s JOIN documents d USING (source_id)")
    chunks = corpus.rows("SELECT content, char_start, char_end FROM chunks ORDER BY chunk_index")
    assert status == "ready" and n_chunks == len(chunks) > 0
    assert all(text[start:end] == content for content, start, end in chunks)
    assert corpus.value("SELECT count(*) FROM chunk_vectors_1") == n_chunks
    assert len(corpus.keyword_hits("tide")) > 0


def test_a_second_pass_over_an_unchanged_library_launches_nothing(corpus):
    corpus.write("a.md", NOTE)
    corpus.ingest()
    assert corpus.look().batches == ()


def test_an_edit_embeds_only_what_changed_and_leaves_nothing_of_the_old_version(corpus):
    sections = [f"## Part {n}\n\n" + f"Sentence {n} about the harbour of town number {n}. " * 12 for n in range(6)]
    corpus.write("book.md", "\n\n".join(sections))
    corpus.ingest()
    before = model_calls(corpus)[2]
    corpus.write("book.md", "\n\n".join([*sections[:3], "## Part 3\n\nA zeppelin landed here.\n", *sections[4:]]))
    [outcomes] = corpus.ingest()
    assert 1 <= model_calls(corpus)[2] - before <= 2
    assert outcomes["embeddings"].versions["book.md"].metadata["embedded"] == model_calls(corpus)[2] - before
    assert corpus.value("SELECT count(*) FROM documents") == 1
    assert corpus.value("SELECT count(*) FROM chunks WHERE content LIKE '%town number 3%'") == 0
    assert corpus.value("SELECT count(*) FROM chunks WHERE content LIKE '%zeppelin%'") == 1


def test_a_rename_keeps_the_source_and_calls_no_model(corpus):
    corpus.write("old.md", NOTE)
    corpus.ingest()
    before = model_calls(corpus)
    source_id = corpus.value("SELECT source_id FROM sources")
    (corpus.settings.library / "old.md").rename(corpus.settings.library / "new.md")
    corpus.ingest()
    assert model_calls(corpus) == before
    assert corpus.rows("SELECT source_id, source_path FROM documents") == [(source_id, "new.md")]


def test_a_copy_is_a_document_of_its_own_and_calls_no_model(corpus):
    corpus.write("one.md", NOTE)
    corpus.ingest()
    before = model_calls(corpus)
    corpus.write("two/one.md", NOTE)
    corpus.ingest()
    assert model_calls(corpus) == before
    assert live_paths(corpus) == ["one.md", "two/one.md"]


def test_a_revert_calls_no_model(corpus):
    corpus.write("a.md", NOTE)
    corpus.ingest()
    corpus.write("a.md", NOTE.replace("seven", "eight"))
    corpus.ingest()
    before = model_calls(corpus)
    corpus.write("a.md", NOTE)
    corpus.ingest()
    assert model_calls(corpus) == before
    assert corpus.value("SELECT text FROM documents") == NOTE


def test_a_touched_file_is_read_again_and_nothing_else_happens(corpus):
    path = corpus.write("a.md", NOTE)
    corpus.ingest()
    before = corpus.rows("SELECT publication_id, doc_id FROM documents"), model_calls(corpus)
    os.utime(path)
    os.utime(path, ns=(path.stat().st_mtime_ns - 10_000_000_000,) * 2)
    corpus.ingest()
    assert (corpus.rows("SELECT publication_id, doc_id FROM documents"), model_calls(corpus)) == before
    assert corpus.look().batches == ()


def test_a_vanished_file_is_pruned_everywhere(corpus):
    corpus.write("keep.md", NOTE)
    corpus.write("gone.md", "A gazebo stands in the park.")
    corpus.ingest()
    assert corpus.keyword_hits("gazebo")
    (corpus.settings.library / "gone.md").unlink()
    for _ in range(3):
        corpus.ingest()
    assert live_paths(corpus) == ["keep.md"]
    assert corpus.keyword_hits("gazebo") == []
    assert corpus.value("SELECT count(*) FROM sources") == 1


def test_a_broken_file_fails_with_a_code_and_the_others_are_published(corpus):
    corpus.write("good.md", NOTE)
    corpus.write("bad.docx", b"PK\x03\x04 this is no document")
    corpus.ingest()
    assert live_paths(corpus) == ["good.md"]
    [(status, code, message, stage)] = corpus.rows(
        "SELECT status, error_code, error_message, stage FROM sources WHERE source_path = 'bad.docx'"
    )
    assert (status, code, stage) == ("failed", "corrupt", "parsing") and message


def test_a_failed_update_leaves_the_live_version(corpus):
    from stemma.parsing.formats import detect_format

    assert detect_format(b"%PDF-1.4", "pdf") is not None
    corpus.write("a.txt", "The old text stays.")
    corpus.ingest()
    corpus.write("a.txt", b"\x7fELF" + bytes(range(256)) * 40)
    corpus.ingest()
    assert corpus.value("SELECT status FROM sources") == "failed"
    assert corpus.value("SELECT text FROM documents") == "The old text stays."


def test_a_failure_is_not_repeated_until_the_bytes_change(corpus):
    corpus.write("bad.docx", b"PK\x03\x04 this is no document")
    corpus.ingest()
    assert corpus.look().batches == ()
    corpus.write("bad.docx", b"PK\x03\x04 this is still no document")
    assert len(corpus.look().batches) == 1


@pytest.mark.parametrize("content", ["", "\ufeff", "  \n\t\n"])
def test_a_file_without_text_is_ready_with_a_warning_and_replaces_its_old_version(corpus, content):
    corpus.write("a.txt", "Some text.")
    corpus.ingest()
    corpus.write("a.txt", content)
    corpus.ingest()
    assert corpus.rows("SELECT s.status, s.warning_code, d.n_chunks FROM sources s JOIN documents d USING (source_id)") == [
        ("ready", "empty", 0)
    ]
    assert corpus.look().batches == ()


def test_other_chunk_sizes_keep_ids_and_parse_nothing(corpus):
    from stemma.store.app_settings import set_overrides

    corpus.write("a.txt", "A sentence about herons. " * 200)
    corpus.ingest()
    [(doc_id, n_chunks)] = corpus.rows("SELECT doc_id, n_chunks FROM documents")
    parsed = model_calls(corpus)[0]
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNK_SIZE": "300", "CHUNK_OVERLAP": "30"})
    corpus.ingest()
    [(new_doc_id, new_n_chunks)] = corpus.rows("SELECT doc_id, n_chunks FROM documents")
    assert new_doc_id == doc_id and new_n_chunks > n_chunks and model_calls(corpus)[0] == parsed
    assert corpus.value("SELECT count(*) FROM chunks") == new_n_chunks == corpus.value("SELECT count(*) FROM chunk_vectors_1")
    assert corpus.value("SELECT count(DISTINCT original_index) FROM chunks") == new_n_chunks


def test_a_query_setting_makes_nothing_stale(corpus):
    from stemma.store.app_settings import set_overrides

    corpus.write("a.txt", "Text.")
    corpus.ingest()
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"FUSION_K": "10"})
    assert corpus.look().batches == ()


def test_the_chunk_record_agrees_with_the_typed_columns(corpus):
    corpus.write("sea/tides.md", NOTE)
    corpus.ingest()
    columns = ["doc_id", "chunk_id", "original_index", "chunk_index", "content", "context", "contextualized_content", "char_start", "char_end",
               "start_line", "end_line", "page_start", "page_end", "section_path", "chunk_type", "n_tokens", "text_hash"]  # fmt: skip
    for *values, metadata in corpus.rows(f"SELECT {', '.join(columns)}, metadata FROM chunks"):
        assert dict(zip(columns, values, strict=True)) == {column: metadata[column] for column in columns}
        assert metadata["source"] == str(corpus.settings.library / "sea/tides.md")


def test_the_published_document_can_be_read_back(corpus):
    from stemma.store.publications import decompressed

    corpus.write("sea/tides.md", NOTE)
    corpus.ingest()
    [(text, blocks, pages)] = corpus.rows("SELECT text, blocks, pages FROM documents")
    document = ParsedDocument.from_json(ParsedDocument(text, "x", "1").to_json())
    assert document.text == NOTE
    assert [text[b["char_start"] : b["char_end"]] for b in decompressed(blocks) if b["kind"] == "heading"] and decompressed(pages) == []


def test_a_stale_run_that_ends_late_publishes_nothing(corpus):
    corpus.write("a.txt", "First version.")
    [batch] = corpus.look().batches
    slow = corpus.open(batch.batch_id)
    corpus.work(slow, publish=False)
    corpus.runs.ended.add(slow.run_id)  # its process is taken for dead while it still works
    corpus.write("a.txt", "Second version.")
    corpus.look()
    corpus.rows("UPDATE sources SET retry_at = NULL RETURNING 1")
    corpus.ingest()
    from stemma.stages.corpus import publish_documents

    assert publish_documents(slow, slow.sources()).versions == {}
    assert corpus.value("SELECT text FROM documents") == "Second version."


def test_a_run_that_binds_nothing_ends_without_work(corpus):
    corpus.write("a.txt", "Text.")
    [batch] = corpus.look().batches
    first, second = corpus.open(batch.batch_id), corpus.open(batch.batch_id)
    assert first.sources().height == 1 and second.sources().is_empty()
    assert all(not outcome.versions and not outcome.failures for outcome in corpus.work(second).values())


def test_a_dead_run_is_closed_and_its_documents_are_tried_again(corpus):
    corpus.write("a.txt", "Text.")
    [batch] = corpus.look().batches
    dead = corpus.open(batch.batch_id)
    corpus.runs.ended.add(dead.run_id)
    assert corpus.look().batches == ()  # it waits a little
    assert corpus.rows("SELECT a.state, p.state FROM attempts a JOIN publications p USING (publication_id)") == [
        ("interrupted", "abandoned")
    ]
    corpus.rows("UPDATE sources SET retry_at = now() - interval '1 s' RETURNING 1")
    corpus.ingest()
    assert live_paths(corpus) == ["a.txt"]


def test_a_living_run_is_left_alone(corpus, batch_lock):
    corpus.write("a.txt", "Text.")
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    batch_lock.hold(run.run_id)
    corpus.runs.ended.add(run.run_id)
    corpus.look()
    assert corpus.value("SELECT state FROM attempts") == "running"


def test_a_batch_that_never_gets_a_run_is_requested_again_and_then_given_up(corpus):
    corpus.write("a.txt", "Text.")
    for _ in range(3):
        assert len(corpus.look().batches) == 1
        corpus.rows("UPDATE attempts SET requested_at = requested_at - interval '1 hour' RETURNING 1")
    assert corpus.look().batches == ()
    assert corpus.rows("SELECT status, error_code FROM sources") == [("failed", "launch_failed")]


def test_a_lost_lake_object_is_made_again_from_the_bytes(corpus):
    import shutil

    corpus.write("a.txt", "A sentence about herons. " * 50)
    corpus.ingest()
    shutil.rmtree(corpus.settings.home / "lake")
    from stemma.store.app_settings import set_overrides

    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"CHUNK_SIZE": "300", "CHUNK_OVERLAP": "30"})
    corpus.ingest()
    assert corpus.value("SELECT max(char_length(content)) FROM chunks") <= 300


def test_swapped_contents_are_found_under_the_right_names(corpus):
    corpus.write("x.txt", "All about xylophones.")
    corpus.write("y.txt", "All about yurts.")
    corpus.ingest()
    corpus.write("x.txt", "All about yurts.")
    corpus.write("y.txt", "All about xylophones.")
    corpus.ingest()
    assert corpus.rows("SELECT source_path, text FROM documents ORDER BY 1") == [
        ("x.txt", "All about yurts."),
        ("y.txt", "All about xylophones."),
    ]


def test_superseded_entries_leave_the_keyword_index_after_the_retire_time(corpus):
    corpus.write("a.txt", "A pangolin.")
    corpus.ingest()
    corpus.write("a.txt", "An axolotl.")
    corpus.ingest()
    assert corpus.keyword_hits("pangolin")  # a query that began before may still read it
    corpus.rows("UPDATE publications SET superseded_at = superseded_at - interval '10 min' WHERE superseded_at IS NOT NULL RETURNING 1")
    corpus.look()
    assert corpus.keyword_hits("pangolin") == [] and corpus.keyword_hits("axolotl")


def test_other_bytes_with_the_same_text_get_their_own_doc_id(corpus):
    corpus.write("a.txt", "One line.\nAnother.\n")
    corpus.ingest()
    doc_id = corpus.value("SELECT doc_id FROM documents")
    corpus.write("a.txt", b"One line.\r\nAnother.\r\n")
    corpus.ingest()
    assert corpus.value("SELECT doc_id FROM documents") != doc_id
    assert corpus.look().batches == ()


def test_a_chunk_without_a_sound_vector_fails_its_document_alone(corpus):
    from stemma.embedding.models import embedding_spec
    from stemma.embedding.sentence_transformers_embedder import UnsoundVector
    from stemma.stages.embeddings import embed_chunks

    real = corpus.installation.embedder_of

    class RefusesPoison:
        def embed_passages(self, passages):
            if bad := tuple(n for n, passage in enumerate(passages) if "poison" in passage):
                raise UnsoundVector(bad)
            return real(embedding_spec("minilm")).embed_passages(passages)

    corpus.write("bad.txt", "This is poison.")
    corpus.write("good.txt", "This is a good apple.")
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    corpus.work(run, publish=False)
    corpus.rows("DELETE FROM embedding_cache RETURNING 1")
    outcome = embed_chunks(run, run.sources(), wanted=embedding_spec("minilm"), embedder_of=lambda spec: RefusesPoison())
    assert {key: error.code for key, error in outcome.failures.items()} == {"bad.txt": "embedding_missing"}
    assert list(outcome.versions) == ["good.txt"]
