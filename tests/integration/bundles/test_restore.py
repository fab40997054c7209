"""Restoring: what comes back is what was exported, on another path, without a model, and the next look has nothing to do."""

import shutil
from datetime import UTC, datetime

import pytest

from stemma.audit.audit import audit
from stemma.bundles.errors import BundleLocked, CorpusNotEmpty, UnknownBundle
from stemma.bundles.export import export_corpus
from stemma.bundles.restore import restore_bundle, verify_bundle
from stemma.bundles.shelf import exports_of
from stemma.store.app_settings import set_overrides

DOCUMENTS = """
    SELECT doc_id, source_id, source_path, file_name, file_type, content_hash, title, text, blocks, pages, document_metadata, parser,
           parser_version, chunker, extraction, n_chunks, parsing_fingerprint, chunking_fingerprint, contextualizing_fingerprint,
           document_output_hash, output_hash, run_id, file_created_at, file_modified_at, ingested_at
      FROM documents ORDER BY doc_id
"""
CHUNKS = """
    SELECT chunk_id, doc_id, original_index, content, context, contextualized_content, char_start, char_end, start_line, end_line, page_start,
           section_path, n_tokens, text_hash, input_hash, metadata - 'source', created_at, content_tsv
      FROM chunks ORDER BY original_index
"""
STAGES = "SELECT s.source_path, m.stage, m.input_version, m.fingerprint, m.output_hash FROM stage_state AS m JOIN sources AS s USING (source_id) ORDER BY 1, 2"


def vectors(corpus):
    table = corpus.value("SELECT vector_table FROM embedding_indexes WHERE state = 'active'")
    return corpus.rows(f"SELECT chunk_id, vector_send(embedding) FROM chunks JOIN {table} USING (publication_id, chunk_index) ORDER BY 1")


def rows(corpus):
    return [corpus.rows(query) for query in (DOCUMENTS, CHUNKS, STAGES)] + [vectors(corpus)]


class Forbidden:
    def __call__(self, _spec):
        raise AssertionError("a restore asks no model")


def test_a_corpus_comes_back_on_another_path_bit_by_bit_and_nothing_is_due(filled, elsewhere):
    before = rows(filled)
    name = export_corpus(filled.installation).name
    shutil.copytree(filled.settings.library, elsewhere.settings.library, dirs_exist_ok=True)  # with the times of the files
    elsewhere.installation.embedder_of = Forbidden()
    done = restore_bundle(elsewhere.installation, name, into_empty=True)
    assert (done.n_documents, done.stale, done.missing, done.changed, done.drift) == (3, False, (), (), ())
    assert rows(elsewhere) == before
    library = str(elsewhere.settings.library)
    assert all(
        source.startswith(library)
        for (source,) in elsewhere.rows("SELECT metadata ->> 'source' FROM chunks UNION SELECT source FROM documents")
    )
    assert elsewhere.ingest() == []
    assert audit(elsewhere.installation, deep=True, now=datetime.now(UTC)).to_dicts() == []
    words = sorted({word for (text,) in filled.rows("SELECT text FROM documents") for word in text.split()})
    found = [[[chunk_id for chunk_id, _ in corpus.keyword_hits(word)] for word in words] for corpus in (filled, elsewhere)]
    assert found[0] == found[1] and any(found[0])
    assert elsewhere.keyword_hits("cranes") and elsewhere.value("SELECT count(*) FROM sparse_coverage") == 2
    assert elsewhere.value("SELECT next FROM original_index_counter") > elsewhere.value("SELECT max(original_index) FROM chunks")
    (elsewhere.settings.library / "plans" / "pier.md").rename(elsewhere.settings.library / "pier.md")
    elsewhere.ingest()
    assert elsewhere.value("SELECT source_path FROM documents WHERE text LIKE '%pier%'") == "pier.md"  # by the restored cache


def test_a_restore_over_a_living_corpus_replaces_it_and_runs_under_way_abandon_their_work(filled):
    name = export_corpus(filled.installation).name
    before = rows(filled)
    filled.write("plans/pier.md", "# Pier\n\nClosed.\n")
    filled.write("new.txt", "A text that the bundle does not hold.")
    filled.ingest()
    filled.write("later.txt", "Under way while the bundle is restored.")
    [batch] = filled.look().batches
    run = filled.open(batch.batch_id)
    filled.work(run, publish=False)
    done = restore_bundle(filled.installation, name)
    assert (done.n_superseded, done.changed) == (1, ("plans/pier.md",))
    assert filled.work(run)["corpus"].versions == {}
    assert [filled.rows(DOCUMENTS), filled.rows(CHUNKS), vectors(filled)] == [before[0], before[1], before[3]]
    filled.runs.ended.add(run.run_id)
    filled.ingest()
    assert {path for (path,) in filled.rows("SELECT source_path FROM documents")} == {
        "plans/pier.md",
        "Résumé Å.txt",
        "empty.txt",
        "new.txt",
        "later.txt",
    }
    assert filled.value("SELECT text FROM documents WHERE source_path = 'plans/pier.md'") == "# Pier\n\nClosed.\n"


def test_files_that_are_not_there_leave_their_documents_detached_and_unpruned(filled, elsewhere):
    name = export_corpus(filled.installation).name
    done = restore_bundle(elsewhere.installation, name, shelf=exports_of(filled.settings))
    assert sorted(done.missing) == ["Résumé Å.txt", "empty.txt", "plans/pier.md"]
    for _ in range(3):
        elsewhere.ingest()
    assert elsewhere.rows("SELECT DISTINCT presence FROM sources") == [("detached",)]
    assert elsewhere.value("SELECT count(*) FROM documents") == 3
    assert elsewhere.keyword_hits("cranes")


def test_a_dry_run_and_refusals_change_nothing(filled, tmp_path):
    name = export_corpus(filled.installation, passphrase="four words").name
    before = rows(filled)
    with pytest.raises(BundleLocked):
        restore_bundle(filled.installation, name)
    with pytest.raises(BundleLocked):
        verify_bundle(filled.installation, name, passphrase="other words")
    assert verify_bundle(filled.installation, name, passphrase="four words").n_documents == 3
    with pytest.raises(CorpusNotEmpty):
        restore_bundle(filled.installation, name, passphrase="four words", into_empty=True)
    with pytest.raises(UnknownBundle):
        restore_bundle(filled.installation, "stemma-rag-20200101-0000.zip")
    with filled.installation.pool.connection() as connection:
        set_overrides(connection, filled.settings, {"CHUNK_SIZE": "400"})
    done = restore_bundle(filled.installation, name, passphrase="four words", dry_run=True)
    assert (done.dry_run, done.epoch, done.stale, [(d.name, d.bundle, d.here) for d in done.drift]) == (
        True,
        None,
        True,
        [("CHUNK_SIZE", "800", "400")],
    )
    assert rows(filled) == before
    assert filled.value("SELECT count(*) FROM publications WHERE state = 'pending'") == 0


def test_files_that_were_taken_along_come_back_where_the_library_lacks_them_and_replace_none(filled, elsewhere):
    name = export_corpus(filled.installation, with_files=True).name
    elsewhere.write("plans/pier.md", "# Pier\n\nA text of this library.\n")
    done = restore_bundle(elsewhere.installation, name, shelf=exports_of(filled.settings))
    assert (done.missing, done.changed) == ((), ("plans/pier.md",))
    assert (elsewhere.settings.library / "Résumé Å.txt").read_bytes() == (filled.settings.library / "Résumé Å.txt").read_bytes()
    elsewhere.ingest()
    assert elsewhere.value("SELECT text FROM documents WHERE source_path = 'plans/pier.md'") == "# Pier\n\nA text of this library.\n"


def test_a_document_without_a_file_follows_the_settings_from_its_stored_text_on(filled, elsewhere):
    name = export_corpus(filled.installation).name
    restore_bundle(elsewhere.installation, name, shelf=exports_of(filled.settings))
    text = elsewhere.value("SELECT text FROM documents WHERE source_path = 'plans/pier.md'")
    for corpus in (filled, elsewhere):
        with corpus.installation.pool.connection() as connection:
            set_overrides(connection, corpus.settings, {"CHUNK_SIZE": "40", "CHUNK_OVERLAP": "0"})
        corpus.ingest()
    chunks = (
        "SELECT source_path, chunk_index, content, contextualized_content FROM chunks JOIN documents USING (publication_id) ORDER BY 1, 2"
    )
    assert elsewhere.rows(chunks) == filled.rows(chunks) and len(elsewhere.rows(chunks)) > 3
    assert elsewhere.rows("SELECT DISTINCT presence FROM sources") == [("detached",)]
    assert elsewhere.value("SELECT text FROM documents WHERE source_path = 'plans/pier.md'") == text
    assert elsewhere.ingest() == []


def test_conversations_come_back_only_when_asked_for_and_those_that_are_here_stay(filled, elsewhere):
    source_id, workspace_id = filled.rows("SELECT source_id, workspace_id FROM documents WHERE source_path = 'plans/pier.md'")[0]
    filled.rows_affected("INSERT INTO conversation_groups (group_id, name) VALUES ('g', 'Harbour')")
    filled.rows_affected("INSERT INTO conversations (conversation_id, workspace_id, group_id, title, document_ids) VALUES ('c', %s, 'g', 'Cranes', %s)", [workspace_id, [source_id]])  # fmt: skip
    filled.rows_affected("INSERT INTO messages (message_id, conversation_id, turn_index, role, content) VALUES ('m', 'c', 0, 'user', 'How many?'), ('n', 'c', 1, 'assistant', 'Two.')")  # fmt: skip
    filled.rows_affected(
        "INSERT INTO message_sources (message_id, rank, chunk_id, source_id, trace) VALUES ('n', 1, 'x::0', %s, '{\"a\": 1}')", [source_id]
    )
    plain, whole = (
        export_corpus(filled.installation, with_conversations=wanted, label=f"{wanted}".lower()).name for wanted in (False, True)
    )
    elsewhere.write("plans/pier.md", filled.settings.library.joinpath("plans/pier.md").read_bytes())
    elsewhere.look()  # the catalogue knows the file under an id of its own
    here = elsewhere.value("SELECT source_id FROM sources")
    for name, wanted, n_messages in ((plain, True, 0), (whole, False, 0), (whole, True, 2)):
        restore_bundle(elsewhere.installation, name, shelf=exports_of(filled.settings), with_conversations=wanted)
        assert elsewhere.value("SELECT count(*) FROM messages") == n_messages, name
    assert elsewhere.value("SELECT source_id FROM documents WHERE source_path = 'plans/pier.md'") == here != source_id
    assert elsewhere.rows("SELECT c.document_ids, e.source_id, e.trace FROM conversations AS c JOIN messages USING (conversation_id) JOIN message_sources AS e USING (message_id)") == [([here], here, {"a": 1})]  # fmt: skip
    elsewhere.rows_affected("UPDATE messages SET content = 'Two, blue.' WHERE message_id = 'n'")
    restore_bundle(elsewhere.installation, whole, shelf=exports_of(filled.settings), with_conversations=True)
    assert elsewhere.rows("SELECT content FROM messages ORDER BY turn_index") == [("How many?",), ("Two, blue.",)]
