"""A running Stemma, used through its commands. The tests share one start; each may begin with the library as it is."""

import hashlib
import json
import os
import signal
import subprocess
import sys

import httpx
import psutil
import pytest

from stemma.cli.home import supervisor_of
from stemma.cli.postgres import postmaster_of
from stemma.cli.processes import MARKER


@pytest.fixture(scope="module")
def running(installation):
    installation.up()
    installation.json("ingest")
    return installation


def child(running, *words: str) -> psutil.Process:
    """The one direct child of the supervisor whose command line has these words."""
    children = psutil.Process(running.supervisor.pid).children()
    (found,) = [process for process in children if all(word in process.cmdline() for word in words)]
    return found


def run_processes(running) -> list[psutil.Process]:
    """The processes of runs: each is forked from one that has imported what they need, instead of a new interpreter."""
    (warm,) = [
        process for process in child(running, "pipelines.code_server").children() if any("forkserver" in word for word in process.cmdline())
    ]
    return warm.children()


def test_the_three_addresses_are_printed_and_answer(running):
    for path, port in (("/", running.service_port), ("/docs", running.service_port), ("/", running.dagster_port)):
        address = f"http://127.0.0.1:{port}{path}"
        assert address in running.output
        assert httpx.get(address, trust_env=False, timeout=30).status_code == 200


def test_a_second_up_refuses_and_names_the_pid_that_holds_the_home(running):
    second = running.run("up")
    assert second.returncode == 3
    assert second.stderr.startswith(f"home_busy: {running.home} is held by pid {running.supervisor.pid} (stemma up)")


def test_the_documents_are_listed_and_the_broken_one_has_a_code(running):
    rows = {row["source_path"]: row for row in running.json("documents")}
    assert {path: row["status"] for path, row in rows.items()} == {
        "broken.pdf": "failed", "fruit.txt": "ready", "handbook/leave.md": "ready"
    }  # fmt: skip
    failed = running.run("documents", "--failed")
    assert failed.returncode == 1
    assert "broken.pdf" in failed.stdout
    assert f"{rows['broken.pdf']['error_code']}: " in failed.stdout
    assert "fruit.txt" not in failed.stdout


def test_a_second_pass_works_on_nothing(running):
    again = running.json("ingest")
    assert again["seen"] == 3
    assert again["unchanged"] == 3
    assert {again[name] for name in ("new", "changed", "vanished", "published", "runs")} == {0}
    assert again["model_calls"] == {"parse": 0, "context": 0, "embed": 0}


def test_an_edit_is_found_after_ingest_and_only_it_is_worked_on(running):
    (running.library / "fruit.txt").write_text("Cherries keep for a week in the cold.\n")
    command = [sys.executable, "-m", "stemma.cli.main", "ingest", "--json"]
    with subprocess.Popen(command, env=running.environment, stdout=subprocess.PIPE) as ingesting:
        running.wait_for(lambda: run_processes(running), 60, "a run that is forked")
        summary = json.loads(ingesting.communicate(timeout=180)[0])
    assert (summary["changed"], summary["published"], summary["failed"]) == (1, 1, 0)
    assert running.run("ingest").returncode == 0
    found = running.json("search", "cherries", "--method", "bm25")
    assert [hit["source_path"] for hit in found["hits"]] == ["fruit.txt"]


def test_a_passage_is_traced_to_its_file_and_its_run(running):
    [hit] = running.json("search", "unused leave", "--method", "bm25", "-k", "1")["hits"]
    traced = running.json("trace", hit["chunk_id"])
    content = (running.library / "handbook" / "leave.md").read_bytes()
    assert (traced["file"]["content_hash"], traced["file"]["on_disk"]) == (hashlib.sha256(content).hexdigest(), "same")
    assert httpx.get(traced["links"]["run"], trust_env=False, timeout=30).status_code == 200
    shown = running.run("trace", "handbook/leave.md").stdout
    assert "the file on disk still has it" in shown and "CHUNK_SIZE=800" in shown and traced["document"]["run_id"] in shown
    refused = running.run("trace", "0b5f7a6e-0000-4000-8000-000000000000")
    assert (refused.returncode, refused.stderr.partition(":")[0]) == (2, "unknown_document")


def test_reingest_of_one_path_parses_it_again(running):
    summary = running.json("ingest", "--reingest", "handbook/leave.md")
    assert (summary["published"], summary["model_calls"]["parse"]) == (1, 1)


def test_a_path_outside_the_library_is_refused(running):
    refused = running.run("ingest", "/etc/hosts")
    assert refused.returncode == 2
    assert refused.stderr.startswith("outside_library: /etc/hosts is not in ")
    as_json = json.loads(running.run("ingest", "/etc/hosts", "--json").stderr)
    assert as_json["code"] == "outside_library"


@pytest.mark.parametrize("method", ["semantic", "bm25", "hybrid"])
def test_search_prints_what_the_service_returns(running, method):
    printed = running.json("search", "leave carries over", "--method", method, "-k", "1")
    body = {"query": "leave carries over", "method": method, "k": 1}
    returned = httpx.post(f"http://127.0.0.1:{running.service_port}/api/search", json=body, trust_env=False, timeout=30).json()
    assert printed == returned
    assert printed["hits"][0]["source_path"] == "handbook/leave.md"


def test_a_search_that_cannot_be_answered_ends_with_2_and_the_service_s_code(running):
    for asked, code in ((["  "], "empty_query"), (["x" * 100_000], "query_too_long"), (["leave", "-k", "100000"], "invalid_k")):
        refused = running.run("search", *asked)
        assert (refused.returncode, refused.stderr.split(":")[0]) == (2, code)


def test_restrictions_and_shape_reach_the_service(running):
    hits = running.json("search", "leave", "--folder", "handbook", "--type", "md", "--ingested-from", "2020-01-01", "--merge")["hits"]
    assert {hit["source_path"].split("/")[0] for hit in hits} == {"handbook"}
    assert running.json("search", "leave", "--modified-before", "1990-01-01")["hits"] == []


def test_a_workspace_restricts_a_search(running):
    assert running.json("search", "leave", "--workspace", "default")["hits"] != []
    paths = {hit["source_path"] for hit in running.json("search", "leave", "--workspace", "default")["hits"]}
    assert "handbook/leave.md" not in paths


def test_show_takes_a_path_a_document_and_a_chunk(running):
    document = running.json("show", "handbook/leave.md")
    chunk = running.json("show", document["chunks"][0]["chunk_id"])
    assert running.json("show", document["doc_id"])["source_id"] == document["source_id"]
    assert chunk["content"] == document["chunks"][0]["content"]
    assert chunk["content"] in running.run("show", chunk["chunk_id"]).stdout
    assert running.run("show", "no-such-document").stderr.startswith("unknown_document:")
    assert running.run("show", f"{document['doc_id']}::99").stderr.startswith("unknown_chunk:")


def test_status_and_doctor_find_everything_in_order(running):
    status = running.json("status")
    assert (status["pid"], status["state"], status["library"]) == (running.supervisor.pid, "ready", str(running.library))
    assert status["problems"] == {"service": None, "dagster": None}
    assert status["documents"]["total"] == 3
    findings = {finding["check"]: finding["state"] for finding in running.json("doctor")}
    assert findings.pop("disk") in ("ok", "warning")
    assert set(findings.values()) == {"ok"}, findings


def test_a_setting_is_stored_shown_with_its_source_and_forgotten(running):
    running.json("settings", "set", "FUSION_K=20")
    shown = {row["name"]: row for row in running.json("settings", "list")}
    assert (shown["FUSION_K"]["value"], shown["FUSION_K"]["source"], shown["FUSION_K"]["stage"]) == (20, "override", "query")
    assert (shown["RECONCILE_INTERVAL_S"]["source"], shown["CHUNK_SIZE"]["source"]) == ("env", "default")
    refused = running.run("settings", "set", "FUSION_K=30", "CHUNK_SIZE=6")
    assert refused.returncode == 2
    assert "CHUNK_SIZE cannot be '6'; allowed: whole number >= 20" in refused.stderr
    assert running.json("settings", "unset", "FUSION_K")[0]["source"] == "default"


def test_chunks_longer_than_the_models_window_are_warned_of(running):
    assert running.json("status")["warnings"] == []
    warned = running.run("settings", "set", "CHUNK_SIZE=2000")
    assert warned.returncode == 0 and "Warning: CHUNK_SIZE 2000 (about 500 tokens" in warned.stderr
    assert "CHUNK_SIZE 2000" in running.json("status")["warnings"][0]
    doctor = running.run("doctor")
    assert doctor.returncode == 0 and "! chunks       CHUNK_SIZE 2000" in doctor.stdout
    assert "Warning" not in running.run("settings", "unset", "CHUNK_SIZE").stderr
    assert running.json("status")["warnings"] == []


def test_the_schema_is_this_release_s(running):
    assert {row["state"] for row in running.json("db", "status")} == {"applied"}
    assert running.json("db", "upgrade") == {"applied": []}


def test_everything_that_runs_is_marked_but_postgresql_and_the_watchdog_s_own_mark(running):
    marks = {}
    for process in running.processes():
        marks.setdefault(process.environ().get(MARKER), []).append(process.name())
    assert set(marks.pop(None)) == {"postgres"}
    assert len(marks) == 2, marks


def test_a_child_that_dies_is_started_again(running):
    before = child(running, "stemma.service")
    os.kill(before.pid, signal.SIGKILL)
    running.wait_for(lambda: running.json("status")["problems"]["service"] is None, 60, "the restart of the query service")
    assert child(running, "stemma.service").pid != before.pid


def test_a_postgresql_that_dies_is_started_again_and_everybody_finds_it(running):
    before = postmaster_of(running.home)
    before.kill()
    running.wait_for(lambda: (now := postmaster_of(running.home)) is not None and now != before, 60, "the restart of PostgreSQL")
    running.wait_for(lambda: running.run("status").returncode == 1, 60, "the return of the store")  # 1: a document is broken
    running.wait_for(lambda: set(running.json("status")["problems"].values()) == {None}, 60, "the recovery of the rest")
    assert running.json("search", "leave")["hits"] != []


def test_the_watchdog_is_started_again(running):
    before = child(running, "stemma.cli.watchdog")
    os.kill(before.pid, signal.SIGKILL)
    running.wait_for(lambda: not psutil.pid_exists(before.pid), 30, "the end of the watchdog")
    assert child(running, "stemma.cli.watchdog").pid != before.pid


def test_down_ends_everything_and_a_search_by_keywords_still_answers_quickly(running):
    done = running.run("down")
    assert (done.returncode, running.supervisor.wait(timeout=10)) == (0, 0)
    assert running.processes() == []
    assert supervisor_of(running.home) is None
    found = running.json("search", "leave", "--method", "bm25")
    assert found["hits"][0]["source_path"] == "handbook/leave.md"
    assert running.processes() == []
    assert running.run("ingest").returncode == 3
    assert running.json("status") == {"running": False, "home": str(running.home)}
