"""Uploads, files, pages, titles, workspaces and settings over HTTP; validators, compression, figures and the line before the service."""

import gzip
import json
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from stemma.service.app import create_app


@pytest.fixture(scope="module", autouse=True)
def published(corpus):
    """A document with two pages."""
    made = corpus.publish("library/travel guide.pdf", "Page one speaks of trains.", "Page two speaks of boats.")
    pages = [{"number": 1, "char_start": 0, "char_end": 26, "label": None}, {"number": 2, "char_start": 28, "char_end": 53, "label": None}]
    corpus.connection.execute(
        "UPDATE documents SET pages = %s WHERE source_id = %s", [zlib.compress(json.dumps(pages).encode()), made.source_id]
    )
    corpus.connection.commit()
    path = corpus.settings.library / "library" / "travel guide.pdf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"%PDF <script>alert(1)</script>")
    return made


def upload(client, *files, folder="", **fields):
    """The report of an upload of (name, bytes) pairs."""
    response = client.post("/api/upload", data={"folder": folder, **fields}, files=[("files", (name, content)) for name, content in files])
    assert response.status_code == 200, response.text
    return response.json()["files"]


def test_an_upload_lies_in_the_library_with_its_own_clock_and_is_listed_at_once(client, corpus):
    (stored,) = upload(client, ("report.md", b"# Report"), folder="inbox/2026", modified_ms=["1600000000123"])
    assert (stored["outcome"], stored["source_path"]) == ("stored", "inbox/2026/report.md")
    path = corpus.settings.library / "inbox/2026/report.md"
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (b"# Report", 1_600_000_000_123_000_000)
    listed = client.get(f"/api/documents/{stored['source_id']}").json()
    assert (listed["status"], listed["workspace"], listed["size"]) == ("pending", "inbox", 8)
    assert [entry.name for entry in path.parent.iterdir()] == ["report.md"]


def test_the_same_bytes_are_stored_once_per_folder_and_nothing_is_overwritten(client, corpus):
    (first,) = upload(client, ("a.txt", b"same"), folder="twice")
    again = upload(client, ("a.txt", b"same"), ("other name.txt", b"same"), folder="twice")
    assert [(one["outcome"], one["source_id"]) for one in again] == [("duplicate", first["source_id"])] * 2
    (elsewhere,) = upload(client, ("a.txt", b"same"), folder="twice/below")
    assert elsewhere["outcome"] == "stored"
    (other,) = upload(client, ("a.txt", b"different"), folder="twice")
    assert other["source_path"] == "twice/a (2).txt"
    assert (corpus.settings.library / "twice/a.txt").read_bytes() == b"same"


def test_the_same_bytes_sent_at_once_are_one_document(client):
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda number: upload(client, (f"{number}.txt", b"raced"), folder="raced")[0], range(8)))
    assert sorted(report["outcome"] for report in reports) == ["duplicate"] * 7 + ["stored"]
    assert len({report["source_id"] for report in reports}) == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("..", "unsafe_path"),
        ("...", "unsafe_path"),
        ("Stemma-Exports", "reserved_path"),
        ("~$draft.docx", "leftover"),
        (".DS_Store", "leftover"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_the_other_files_go_on(client, corpus, name, code):
    refused, stored = upload(client, (name, b"x"), (f"fine after {code}.txt", f"{name}".encode()))
    assert (refused["outcome"], refused["code"], stored["outcome"]) == ("refused", code, "stored")


def test_a_name_loses_what_no_file_should_be_called(client, corpus):
    stored = upload(
        client, ("../../etc/pass\u202ewd", b"1"), ("C:\\fakepath\\b.txt", b"2"), (".hidden", b"3"), ("con.txt", b"4"), folder="names"
    )
    assert [one["source_path"] for one in stored] == ["names/passwd", "names/b.txt", "names/hidden", "names/_con.txt"]
    assert not (corpus.settings.library.parent / "etc").exists()


def test_a_folder_is_uploaded_with_its_folders_and_never_out_of_its_own(client, corpus):
    paths = ["tree/a/b.md", "../escape.md", "tree/stemma-exports/c.md", "/".join("d" * 10) + "/deep.md"]
    response = client.post(
        "/api/upload/folder",
        data={"folder": "sent", "paths": paths},
        files=[("files", (f"{index}.md", path.encode())) for index, path in enumerate(paths)],
    )
    outcomes = [(one["outcome"], one["code"] or one["source_path"]) for one in response.json()["files"]]
    assert outcomes == [
        ("stored", "sent/tree/a/b.md"), ("refused", "unsafe_path"), ("stored", "sent/tree/stemma-exports/c.md"), ("refused", "folder_too_deep"),
    ]  # fmt: skip
    outside = client.post("/api/upload", data={"folder": "../outside"}, files=[("files", ("x.md", b"x"))]).json()["files"]
    assert outside[0]["code"] == "unsafe_path"
    mismatch = client.post("/api/upload/folder", data={"paths": ["a", "b"]}, files=[("files", ("x.md", b"x"))])
    assert (mismatch.status_code, mismatch.json()["code"]) == (422, "invalid_request")


def test_a_link_in_the_library_leads_no_upload_out_of_it(client, corpus, tmp_path):
    (corpus.settings.library / "linked").symlink_to(tmp_path)
    response = client.post("/api/upload", data={"folder": "linked"}, files=[("files", ("x.md", b"x"))])
    assert (response.status_code, response.json()["code"]) == (503, "library_not_writable")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_downloaded_to_be_stored_and_never_shown(client, published):
    response = client.get(f"/api/documents/{published.source_id}/file")
    assert response.content == b"%PDF <script>alert(1)</script>"
    assert response.headers["content-type"] == "application/octet-stream"
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''travel%20guide.pdf"
    assert response.headers["content-security-policy"].startswith("sandbox") and response.headers["x-content-type-options"] == "nosniff"
    unchanged = client.get(f"/api/documents/{published.source_id}/file", headers={"If-None-Match": response.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")


def test_a_file_that_is_gone_or_became_a_link_is_not_sent(client, corpus, tmp_path):
    gone = corpus.publish("library/gone.md", "nothing is left of this")
    secret = tmp_path / "secret"
    secret.write_text("secret")
    for make in (lambda path: None, lambda path: path.symlink_to(secret)):
        make(corpus.settings.library / "library" / "gone.md")
        response = client.get(f"/api/documents/{gone.source_id}/file")
        assert (response.status_code, response.json()["code"]) == (404, "no_file")


def test_a_page_is_shown_from_the_corpus(client, published):
    listed = client.get(f"/api/documents/{published.source_id}/pages").json()
    assert [page["number"] for page in listed["pages"]] == [1, 2]
    page = client.get(f"/api/documents/{published.source_id}/pages/2").json()
    assert (page["text"], page["chunk_ids"]) == ("Page two speaks of boats.", [published.chunk_ids[1]])
    assert client.get(f"/api/documents/{published.source_id}/pages/3").json()["code"] == "no_page"


def test_a_mistyped_title_is_found(client, published):
    found = client.get("/api/titles", params={"query": "travl giude"}).json()["documents"]
    assert found[0]["source_path"] == "library/travel guide.pdf" and 0.3 <= found[0]["similarity"] < 1
    assert client.get("/api/titles", params={"query": "travl giude", "workspace": "none"}).json()["documents"] == []
    assert client.get("/api/titles", params={"query": "%&"}).json()["documents"] == []


def test_a_workspace_is_made_with_its_folder_and_renamed_in_name_alone(client, corpus):
    made = client.post("/api/workspaces", json={"name": "  Field notes "})
    assert (made.status_code, made.json()["key"], made.json()["name"]) == (201, "Field notes", "Field notes")
    assert (corpus.settings.library / "Field notes").is_dir()
    assert client.post("/api/workspaces", json={"name": "Field notes"}).status_code == 409
    renamed = client.patch("/api/workspaces/Field notes", json={"name": "Notes"}).json()
    assert (renamed["key"], renamed["name"]) == ("Field notes", "Notes")
    (root,) = client.get("/api/workspaces/Field notes/roots").json()["roots"]
    assert (root["kind"], root["disk_path"], root["state"]) == ("managed", "Field notes", "ready")
    linked = client.post("/api/workspaces/Field notes/roots", json={"name": "Elsewhere", "disk_path": "/srv"})
    assert (linked.status_code, linked.json()["code"]) == (422, "linked_roots_not_built")
    assert "Notes" in [workspace["name"] for workspace in client.get("/api/workspaces").json()["workspaces"]]
    for name in ("", "  ", "x" * 201):
        assert client.patch("/api/workspaces/Field notes", json={"name": name}).status_code == 422
    assert client.patch("/api/workspaces/none", json={"name": "x"}).json()["code"] == "unknown_workspace"


def test_a_patch_of_settings_is_taken_whole_or_not_at_all(client):
    def values() -> dict:
        return {setting["name"]: (setting["value"], setting["source"]) for setting in client.get("/api/settings").json()["settings"]}

    before = values()
    refused = client.patch("/api/settings", json={"settings": {"FUSION_K": 10, "CHUNK_SIZE": 1}})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_setting")
    for name in ("_corpus_stale", "SERVICE_PORT", "NONE_SUCH"):
        assert client.patch("/api/settings", json={"settings": {"FUSION_K": 10, name: "1"}}).json()["code"] == "invalid_setting"
    assert values() == before
    tried = client.patch("/api/settings", json={"settings": {"CHUNK_SIZE": 300, "CHUNK_OVERLAP": 30}, "dry_run": True}).json()
    assert {setting["name"]: setting["value"] for setting in tried["settings"]}["CHUNK_SIZE"] == 300
    assert tried["cost"]["documents"] >= 1 and values() == before
    changed = client.patch("/api/settings", json={"settings": {"FUSION_K": 10, "CONDENSE_ENABLED": False}}).json()
    assert values()["FUSION_K"] == (10, "override") and values()["CONDENSE_ENABLED"] == (False, "override")
    assert changed["stale"] == client.get("/api/settings").json()["stale"]
    client.patch("/api/settings", json={"settings": {"FUSION_K": None, "CONDENSE_ENABLED": None}})
    assert values() == before


def test_work_on_a_document_is_followed_until_it_ends(client, corpus):
    ready = corpus.publish("library/ready.md", "ready")
    response = client.get(f"/api/documents/{ready.source_id}/progress")
    (event,) = response.text.strip().split("\n\n")
    assert event.startswith("event: progress\ndata: ") and json.loads(event.split("data: ")[1])["status"] == "ready"
    assert client.get("/api/documents/none/progress").status_code == 404
    corpus.connection.execute("UPDATE sources SET status = 'ready' WHERE status = 'pending'")
    corpus.connection.commit()
    assert '"by_status"' in client.get("/api/progress", params={"until_idle": True}).text


@pytest.mark.parametrize("part", ["", "/text", "/chunks", "/pages"])
def test_who_has_the_present_answer_is_not_sent_it_again(client, published, part):
    first = client.get(f"/api/documents/{published.source_id}{part}")
    again = client.get(f"/api/documents/{published.source_id}{part}", headers={"If-None-Match": f'"other", {first.headers["etag"]}'})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert client.get(f"/api/documents/{published.source_id}{part}", headers={"If-None-Match": '"other"'}).content == first.content


def test_a_long_answer_is_compressed_for_who_can_read_that(client, corpus):
    long = corpus.publish("library/long.md", "words and words " * 500)
    with client.stream("GET", f"/api/documents/{long.source_id}/text", headers={"Accept-Encoding": "gzip"}) as response:
        raw = b"".join(response.iter_raw())
    assert response.headers["content-encoding"] == "gzip" and gzip.decompress(raw).decode() == ("words and words " * 500)
    plain = client.get(f"/api/documents/{long.source_id}/text", headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers


def test_prometheus_reads_times_by_route(client):
    client.get("/api/documents/none")
    figures = client.get("/metrics")
    assert figures.headers["content-type"].startswith("text/plain")
    assert 'stemma_request_seconds_count{method="GET",route="/api/documents/{id}",status="404"}' in figures.text
    assert "stemma_requests_in_flight" in figures.text and "none" not in figures.text.replace('route="none"', "")


def test_a_crowd_of_searches_is_answered_or_told_when_to_come_again(client, corpus):
    def search(number: int) -> tuple[int, str | None]:
        response = client.post("/api/search", json={"query": f"trains {number}", "method": "bm25"})
        return response.status_code, response.headers.get("retry-after")

    with ThreadPoolExecutor(200) as crowd:
        answers = list(crowd.map(search, range(200)))
    assert {status for status, _ in answers} <= {200, 503}
    assert all(wait is not None for status, wait in answers if status == 503) and (200, None) in answers
    assert client.post("/api/search", json={"query": "trains", "method": "bm25"}).status_code == 200


def test_an_upload_beyond_the_limit_is_refused_before_it_is_kept(corpus):
    app = create_app(corpus.settings.model_copy(update={"max_file_bytes": 1_000}))
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        report = client.post("/api/upload", files=[("files", ("big.txt", b"x" * 2_000))]).json()["files"]
        assert report[0]["code"] == "upload_too_large"
        response = client.post("/api/upload", files=[("files", ("huge.txt", b"x" * 11_000_000))])
        assert (response.status_code, response.json()["code"]) == (413, "request_too_large")
