"""`/api/stale` and `/api/ingest`."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    """Two documents that are published, as if by another recipe: this corpus knows no stage states."""
    corpus.publish("handbook/leave.md", "twenty days of leave")
    corpus.publish("archive/old.md", "an old note")


def test_what_is_stale_is_counted_and_listed_page_by_page(client):
    first = client.get("/api/stale", params={"limit": 1}).json()
    assert first["stale"] == 2
    assert [document["source_path"] for document in first["documents"]] == ["archive/old.md"]
    second = client.get("/api/stale", params={"limit": 1, "cursor": first["next_cursor"]}).json()
    assert [document["source_path"] for document in second["documents"]] == ["handbook/leave.md"]
    assert first["layers"][0]["asset"] == "documents"
    assert first["layers"][0]["sentence"].startswith("2 of 2 stale: ")


def test_a_workspace_and_a_stage_restrict_what_is_listed(client):
    assert client.get("/api/stale", params={"workspace": "handbook"}).json()["stale"] == 1
    assert client.get("/api/stale", params={"stage": "bm25_index"}).json()["stale"] == 0
    assert client.get("/api/stale", params={"stage": "nothing"}).status_code == 422


def test_a_reingest_is_accepted_and_wished_for(client, corpus):
    answer = client.post("/api/ingest", json={"paths": ["handbook"], "reingest": True})
    assert (answer.status_code, answer.json()["documents"]) == (202, 1)
    wished = corpus.connection.execute("SELECT source_path, wanted_stage FROM sources WHERE wanted_stage IS NOT NULL").fetchall()
    assert wished == [("handbook/leave.md", "documents")]


@pytest.mark.parametrize("body", [{"reingest": "sometimes"}, {"folder": "x"}, {"stage": "x"}])
def test_a_body_that_is_none_is_refused(client, body):
    assert client.post("/api/ingest", json=body).json()["code"] == "invalid_request"


def test_an_unknown_maker_is_refused_by_name(client):
    answer = client.post("/api/ingest", json={"made_by": {"author": "x"}})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_restriction")
