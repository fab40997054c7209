"""`POST /api/search` over HTTP."""

import json

import pytest

from stemma.retrieval.answer import METHODS

PASSAGE = "Backups are restored on a spare machine every quarter, and the result is signed."
HIT_FIELDS = {
    "chunk_id", "doc_id", "source_id", "publication_id", "source_path", "workspace", "title", "file_type", "content", "context", "char_start",
    "char_end", "start_line", "end_line", "page_start", "page_end", "section_path", "chunk_type", "extraction", "score", "trace", "chunk_ids",
    "n_tokens", "also_at",
}  # fmt: skip
TRACE_FIELDS = {
    "semantic_rank", "semantic_score", "bm25_rank", "bm25_score", "fused_score", "fused_rank", "rerank_score", "rerank_delta", "final_rank",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    corpus.publish("cooking/soup.md", "Onion soup needs patience and butter.", "Serve it with toasted bread.")
    return corpus.publish("ops/backup.md", "How we run the servers.", PASSAGE, page=2)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_passage_with_all_its_fields(client, published, method):
    answer = client.post("/api/search", json={"query": "how often are backups restored", "method": method, "k": 1}).json()
    (hit,) = answer["hits"]
    assert set(answer) == {"query", "method", "searched", "hits", "degraded"}
    assert (set(hit), set(hit["trace"])) == (HIT_FIELDS, TRACE_FIELDS)
    assert (answer["method"], hit["content"], hit["chunk_id"]) == (method, PASSAGE, published.chunk_ids[1])


def test_the_offsets_cut_the_content_out_of_the_text(client):
    for hit in client.post("/api/search", json={"query": "soup bread servers", "k": 10}).json()["hits"]:
        response = client.get(f"/api/documents/{hit['doc_id']}/text")
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
        assert response.text[hit["char_start"] : hit["char_end"]] == hit["content"]


def test_the_method_is_hybrid_unless_the_setting_says_otherwise(client, corpus):
    assert client.post("/api/search", json={"query": "soup"}).json()["method"] == "hybrid"
    corpus.connection.execute("INSERT INTO app_settings (key, value) VALUES ('RETRIEVAL_METHOD', 'bm25')")
    corpus.connection.commit()
    try:
        assert client.post("/api/search", json={"query": "soup"}).json()["method"] == "bm25"
    finally:
        corpus.connection.execute("DELETE FROM app_settings")
        corpus.connection.commit()


@pytest.mark.parametrize(
    ("scope", "paths"),
    [
        (None, {"cooking/soup.md", "ops/backup.md"}),
        ({}, {"cooking/soup.md", "ops/backup.md"}),
        ({"workspaces": None, "folders": ["ops"]}, {"ops/backup.md"}),
        ({"workspaces": ["cooking"], "file_types": ["md"]}, {"cooking/soup.md"}),
        ({"workspaces": []}, set()),
        ({"documents": []}, set()),
        ({"folders": ["\ud800"]}, set()),
        ({"folders": ["/"]}, {"cooking/soup.md", "ops/backup.md"}),
        ({"workspaces": ["absent"]}, set()),
        ({"pages": [{"first": 2, "last": 2}]}, {"ops/backup.md"}),
        ({"pages": [{"first": 10**30, "last": -(10**30)}]}, set()),
        ({"sections": ["Top", "\udfff"], "document_types": ["file"]}, {"cooking/soup.md", "ops/backup.md"}),
        (
            {"ingested_from": "0001-01-01T00:00:00+14:00", "ingested_before": "9999-12-31T23:59:59-14:00"},
            {"cooking/soup.md", "ops/backup.md"},
        ),
        ({"modified_before": "1970-01-01T00:00:00Z"}, set()),
    ],
)
def test_a_null_part_restricts_nothing_and_an_empty_one_matches_nothing(client, scope, paths):
    response = client.post(
        "/api/search", content=json.dumps({"query": "soup backup", "scope": scope}), headers={"content-type": "application/json"}
    )
    assert {hit["source_path"] for hit in response.json()["hits"]} == paths


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"query": ""}, "empty_query"),
        ({"query": " \n"}, "empty_query"),
        ({"query": "\0\ud800"}, "empty_query"),
        ({"query": "x" * 10_001}, "query_too_long"),
        ({"query": "x", "k": 0}, "invalid_k"),
        ({"query": "x", "k": 1_001}, "invalid_k"),
        ({"query": "x", "k": 100_000}, "invalid_k"),
        ({"query": "x", "k": -(10**30)}, "invalid_k"),
        ({"query": "x" * 1_000_000}, "query_too_long"),
        ({"query": "x", "shape": {"diversity": 2}}, "invalid_shape"),
        ({"query": "x", "shape": {"max_tokens": 0}}, "invalid_shape"),
        ({"query": "x", "shape": {"merge": "yes"}}, "invalid_request"),
        ({"query": "x", "scope": {"pages": [3]}}, "invalid_request"),
        ({"query": "x", "scope": {"modified_from": "yesterday"}}, "invalid_request"),
        ({"query": "x", "method": "graph"}, "unknown_method"),
        ({"query": "x", "scope": {"worspaces": ["a"]}}, "invalid_request"),
        ({"query": "x", "kk": 3}, "invalid_request"),
        ({"query": 5}, "invalid_request"),
        ({}, "invalid_request"),
    ],
)
def test_a_refusal_is_a_problem_with_a_stable_code(client, body, code):
    response = client.post("/api/search", content=json.dumps(body), headers={"content-type": "application/json"})
    problem = response.json()
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    assert (problem["code"], problem["status"], problem["type"]) == (code, 422, f"urn:stemma:problem:{code}")
    assert problem["title"] and problem["detail"] and problem["remedy"]
    assert problem["request_id"] == response.headers["x-request-id"]


def test_a_body_that_is_no_json_is_refused(client):
    response = client.post("/api/search", content=b"{", headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_request")


def test_an_invalid_request_names_the_fields(client):
    problem = client.post("/api/search", json={"query": "x", "k": "many", "scope": {"folders": "a"}}).json()
    assert {part["field"] for part in problem["invalid"]} == {"body.k", "body.scope.folders"}


@pytest.mark.parametrize("query", ["the of and", "?!… --", "\U0001f600", "a\0b", "\udc00 soup", "x" * 10_000, "NOT AND OR (", "\u0301"])
def test_a_query_of_nothing_that_counts_is_answered(client, query):
    for method in ("semantic", "bm25", "hybrid"):
        content = json.dumps({"query": query, "method": method, "k": 1000})
        response = client.post("/api/search", content=content, headers={"content-type": "application/json"})
        assert response.status_code == 200
        assert all(hit["trace"] for hit in response.json()["hits"])


def test_passages_are_shaped_as_they_are_asked_for(client):
    shape = {"merge": True, "fold": True, "diversity": 0.5, "max_tokens": 500}
    hits = client.post("/api/search", json={"query": "soup bread", "k": 5, "shape": shape}).json()["hits"]
    merged = next(hit for hit in hits if hit["source_path"] == "cooking/soup.md")
    assert (len(merged["chunk_ids"]), merged["content"]) == (2, "Onion soup needs patience and butter.\n\nServe it with toasted bread.")


@pytest.mark.parametrize("method", ["semantic", "bm25", "hybrid"])
def test_no_query_makes_the_service_fail(client, shared, method):
    for query in (shared / "cases" / "29-query-characters" / "queries.txt").read_text("utf-8").split("\n"):
        response = client.post("/api/search", json={"query": query, "method": method})
        assert response.status_code == 200 or response.json()["code"] in {"empty_query", "query_too_long"}


def test_an_index_whose_model_is_not_at_hand_is_not_searched_by_another(client, corpus):
    corpus.connection.execute("UPDATE corpus_state SET active_embedding_index = NULL")
    corpus.connection.execute("UPDATE embedding_indexes SET state = 'retired'")
    corpus.connection.commit()
    from searchable_corpus import WordCounts

    from stemma.store.embedding_indexes import ensure_embedding_index

    ensure_embedding_index(corpus.connection, WordCounts.spec)
    corpus.connection.commit()
    try:
        response = client.post("/api/search", json={"query": "soup", "method": "semantic"})
        assert (response.status_code, response.json()["code"]) == (409, "embedding_model_not_at_hand")
        assert client.post("/api/search", json={"query": "soup", "method": "bm25"}).status_code == 200
    finally:
        corpus.connection.execute("UPDATE embedding_indexes SET state = 'retired' WHERE state = 'active'")
        corpus.connection.execute("UPDATE embedding_indexes SET state = 'active' WHERE spec_hash = %s", [corpus.embedder.spec.spec_hash])
        corpus.connection.execute(
            "UPDATE corpus_state SET active_embedding_index = (SELECT embedding_index_id FROM embedding_indexes WHERE state = 'active')"
        )
        corpus.connection.commit()
