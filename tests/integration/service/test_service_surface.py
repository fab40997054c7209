"""What surrounds the answers: health, status, the page, its headers, the description of the API."""

import re
from urllib.parse import urlsplit

import pytest

from stemma.service.routes_page import PAGE

TEXT_FILES = sorted(path for path in PAGE.iterdir() if path.suffix in {".html", ".js", ".css", ".svg"})


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    return corpus.publish("handbook/a.md", "one passage")


def test_it_is_ready_once_the_model_is_loaded(client):
    client.post("/api/search", json={"query": "wait for the model"})
    deadline = 200
    while client.get("/api/health/ready").status_code != 200 and deadline:
        deadline -= 1
        client.post("/api/search", json={"query": "wait for the model"})
    assert client.get("/api/health").json() == {"live": True, "ready": True, "reason": None}
    assert client.get("/api/health/ready").status_code == 200


def test_the_status_counts_and_names_what_is_active(client, corpus):
    status = client.get("/api/status").json()
    assert status["documents"] == {"total": 1, "by_status": {"ready": 1}, "by_stage": {}}
    assert status["workspaces"] == [{"key": "handbook", "name": "handbook", "n_documents": 1}]
    assert status["indexes"]["embedding"]["model"] == "minilm"
    assert status["indexes"]["sparse"]["name"] == corpus.sparse_index.name
    assert status["indexes"]["embedding"]["n_covered"] == status["indexes"]["embedding"]["n_chunks"]
    assert status["indexes"]["building_embedding"] == status["indexes"]["building_sparse"] == []
    assert status["links"]["dagster"] == "http://127.0.0.1:3000"
    assert status["scan"] is None


@pytest.mark.parametrize("path", ["/", "/docs", *(f"/page/{file.name}" for file in TEXT_FILES)])
def test_every_file_of_the_page_is_served_under_a_strict_policy(client, path):
    response = client.get(path)
    assert response.status_code == 200
    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("file", TEXT_FILES, ids=lambda file: file.name)
def test_no_file_of_the_page_names_another_host(file):
    addresses = re.findall(r"""(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"')]*""", file.read_text("utf-8"), re.IGNORECASE)
    assert [address for address in addresses if urlsplit(address).hostname != "www.w3.org"] == []  # the name of SVG's namespace


@pytest.mark.parametrize("file", [file for file in TEXT_FILES if file.suffix == ".html"], ids=lambda file: file.name)
def test_a_page_holds_no_script_or_style_of_its_own(file):
    html = file.read_text("utf-8")
    assert re.findall(r"<script(?![^>]*\bsrc=)", html) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", html) == []


def test_no_script_of_the_page_makes_markup_from_text():
    for file in TEXT_FILES:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", file.read_text("utf-8")), file.name


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::1"])
def test_a_foreign_host_name_is_refused(client, host):
    response = client.get("/api/status", headers={"host": host})
    assert (response.status_code, response.json()["code"]) == (421, "foreign_host")


@pytest.mark.parametrize("host", ["localhost:8765", "127.0.0.1", "[::1]:8765", "LOCALHOST"])
def test_every_name_of_this_machine_is_answered(client, host):
    assert client.get("/api/status", headers={"host": host}).status_code == 200


def test_a_request_id_is_kept_if_it_is_plain_and_made_otherwise(client):
    assert client.get("/api/health", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    made = client.get("/api/health", headers={"x-request-id": "a b\tc"}).headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{32}", made)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "unknown_route"),
        ("GET", "/page/../app.py", 404, "unknown_route"),
        ("GET", "/api/search", 405, "method_not_allowed"),
    ],
)
def test_routes_that_are_none_are_problems_too(client, method, path, status, code):
    response = client.request(method, path)
    assert (response.status_code, response.headers["content-type"], response.json()["code"]) == (status, "application/problem+json", code)


def test_a_bug_is_a_problem_with_a_request_id_and_no_details(client, monkeypatch):
    def broken(*_args, **_kwargs):
        raise ZeroDivisionError("/secret/path")

    monkeypatch.setattr("stemma.service.routes_documents.list_sources", broken)
    response = client.get("/api/documents")
    assert (response.status_code, response.json()["code"]) == (500, "internal_error")
    assert "secret" not in response.text and response.json()["request_id"] == response.headers["x-request-id"]


def test_the_description_lists_every_route_with_examples(client):
    description = client.get("/openapi.json").json()
    assert set(description["paths"]) == {
        "/api/search", "/api/documents", "/api/documents/{id}", "/api/documents/{id}/text", "/api/documents/{id}/chunks",
        "/api/documents/{id}/lineage", "/api/chunks/{chunk_id}/lineage", "/api/health", "/api/health/ready", "/api/status",
        "/api/documents/{id}/assets", "/api/documents/{id}/assets/{index}/picture",
        "/api/documents/{id}/cancel", "/api/documents/{id}/retry",
        "/api/stale", "/api/ingest", "/api/folders", "/api/documents/delete", "/api/documents/{id}/file", "/api/documents/{id}/pages",
        "/api/documents/{id}/pages/{number}", "/api/documents/{id}/progress", "/api/progress", "/api/titles", "/api/upload",
        "/api/upload/folder", "/api/workspaces", "/api/workspaces/{key}", "/api/workspaces/{key}/roots", "/api/settings", "/api/chat", "/api/conversations",
        "/api/conversations/{id}", "/api/conversations/{id}/messages", "/api/conversation-groups", "/api/conversation-groups/{id}", "/metrics",
        "/api/backups/{corpus}", "/api/backups/{corpus}/{name}/verify", "/api/backups/{corpus}/{name}/restore",
    }  # fmt: skip
    for path, operations in description["paths"].items():
        for operation in operations.values():
            assert operation["summary"] and operation["description"], path
            for parameter in operation.get("parameters", []):
                assert parameter["description"] and parameter["schema"].get("examples", parameter.get("examples")), (
                    path,
                    parameter["name"],
                )
    assert description["components"]["schemas"]["SearchBody"]["examples"]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://["])
def test_a_page_from_elsewhere_cannot_change_anything(client, origin):
    response = client.post("/api/documents/x/cancel", headers={"Origin": origin})
    assert (response.status_code, response.json()["code"]) == (403, "foreign_origin")


def test_the_page_itself_can(client):
    response = client.post("/api/documents/x/cancel", headers={"Origin": "http://127.0.0.1:8765"})
    assert (response.status_code, response.json()["code"]) == (404, "unknown_document")


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "chunked"])
def test_a_body_larger_than_any_search_is_refused_before_it_is_kept(client, declared):
    pieces = (b'{"query": "', *(b"a" * 1_000_000 for _ in range(11)), b'"}')
    body = b"".join(pieces) if declared else iter(pieces)
    response = client.post("/api/search", content=body, headers={"Content-Type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (413, "request_too_large")


def test_a_scope_of_many_documents_is_answered(client):
    scope = {"documents": [f"{number:016x}" for number in range(100_000)]}
    assert client.post("/api/search", json={"query": "passage", "scope": scope}).json()["hits"] == []
