"""Exporting: one snapshot, whole or not at all, and nothing when nothing is new."""

import json
import zipfile

import numpy as np
import pytest

from stemma.bundles.archive import Archive
from stemma.bundles.errors import BundlesBusy, CorpusIncomplete, InvalidBundleName
from stemma.bundles.export import export_corpus
from stemma.bundles.listing import list_bundles
from stemma.bundles.shelf import Shelf, exports_of
from stemma.bundles.stack import stack_of


def test_a_bundle_holds_rows_text_and_the_very_bits_of_the_vectors(filled):
    exported = export_corpus(filled.installation)
    assert (exported.new, exported.n_documents) == (True, 3)
    table = filled.value("SELECT vector_table FROM embedding_indexes WHERE state = 'active'")
    rows = filled.rows(
        f"SELECT c.content, v.embedding::text FROM chunks AS c JOIN {table} AS v USING (publication_id, chunk_index) ORDER BY original_index"
    )
    with exports_of(filled.settings).open(exported.name) as file:
        archive = Archive(file)
        chunks = [json.loads(line) for line in archive.lines("chunks.jsonl")]
        matrix = np.frombuffer(b"".join(archive.rows("embeddings.f32", 384 * 4)), dtype="<f4").reshape(-1, 384)
        documents = [json.loads(line) for line in archive.lines("documents.jsonl")]
    assert [chunk["content"] for chunk in chunks] == [content for content, _ in rows]
    assert np.array_equal(matrix, np.array([json.loads(text) for _, text in rows], dtype=np.float32))
    text_of = {document["doc_id"]: document["text"] for document in documents}
    assert all(text_of[chunk["doc_id"]][chunk["char_start"] : chunk["char_end"]] == chunk["content"] for chunk in chunks)
    assert all(isinstance(document["blocks"], list) for document in documents)


def test_an_unchanged_corpus_makes_no_new_bundle_and_an_edit_makes_one(filled):
    first = export_corpus(filled.installation)
    again = export_corpus(filled.installation)
    assert (again.new, again.name) == (False, first.name)
    filled.write("plans/pier.md", "# Pier\n\nThe north pier is closed.\n")
    filled.ingest()
    third = export_corpus(filled.installation)
    assert third.new and third.name != first.name
    assert {bundle.name: bundle.verdict for bundle in list_bundles(exports_of(filled.settings), stack_of(filled.installation))} == {
        first.name: "ok", third.name: "ok",
    }  # fmt: skip


def test_the_exports_are_no_documents_and_what_a_killed_export_left_is_swept(filled):
    folder = filled.settings.library / "stemma-exports"
    export_corpus(filled.installation)
    (folder / ".stemma-rag-20200101-0000.zip.partial").write_bytes(b"half")
    export_corpus(filled.installation, force=True)
    assert sorted(path.suffix for path in folder.iterdir()) == [".zip", ".zip"]
    filled.look()
    assert filled.value("SELECT count(*) FROM sources") == 3


def test_nothing_is_left_of_an_export_that_is_cancelled(filled):
    def cancel(_done, _whole):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_corpus(filled.installation, progress=cancel)
    assert list((filled.settings.library / "stemma-exports").iterdir()) == []


def test_a_chunk_without_its_vector_refuses_the_export(filled):
    table = filled.value("SELECT vector_table FROM embedding_indexes WHERE state = 'active'")
    filled.rows_affected(f"DELETE FROM {table} WHERE chunk_index = 0")
    with pytest.raises(CorpusIncomplete):
        export_corpus(filled.installation)
    assert list_bundles(exports_of(filled.settings)) == []


def test_one_export_at_a_time_writes_to_a_place_and_labels_are_file_names(filled):
    shelf = exports_of(filled.settings)
    with shelf.writing(), pytest.raises(BundlesBusy):
        export_corpus(filled.installation)
    with pytest.raises(InvalidBundleName):
        export_corpus(filled.installation, label="../../etc")


def test_a_bundle_can_go_to_a_bucket_and_be_encrypted(filled):
    bucket = Shelf("memory://backups/here")
    plain = export_corpus(filled.installation, shelf=bucket)
    locked = export_corpus(filled.installation, shelf=bucket, passphrase="four words are enough")
    listed = {bundle.name: bundle for bundle in list_bundles(bucket)}
    assert (listed[plain.name].verdict, listed[locked.name].verdict) == ("ok", "bundle_locked")
    assert not export_corpus(filled.installation, shelf=bucket, passphrase="four words are enough").new
    with bucket.open(locked.name) as file, zipfile.ZipFile(file) as archive:
        assert b"north pier" not in archive.read("bundle.age")
