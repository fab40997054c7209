"""`/api/documents`: the list, one document, its text and its chunks."""

import hashlib
import uuid

import pytest

from stemma.store.lake import Lake


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    """Five documents, one of which failed; a.md has an older version."""
    first = corpus.publish("list/a.md", "the first version")
    second = corpus.publish("list/a.md", "the second 𝄞 version", "with two passages", source_id=first.source_id)
    for name in ("b", "c", "d"):
        corpus.publish(f"list/{name}.md", f"passage of {name}")
    with corpus.connection.transaction():
        corpus.connection.execute(
            """
            INSERT INTO sources (workspace_id, source_path, partition_key, disk_path, file_type, status, stage, error_code, error_message)
            SELECT workspace_id, 'list/broken.pdf', 'list/broken.pdf', 'x', 'pdf', 'failed', 'parsing', 'corrupt', 'not a sound PDF'
              FROM workspaces WHERE key = 'list'
            """
        )
    return first, second


def every_document(client, **parameters):
    """Every page, one after the other."""
    documents, cursor = [], None
    while True:
        page = client.get("/api/documents", params=parameters | ({"cursor": cursor} if cursor else {})).json()
        documents += page["documents"]
        if (cursor := page["next_cursor"]) is None:
            return documents


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_pages_add_up_to_every_source_once_failed_ones_too(client, limit):
    paths = [document["source_path"] for document in every_document(client, limit=limit)]
    assert paths == ["list/a.md", "list/b.md", "list/broken.pdf", "list/c.md", "list/d.md"]


def test_a_folder_is_listed_with_all_below_it_and_nothing_beside(client, corpus):
    corpus.publish("listed/b/c.md", "below")
    corpus.publish("listed/bc.md", "beside")
    assert [document["source_path"] for document in every_document(client, folder="/listed/b/")] == ["listed/b/c.md"]
    assert [document["source_path"] for document in every_document(client, folder="listed")] == ["listed/b/c.md", "listed/bc.md"]
    assert every_document(client, folder="liste") == []
    corpus.connection.execute("DELETE FROM sources WHERE source_path LIKE 'listed/%'")
    corpus.connection.commit()


def test_a_failure_is_listed_with_code_and_message(client):
    (failed,) = every_document(client, status="failed")
    assert (failed["source_path"], failed["workspace"], failed["doc_id"], failed["n_chunks"]) == ("list/broken.pdf", "list", None, None)
    assert (failed["status"], failed["stage"], failed["error_code"], failed["error_message"]) == (
        "failed", "parsing", "corrupt", "not a sound PDF",
    )  # fmt: skip


@pytest.mark.parametrize("parameters", [{"limit": 0}, {"limit": 1001}, {"limit": "x"}, {"status": "unheard"}])
def test_parameters_out_of_bounds_are_refused(client, parameters):
    response = client.get("/api/documents", params=parameters)
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


def test_a_document_answers_to_its_source_id_and_to_its_live_doc_id(client, published):
    _, live = published
    by_source, by_version = client.get(f"/api/documents/{live.source_id}").json(), client.get(f"/api/documents/{live.doc_id}").json()
    assert by_source == by_version
    assert (by_source["doc_id"], by_source["n_chunks"], by_source["status"]) == (live.doc_id, 2, "ready")


@pytest.mark.parametrize("part", ["", "/text", "/chunks", "/assets", "/assets/0/picture"])
def test_a_superseded_doc_id_is_gone_and_names_the_present_one(client, published, part):
    old, live = published
    response = client.get(f"/api/documents/{old.doc_id}{part}")
    problem = response.json()
    assert (response.status_code, problem["code"]) == (410, "superseded_document")
    assert (problem["present_doc_id"], problem["source_id"]) == (live.doc_id, live.source_id)


@pytest.mark.parametrize("part", ["", "/text", "/chunks", "/assets", "/assets/0/picture"])
@pytest.mark.parametrize("unknown", ["0" * 16, str(uuid.UUID(int=7)), "nonsense", "%00", "..%2f..%2fetc"])
def test_an_unknown_id_is_not_found(client, unknown, part):
    response = client.get(f"/api/documents/{unknown}{part}")
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
    assert response.json()["code"] in {"unknown_document", "unknown_route"}


@pytest.mark.parametrize("part", ["/text", "/chunks", "/assets", "/assets/0/picture"])
def test_a_document_that_was_never_published_has_no_text(client, part):
    (failed,) = every_document(client, status="failed")
    response = client.get(f"/api/documents/{failed['source_id']}{part}")
    assert (response.status_code, response.json()["code"]) == (404, "document_not_published")
    assert client.get(f"/api/documents/{failed['source_id']}").status_code == 200


def test_a_failed_document_is_retried_and_then_cancelled(client):
    (failed,) = every_document(client, status="failed")
    address = f"/api/documents/{failed['source_id']}"
    refused = client.post(f"{address}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "nothing_to_cancel")
    retried = client.post(f"{address}/retry").json()
    assert (retried["status"], retried["error_code"], retried["failure"]) == ("pending", None, None)
    again = client.post(f"{address}/retry")
    assert (again.status_code, again.json()["code"]) == (409, "nothing_to_retry")
    assert client.post(f"{address}/cancel").json()["status"] == "cancelled"


def test_the_text_is_exact_and_every_chunk_is_cut_out_of_it(client, published):
    _, live = published
    response = client.get(f"/api/documents/{live.source_id}/text")
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert (response.text, response.headers["x-doc-id"]) == ("the second 𝄞 version\n\nwith two passages", live.doc_id)
    answer = client.get(f"/api/documents/{live.source_id}/chunks").json()
    assert (answer["doc_id"], answer["source_id"]) == (live.doc_id, live.source_id)
    assert [chunk["chunk_index"] for chunk in answer["chunks"]] == [0, 1]
    for chunk in answer["chunks"]:
        assert response.text[chunk["char_start"] : chunk["char_end"]] == chunk["content"]
        assert chunk["contextualized_content"].endswith(chunk["content"])


def test_figures_are_listed_with_their_places_and_shown(client, corpus):
    live = corpus.publish("figures/pictured.docx", "before the picture")
    sha256 = hashlib.sha256(b"pixels").hexdigest()
    Lake(corpus.settings.lake_url).keep_picture(sha256, b"pixels")
    with corpus.connection.transaction():
        connection = corpus.connection
        ((content_hash,),) = connection.execute("SELECT content_hash FROM documents WHERE doc_id = %s", [live.doc_id]).fetchall()
        connection.execute(
            "INSERT INTO document_assets (publication_id, asset_index, kind, page, char_start, char_end, caption, picture)"
            " SELECT publication_id, i, 'figure', 2, 18, 18, 'A harbour', 'part:' || i FROM documents, generate_series(0, 1) AS i WHERE doc_id = %s",
            [live.doc_id],
        )
        connection.execute(
            "INSERT INTO figures (content_hash, picture, revision, sha256, mime_type, width, height, made_at)"
            " VALUES (%s, 'part:1', 1, %s, 'image/png', 3, 2, now())",
            [content_hash, sha256],
        )
    answer = client.get(f"/api/documents/{live.source_id}/assets").json()
    assert answer["doc_id"] == live.doc_id
    assert [asset["sha256"] for asset in answer["assets"]] == [None, sha256]
    shown = {"kind": "figure", "page": 2, "char_start": 18, "char_end": 18, "caption": "A harbour", "width": 3, "height": 2}
    assert answer["assets"][1].items() >= shown.items()
    response = client.get(f"/api/documents/{live.source_id}/assets/1/picture")
    assert (response.content, response.headers["content-type"], response.headers["etag"]) == (b"pixels", "image/png", f'"{sha256}"')
    for missing in (0, 2):
        response = client.get(f"/api/documents/{live.source_id}/assets/{missing}/picture")
        assert (response.status_code, response.json()["code"]) == (404, "no_picture")
    Lake(corpus.settings.lake_url).remove_picture(sha256)
    assert client.get(f"/api/documents/{live.source_id}/assets/1/picture").status_code == 404
