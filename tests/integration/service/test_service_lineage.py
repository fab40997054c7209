"""`/api/chunks/{chunk_id}/lineage`: the same line as `stemma trace`, with addresses."""

import hashlib

import pytest


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    """A document with an older version, and its file in the library."""
    first = corpus.publish("line/a.md", "the first version")
    second = corpus.publish("line/a.md", "the second 𝄞 version", "with two passages", source_id=first.source_id)
    corpus.settings.library.joinpath("line").mkdir(parents=True)
    corpus.settings.library.joinpath("line/a.md").write_text("the second 𝄞 version\n\nwith two passages")
    return first, second


def test_a_chunk_leads_to_its_file_and_its_links(client, published):
    _, live = published
    body = client.get(f"/api/chunks/{live.chunk_ids[1]}/lineage").json()
    assert (body["chunk"]["content"], body["chunk"]["is_exact"]) == ("with two passages", True)
    assert body["file"] == {
        "source_path": "line/a.md",
        "content_hash": hashlib.sha256("the second 𝄞 version\n\nwith two passages".encode()).hexdigest(),
        "content_hash_on_disk": hashlib.sha256("the second 𝄞 version\n\nwith two passages".encode()).hexdigest(),
        "on_disk": "same",
        "container_path": None,
    }
    start, end = body["chunk"]["char_start"], body["chunk"]["char_end"]
    assert body["links"] == {
        "run": "http://127.0.0.1:3000/runs/test",
        "partition": "http://127.0.0.1:3000/assets/corpus?view=partitions&partition=line%2Fa.md",
        "page": f"http://127.0.0.1:8765/#/document/{live.doc_id}?from={start}&to={end}",
    }
    assert [stage["stage"] for stage in body["recipe"]] == ["parsing", "chunking", "contextualizing", "embedding", "bm25"]


def test_a_document_has_a_lineage_without_a_chunk(client, published):
    _, live = published
    by_version, by_source = (client.get(f"/api/documents/{name}/lineage").json() for name in (live.doc_id, live.source_id))
    assert by_version == by_source and by_version["chunk"] is None


def test_a_chunk_of_an_older_version_is_gone_and_names_the_present_one(client, published):
    old, live = published
    response = client.get(f"/api/chunks/{old.chunk_ids[0]}/lineage")
    assert (response.status_code, response.json()["code"]) == (410, "superseded_document")
    assert response.json()["present_doc_id"] == live.doc_id


@pytest.mark.parametrize(
    ("chunk_id", "code"),
    [("0000000000000000::0", "unknown_document"), ("{live}::2", "unknown_chunk"), ("{live}::x", "unknown_chunk"), ("{live}", "unknown_chunk"),
     ("%00::0", "unknown_document"), ("nonsense", "unknown_document")],
)  # fmt: skip
def test_an_unknown_chunk_is_not_found(client, published, chunk_id, code):
    response = client.get(f"/api/chunks/{chunk_id.format(live=published[1].doc_id)}/lineage")
    assert (response.status_code, response.json()["code"]) == (404, code)
    assert response.headers["content-type"] == "application/problem+json"
