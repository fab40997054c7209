"""Starting and stopping: before PostgreSQL is there, when it comes, when its schema is not ours, and on a signal."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psycopg
import pytest
from starlette.testclient import TestClient

from stemma.service import state
from stemma.service.app import create_app
from stemma.settings import Settings
from stemma.stages import models_at_hand
from stemma.store.migrations import MigrationDrift, MigrationFailed

BASE_URL = "http://127.0.0.1:8765"
DEADLINE_S = 60
PROJECT = Path(__file__).parents[3]


def wait_until(condition, *, what):
    deadline = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s for {what}"
        time.sleep(0.1)
    return found


@pytest.fixture(autouse=True)
def no_model(monkeypatch):
    """These tests are about the store; loading a model would only make them slow."""
    from searchable_corpus import WordCounts

    monkeypatch.setattr(models_at_hand, "open_embedder", lambda *_args, **_options: WordCounts())


@pytest.fixture
def away(empty_database_url, tmp_path):
    """(URL whose socket does not exist yet, function that makes it exist)."""
    socket = Path(parse_qs(urlsplit(empty_database_url).query)["host"][0]) / ".s.PGSQL.5432"
    folder = tmp_path / "socket"
    folder.mkdir()
    url = f"postgresql://postgres:@{urlsplit(empty_database_url).path}?host={folder}"
    return url, lambda: (folder / socket.name).symlink_to(socket)


def tables(url):
    with psycopg.connect(url) as connection:
        return {name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


def test_migrations_are_applied_before_the_first_request(empty_database_url, tmp_path):
    assert tables(empty_database_url) == set()
    with TestClient(create_app(Settings(home=tmp_path, postgres_url=empty_database_url)), base_url=BASE_URL) as client:
        assert {"documents", "chunks", "schema_migrations"} <= tables(empty_database_url)
        assert client.get("/api/documents").json() == {"documents": [], "next_cursor": None}
        assert client.post("/api/search", json={"query": "anything"}).json()["hits"] == []


def test_without_postgresql_the_service_lives_and_migrates_when_it_comes(away, empty_database_url, tmp_path):
    url, come = away
    with TestClient(create_app(Settings(home=tmp_path, postgres_url=url)), base_url=BASE_URL) as client:
        assert client.get("/api/health").json() == {"live": True, "ready": False, "reason": "PostgreSQL does not answer"}
        assert client.get("/api/health/ready").status_code == 503
        assert client.get("/").status_code == client.get("/docs").status_code == client.get("/openapi.json").status_code == 200
        for method, path, body in (
            ("GET", "/api/documents", None), ("GET", "/api/documents/x", None), ("GET", "/api/documents/x/text", None),
            ("GET", "/api/documents/x/chunks", None), ("GET", "/api/status", None), ("POST", "/api/search", {"query": "x"}),
        ):  # fmt: skip
            response = client.request(method, path, json=body)
            assert (response.status_code, response.json()["code"]) == (503, "store_unavailable")
            assert response.headers["retry-after"] == "2"
            assert str(tmp_path) not in response.text
        come()
        wait_until(lambda: client.get("/api/health").json()["ready"], what="readiness")
        assert "documents" in tables(empty_database_url)
        assert client.get("/api/documents").json() == {"documents": [], "next_cursor": None}


def test_when_postgresql_goes_away_requests_fail_and_succeed_again_when_it_is_back(away, empty_database_url, tmp_path, monkeypatch):
    monkeypatch.setattr(state, "POOL_TIMEOUT_S", 1.0)
    url, come = away
    come()
    with TestClient(create_app(Settings(home=tmp_path, postgres_url=url)), base_url=BASE_URL) as client:
        wait_until(lambda: client.get("/api/health").json()["ready"], what="readiness")
        (tmp_path / "socket" / ".s.PGSQL.5432").unlink()
        with psycopg.connect(empty_database_url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert client.get("/api/documents").json()["code"] == "store_unavailable"
        assert client.get("/api/health").json()["reason"] == "PostgreSQL does not answer"
        come()
        wait_until(lambda: client.get("/api/documents").status_code == 200, what="the store")


def spoil(url):
    """Make the first migration fail: a view where a table should be."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE VIEW corpus_state AS SELECT 1 AS one")


def test_a_migration_that_fails_ends_the_start(empty_database_url, tmp_path):
    spoil(empty_database_url)
    with pytest.raises(MigrationFailed, match="001_"), TestClient(create_app(Settings(home=tmp_path, postgres_url=empty_database_url))):
        pytest.fail("the app started")


def test_an_applied_migration_with_another_text_ends_the_start(database_url, tmp_path):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE schema_migrations SET sha256 = 'other' WHERE name LIKE '001%'")
    with pytest.raises(MigrationDrift), TestClient(create_app(Settings(home=tmp_path, postgres_url=database_url))):
        pytest.fail("the app started")


def test_a_vector_table_that_is_not_as_wide_as_its_spec_ends_the_start(database_url, tmp_path):
    from searchable_corpus import WordCounts

    from stemma.store.embedding_indexes import VectorWidthMismatch, ensure_embedding_index
    from stemma.store.postgres import connect

    with connect(database_url) as connection:
        index = ensure_embedding_index(connection, WordCounts.spec)
        connection.execute(f"ALTER TABLE {index.vector_table} ALTER COLUMN embedding TYPE vector(3)")
    with pytest.raises(VectorWidthMismatch), TestClient(create_app(Settings(home=tmp_path, postgres_url=database_url))):
        pytest.fail("the app started")


def test_a_migration_that_fails_on_postgresqls_return_opens_no_route(away, empty_database_url, tmp_path):
    url, come = away
    spoil(empty_database_url)
    app = create_app(Settings(home=tmp_path, postgres_url=url))
    with TestClient(app, base_url=BASE_URL) as client:
        come()
        assert app.state.service.failed.wait(DEADLINE_S)
        response = client.get("/api/documents")
        assert (response.status_code, response.json()["code"]) == (503, "migration_failed")
        assert "001_" in client.get("/api/health").json()["reason"]


@pytest.fixture
def port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(home, url, port):
    environment = os.environ | {"STEMMA_HOME": str(home), "STEMMA_POSTGRES_URL": url, "STEMMA_SERVICE_PORT": str(port)}
    return subprocess.Popen(
        [sys.executable, "-m", "stemma.service"], cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def answers(port):
    try:
        return httpx.get(f"http://127.0.0.1:{port}/api/health", timeout=5).json()
    except httpx.TransportError:
        return None


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_process_with_success_and_its_log_is_json_lines(database_url, tmp_path, port, ending):
    process = start(tmp_path, database_url, port)
    try:
        wait_until(lambda: answers(port), what="an answer")
        httpx.post(f"http://127.0.0.1:{port}/api/search", json={"query": "a secret", "method": "bm25"}, timeout=30)
        process.send_signal(ending)
        output, log = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert (process.returncode, output) == (0, "")
    events = [json.loads(line) for line in log.splitlines()]
    (request,) = [event for event in events if event["event"] == "request" and event["path"] == "/api/search"]
    assert request["status"] == 200 and request["request_id"] and request["elapsed_s"] >= 0
    assert "a secret" not in log


def test_a_failed_start_ends_the_process_and_says_why(empty_database_url, tmp_path, port):
    spoil(empty_database_url)
    process = start(tmp_path, empty_database_url, port)
    _, log = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 3
    assert "MigrationFailed" in log and all(json.loads(line) for line in log.splitlines())


def test_settings_that_do_not_validate_end_the_process_with_two(tmp_path):
    process = subprocess.run(
        [sys.executable, "-m", "stemma.service"], cwd=PROJECT, env=os.environ | {"STEMMA_SERVICE_PORT": "x"}, capture_output=True, text=True,
        timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert process.returncode == 2
    assert "SERVICE_PORT" in process.stderr


def test_a_schema_that_must_not_be_served_ends_the_process_when_postgresql_comes(away, empty_database_url, tmp_path, port):
    url, come = away
    spoil(empty_database_url)
    process = start(tmp_path / "home", url, port)
    try:
        wait_until(lambda: answers(port), what="an answer")
        come()
        _, log = process.communicate(timeout=DEADLINE_S)
    finally:
        process.kill()
    assert process.returncode == 1
    assert "migration_failed" in log
