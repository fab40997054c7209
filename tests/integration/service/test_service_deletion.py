"""Deleting over HTTP: one, many, folders and workspaces; and never more than was named."""

from uuid import uuid4

import pytest
import structlog
from searchable_corpus import WordCounts, open_corpus

from stemma.lexical.errors import LexicalIndexUnavailable
from stemma.stages import models_at_hand


@pytest.fixture(scope="module")
def corpus(module_database_url, tmp_path_factory):
    """A corpus without a model, with its files in the library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(models_at_hand, "open_embedder", lambda *_args, **_options: WordCounts())
        patch.setattr(models_at_hand, "location_of", lambda *_args: "word-counts")
        yield from open_corpus(module_database_url, tmp_path_factory.mktemp("home"))


@pytest.fixture
def publish(corpus):
    """Publishes a document whose file lies in the library as a walk saw it and a run hashed it."""

    def published(path: str, text: str = "some needle text"):
        with corpus.connection.transaction():
            known = corpus.connection.execute("SELECT source_id::text FROM sources WHERE source_path = %s", [path]).fetchone()
        document = corpus.publish(path, text, source_id=known and known[0])
        file = corpus.settings.library / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        stat = file.stat()
        seen = [stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_dev]
        with corpus.connection.transaction():
            corpus.connection.execute(
                "UPDATE sources SET (seen_size, seen_mtime_ns, seen_inode, seen_device, hashed_size, hashed_mtime_ns, hashed_inode, hashed_device)"
                " = (%s, %s, %s, %s, %s, %s, %s, %s), hashed_at = now(), status = 'ready' WHERE source_id = %s",
                [*seen, *seen, document.source_id],
            )
        return document

    return published


def hits(client, query: str) -> list[str]:
    return [hit["source_path"] for hit in client.post("/api/search", json={"query": query, "k": 100}).json()["hits"]]


def listed(client, **parameters) -> set[str]:
    return {row["source_path"] for row in client.get("/api/documents", params={"limit": 1000} | parameters).json()["documents"]}


def named(body, part: str) -> list[str]:
    return [row["source_path"] for row in body[part]]


def test_a_deleted_document_is_found_no_more_and_its_file_stays(client, corpus, publish):
    document = publish("one/kept.txt", "a zebrafish needle")
    response = client.delete(f"/api/documents/{document.doc_id}")
    assert (response.status_code, named(response.json(), "excluded")) == (200, ["one/kept.txt"])
    assert "one/kept.txt" not in hits(client, "zebrafish")
    row = client.get(f"/api/documents/{document.source_id}").json()
    assert (row["excluded"], row["status"], row["doc_id"]) == (True, "cancelled", None)
    assert (corpus.settings.library / "one/kept.txt").exists()
    again = client.delete(f"/api/documents/{document.source_id}")
    assert (again.status_code, again.json()["code"]) == (404, "unknown_document")


def test_the_file_goes_only_if_asked_for_and_only_as_it_was_last_seen(client, corpus, publish):
    gone, edited = publish("two/gone.txt"), publish("three/edited.txt")
    (corpus.settings.library / "three/edited.txt").write_text("an edit that nobody has read")
    assert named(client.delete(f"/api/documents/{gone.source_id}", params={"remove_file": True}).json(), "deleted") == ["two/gone.txt"]
    assert not (corpus.settings.library / "two").exists()
    assert client.get(f"/api/documents/{gone.source_id}").status_code == 404
    assert named(client.delete(f"/api/documents/{edited.source_id}", params={"remove_file": True}).json(), "changed") == [
        "three/edited.txt"
    ]
    assert (corpus.settings.library / "three/edited.txt").exists()


def test_an_older_version_names_the_present_one_and_deletes_nothing(client, corpus):
    old = corpus.publish("versions/a.txt", "first")
    corpus.publish("versions/a.txt", "second", source_id=old.source_id)
    assert client.delete(f"/api/documents/{old.doc_id}").status_code == 410
    assert "versions/a.txt" in listed(client, workspace="versions")


@pytest.mark.parametrize(
    "body",
    [[], None, {}, {"documents": []}, {"documents": None}, {"documents": [""]}, {"documents": [" "]}, {"documents": ["unknown"]},
     {"documents": ["\0"]}, {"documents": "all"}, {"folders": [""]}, {"folders": ["/"]}, {"workspaces": [""]}, {"workspaces": ["*"]},
     {"documents": [str(uuid4())] * 3}, {"everything": True}, {"documents": [], "expected": 4}],
)  # fmt: skip
def test_no_empty_or_unknown_selection_deletes_anything(client, publish, body):
    publish("stays/a.txt")
    before = listed(client)
    response = client.post("/api/documents/delete", json=body)
    assert response.status_code in (200, 409, 422)
    if response.status_code == 200:
        assert [response.json()[part] for part in ("selected", "deleted", "excluded", "changed", "failed", "pending")] == [[]] * 6
    assert listed(client) == before
    assert "stays/a.txt" in hits(client, "some needle text")


def test_many_go_at_once_and_unknown_names_come_back(client, publish):
    documents = [publish(f"many/{n}.txt") for n in range(3)]
    names = [documents[0].doc_id, documents[1].source_id, documents[1].source_id, "unknown", documents[2].source_id]
    body = client.post("/api/documents/delete", json={"documents": names, "remove_file": True, "expected": 3}).json()
    assert named(body, "deleted") == ["many/0.txt", "many/1.txt", "many/2.txt"]
    assert body["not_found"] == ["unknown"]
    assert listed(client, workspace="many") == set()


@pytest.mark.parametrize("part", [{"folders": ["tree/old"]}, {"workspaces": ["tree"]}])
def test_a_folder_or_workspace_goes_only_with_the_number_of_its_documents(client, publish, part):
    publish("tree/old/1.txt")
    publish("tree/old/deep/2.txt")
    dry = client.post("/api/documents/delete", json=part | {"dry_run": True}).json()
    assert (named(dry, "selected"), dry["deleted"]) == (["tree/old/1.txt", "tree/old/deep/2.txt"], [])
    for wrong in ({}, {"expected": 1}):
        refused = client.post("/api/documents/delete", json=part | {"remove_file": True} | wrong)
        assert (refused.status_code, refused.json()["code"], refused.json()["expected"]) == (409, "confirmation_required", 2)
    assert listed(client, workspace="tree") == {"tree/old/1.txt", "tree/old/deep/2.txt"}
    gone = client.post("/api/documents/delete", json=part | {"remove_file": True, "expected": 2}).json()
    assert len(gone["deleted"]) == 2


def test_a_store_that_is_away_is_said_and_the_same_request_ends_it_later(client, publish, monkeypatch):
    document = publish("later/a.txt", "a quokka needle")

    def away(_publications):
        raise LexicalIndexUnavailable("its disk is away")

    with monkeypatch.context() as patched, structlog.testing.capture_logs():
        patched.setattr(client.app.state.service.stores, "remove_sparse", away)
        response = client.delete(f"/api/documents/{document.source_id}")
    assert (response.status_code, response.json()["code"]) == (503, "lexical_unavailable")
    assert "later/a.txt" not in hits(client, "quokka")
    assert client.get(f"/api/documents/{document.source_id}").json()["deletion_intent"] == "keep_file"
    assert named(client.delete(f"/api/documents/{document.source_id}").json(), "excluded") == ["later/a.txt"]


def test_the_folder_tree_counts_what_lies_below(client, publish):
    publish("shelf/1.txt")
    publish("shelf/deep/er/2.txt")
    folders = client.get("/api/folders", params={"workspace": "shelf"}).json()["folders"]
    assert [(row["path"], row["parent"], row["depth"], row["n_documents"], row["n_ready"]) for row in folders] == [
        ("shelf", None, 1, 2, 2), ("shelf/deep", "shelf", 2, 1, 1), ("shelf/deep/er", "shelf/deep", 3, 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("k", [True, "3", 3.0, None])
def test_k_is_a_number_and_nothing_that_passes_for_one(client, k):
    assert client.post("/api/search", json={"query": "needle", "k": k}).status_code == 422


def test_status_carries_what_the_last_look_found(client):
    assert client.get("/api/status").json()["notices"] == []
