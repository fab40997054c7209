"""Bundles of the older system: the cases that were made strictly from its description, listed, proved and restored over a living corpus."""

import csv
import io
import json
import shutil
import zipfile
from hashlib import sha256

import numpy as np
import pytest
from small_models import random_model

from stemma.bundles.errors import BundleIncompatible, BundleInvalid
from stemma.bundles.listing import list_bundles
from stemma.bundles.restore import restore_bundle, verify_bundle
from stemma.bundles.shelf import exports_of
from stemma.bundles.stack import stack_of
from stemma.settings import load_settings
from stemma.stages.installation import Installation

CHEAP = {
    "slip_dotdot": "bundle_invalid", "slip_absolute": "bundle_invalid", "slip_backslash": "bundle_invalid", "size_mismatch": "bundle_invalid",
    "embeddings_short_one_row": "bundle_invalid", "missing_chunks": "bundle_invalid", "extra_member": "bundle_invalid",
    "model_mismatch": "bundle_incompatible", "version_2": "bundle_incompatible", "wrong_corpus": "bundle_incompatible",
    "truncated": "bundle_invalid", "garbage": "bundle_invalid",
}  # fmt: skip
"""What the directory and the manifest alone show; of `dim_mismatch` either verdict is right."""

DEEP = (
    "relative_path_traversal", "relative_path_absolute", "sha_mismatch", "embeddings_nan", "chunk_without_document", "duplicate_chunk_id",
    "not_json_line",
)  # fmt: skip
ACCEPTED = ("good", "drifted_settings", "stale_flag")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    """A model of the name and width that the cases state."""
    return random_model(tmp_path_factory.mktemp("models") / "multilingual-e5-large-instruct", dimension=1024)


@pytest.fixture
def stack(corpus, model, shared):
    """A corpus whose settings name that model, with the cases among its bundles."""
    corpus.installation.close()
    settings = load_settings(**corpus.settings.model_dump() | {"embedding_model": model})
    corpus.settings, corpus.installation = settings, Installation(settings)
    folder = settings.library / "stemma-exports"
    folder.mkdir()
    for file in (shared / "cases" / "41-hostile-or-damaged-bundle").glob("*.zip"):
        shutil.copy(file, folder)
    yield corpus
    corpus.installation.close()


def what_is_published(corpus):
    return [
        corpus.rows("SELECT doc_id, source_path, source, text, ingested_at FROM documents ORDER BY doc_id"),
        corpus.rows("SELECT chunk_id, content, metadata FROM chunks ORDER BY chunk_id"),
        corpus.value("SELECT epoch FROM corpus_state"),
        corpus.rows("SELECT source_path, status, presence FROM sources ORDER BY source_path"),
        corpus.keyword_hits("pier"),
    ]


def test_every_case_ends_as_expected_and_leaves_the_corpus_as_it_was(stack, shared):
    here, shelf = stack.installation, exports_of(stack.settings)
    expected = {
        row["file"].removesuffix(".zip") for row in csv.DictReader((shared / "cases/41-hostile-or-damaged-bundle/expected.csv").open())
    }
    assert expected == {*CHEAP, *DEEP, *ACCEPTED, "dim_mismatch"}
    listed = {bundle.name.removesuffix(".zip"): bundle for bundle in list_bundles(shelf, stack_of(here))}
    assert {name: bundle.verdict for name, bundle in listed.items() if name in CHEAP} == CHEAP
    assert {listed[name].verdict for name in (*DEEP, *ACCEPTED)} == {"ok"}
    assert all(bundle.reason and bundle.field for name, bundle in listed.items() if bundle.verdict != "ok")
    assert listed["drifted_settings"].drift != listed["good"].drift
    done = restore_bundle(here, "good.zip")
    assert (done.n_documents, done.n_chunks, done.stale) == (2, 5, True)
    before = what_is_published(stack)
    assert before[0][1][1] == "Résumé Å.txt" and before[0][0][2] == str(stack.settings.library / "plans/pier.txt") and before[4]
    beside = sorted(path.relative_to(stack.settings.library.parent) for path in stack.settings.library.parent.rglob("*"))
    for name in (*CHEAP, *DEEP, "dim_mismatch"):
        for depth in (verify_bundle, restore_bundle):
            with pytest.raises((BundleInvalid, BundleIncompatible)) as refused:
                depth(here, f"{name}.zip")
            assert refused.value.code == CHEAP.get(name, refused.value.code), name
    assert what_is_published(stack) == before
    assert sorted(path.relative_to(stack.settings.library.parent) for path in stack.settings.library.parent.rglob("*")) == beside
    assert restore_bundle(here, "stale_flag.zip").stale


def test_ids_clocks_vectors_and_records_come_back_and_offsets_are_exact(stack, shared):
    restore_bundle(stack.installation, "good.zip")
    with zipfile.ZipFile(shared / "cases/41-hostile-or-damaged-bundle/good.zip") as archive:
        chunks = [json.loads(line) for line in archive.read("chunks.jsonl").splitlines()]
        matrix = np.frombuffer(archive.read("embeddings.f32"), dtype="<f4").reshape(-1, 1024)
    table = stack.value("SELECT vector_table FROM embedding_indexes WHERE state = 'active'")
    found = stack.rows(
        f"SELECT chunk_id, original_index, content, context, created_at, embedding, metadata ->> 'source', substr(text, char_start + 1, char_end - char_start) "
        f"FROM chunks JOIN documents USING (publication_id) JOIN {table} AS v USING (publication_id, chunk_index) ORDER BY original_index"
    )
    assert [(row[0], row[1], row[2], row[3], row[4].isoformat()) for row in found] == [
        (chunk["chunk_id"], chunk["original_index"], chunk["content"], chunk["context"], chunk["created_at"]) for chunk in chunks
    ]
    assert np.array_equal(np.array([row[5].to_numpy() for row in found]), matrix)
    assert all(row[2] == row[7] and row[6].startswith(str(stack.settings.library)) for row in found)


def test_what_the_older_system_could_leave_behind_is_taken_over(stack):
    """A document from outside, one without chunks, two versions of one path, a number that two documents have, a hidden neighbour."""
    content_hash = sha256(b"x").hexdigest()

    def document(path, source, n_chunks, day=1, content_hash=content_hash):
        name = path if path is not None else source
        doc_id = sha256(f"{name}:{content_hash}".encode()).hexdigest()[:16]
        return {"doc_id": doc_id, "source": source, "file_type": "txt", "content_hash": content_hash, "n_chunks": n_chunks,
                "ingested_at": f"2024-06-0{day}T10:00:00+00:00", "relative_path": path}  # fmt: skip

    def chunk(of, index, number):
        text = f"Chunk {index} of {of['source']} of {of['ingested_at']}"
        return {"chunk_id": f"{of['doc_id']}::{index}", "doc_id": of["doc_id"], "original_index": number, "chunk_index": index, "content": text,
                "context": None, "contextualized_content": text, "metadata": {"heading_path": "A > B", "page": 2}, "created_at": of["ingested_at"]}  # fmt: skip

    outside, empty = document(None, "/old/outside.txt", 1), document("empty.txt", "/old/docs/empty.txt", 0)
    old, new = (
        document("plan.txt", "/old/docs/plan.txt", 1),
        document("plan.txt", "/old/docs/plan.txt", 2, day=2, content_hash=sha256(b"y").hexdigest()),
    )
    twin = document("twin.txt", "/old/docs/twin.txt", 1)
    chunks = [chunk(outside, 0, 0), chunk(old, 0, 1), chunk(new, 0, 2), chunk(twin, 0, 2), chunk(new, 1, 3)]
    matrix = np.random.default_rng(1).normal(size=(5, 1024)).astype("<f4")
    data = {
        "documents.jsonl": "\n".join(map(json.dumps, (outside, empty, old, new, twin))).encode(),
        "chunks.jsonl": "\n".join(map(json.dumps, chunks)).encode() + b"\n", "embeddings.f32": matrix.tobytes(),
    }  # fmt: skip
    members = [{"name": name, "size_bytes": len(content), "sha256": sha256(content).hexdigest()} for name, content in data.items()]
    manifest = {"format": "varagity-backup", "version": 1, "corpus": "rag", "created_at": "2024-06-03T10:05:00+00:00", "embedding_dim": 1024,
                "embedding_model": "infloat/multilingual-e5-large-instruct", "stale": False, "counts": {"documents": 5, "chunks": 5},
                "ingest_settings": {"CONTEXTUALIZE": "false"}, "engine": None, "members": members}  # fmt: skip
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in (data | {"bundle.json": json.dumps(manifest).encode()}).items():
            archive.writestr(name, content)
    folder = stack.settings.library / "stemma-exports"
    (folder / "varagity-rag-20240603-1005-2.zip").write_bytes(target.getvalue())
    (folder / ".varagity-rag-20240603-1005.zip.partial").write_bytes(b"half")
    done = restore_bundle(stack.installation, "varagity-rag-20240603-1005-2.zip")
    assert (done.n_documents, done.n_chunks) == (4, 4)
    published = dict(stack.rows("SELECT source_path, text FROM documents"))
    assert set(published) == {"/old/outside.txt", "empty.txt", "plan.txt", "twin.txt"}
    assert (
        published["plan.txt"]
        == "Chunk 0 of /old/docs/plan.txt of 2024-06-02T10:00:00+00:00\n\nChunk 1 of /old/docs/plan.txt of 2024-06-02T10:00:00+00:00"
    )
    assert stack.value("SELECT source FROM documents WHERE source_path = '/old/outside.txt'") == "/old/outside.txt"
    table = stack.value("SELECT vector_table FROM embedding_indexes WHERE state = 'active'")
    (vector,) = [
        row
        for (row,) in stack.rows(
            f"SELECT embedding FROM {table} JOIN chunks USING (publication_id, chunk_index) WHERE doc_id = %s", [twin["doc_id"]]
        )
    ]
    assert np.array_equal(vector.to_numpy(), matrix[3])
    assert ("CONTEXTUALIZER", "none", "structural") in [(d.name, d.bundle, d.here) for d in done.drift]
