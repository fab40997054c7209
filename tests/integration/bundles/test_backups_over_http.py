"""`/api/backups`: export, proof and restore over HTTP, begun at once and followed by asking."""

import time

import pytest
from starlette.testclient import TestClient

from stemma.service.app import create_app


@pytest.fixture
def client(filled):
    with TestClient(create_app(filled.settings), base_url="http://127.0.0.1:8765") as started:
        yield started


def ended(client) -> dict:
    deadline = time.monotonic() + 60
    while (work := client.get("/api/backups/rag").json()["work"])["state"] == "running":
        assert time.monotonic() < deadline
    return work


def test_a_bundle_is_made_proved_and_restored_and_what_is_none_is_refused(client):
    assert client.post("/api/backups/rag", json={"label": "first"}).status_code == 202
    made = ended(client)
    assert (made["state"], made["result"]["n_documents"]) == ("done", 3), made
    name = made["result"]["name"]
    [listed] = client.get("/api/backups/rag").json()["bundles"]
    assert (listed["name"], listed["verdict"], listed["documents"]) == (name, "ok", 3)
    assert client.post(f"/api/backups/rag/{name}/verify").status_code == 202
    assert ended(client)["result"]["n_documents"] == 3
    refused = client.post(f"/api/backups/rag/{name}/restore", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "restore_unconfirmed")
    assert client.post(f"/api/backups/rag/{name}/restore", json={"replace": True}).status_code == 202
    restored = ended(client)
    assert restored["state"] == "done" and restored["result"]["epoch"] > 1, restored
    hits = client.post("/api/search", json={"query": "cranes", "method": "bm25"}).json()["hits"]
    assert len(hits) == 1 and "Two cranes" in hits[0]["content"]
    client.post("/api/backups/rag/stemma-rag-20200101-0000.zip/restore", json={"replace": True})
    assert (ended(client)["state"], ended(client)["code"]) == ("failed", "unknown_bundle")
    assert client.post("/api/backups/graph", json={}).json()["code"] == "invalid_request"
