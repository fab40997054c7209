"""However the supervisor goes, nothing of it stays; whatever a crash left, the next start clears and goes on from."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from stemma.cli.home import holder_of
from stemma.store import embedded


@pytest.fixture(scope="module")
def crashed(installation):
    """An installation whose library is ingested, so that a later start can be seen to know it."""
    installation.up()
    installation.json("ingest")
    return installation


def paths_found(installation) -> list[str]:
    return [hit["source_path"] for hit in installation.json("search", "bananas", "--method", "bm25")["hits"]]


def test_kill_9_of_the_supervisor_leaves_nothing_running(crashed):
    crashed.kill()
    crashed.wait_for(lambda: not crashed.processes(), 30, "the end of everything")
    assert holder_of(crashed.home) is None


def test_the_next_start_knows_the_library_and_does_no_work_twice(crashed):
    crashed.up()
    assert paths_found(crashed) == ["fruit.txt"]
    summary = crashed.json("ingest")
    assert (summary["unchanged"], summary["published"], summary["model_calls"]["parse"]) == (3, 0, 0)


@pytest.mark.slow
def test_a_start_right_after_a_kill_waits_for_the_watchdog(crashed):
    crashed.kill()
    crashed.up()
    assert crashed.json("status")["problems"] == {"service": None, "dagster": None}


@pytest.mark.slow
def test_what_is_left_when_the_watchdog_is_killed_too_is_cleared_by_the_next_start(crashed):
    watchdog = next(process for process in crashed.processes() if "stemma.cli.watchdog" in process.cmdline())
    os.kill(crashed.supervisor.pid, signal.SIGSTOP)  # or it would start another
    watchdog.kill()
    crashed.kill()
    left = {process.pid for process in crashed.processes()}
    assert len(left) >= 4  # the ports are still held
    crashed.up()
    assert "processes that an earlier start had left" in crashed.output
    postgres = {process.pid for process in crashed.processes() if process.name() == "postgres"}
    assert left & {process.pid for process in crashed.processes()} <= postgres  # the server is joined
    assert paths_found(crashed) == ["fruit.txt"]


def test_a_pid_file_whose_pid_now_belongs_to_another_program_is_seen_through(crashed):
    """After a power cut a low pid is soon another's, and the wheel would take that for the server."""
    crashed.supervisor.send_signal(signal.SIGTERM)
    assert crashed.supervisor.wait(timeout=60) == 0
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        folder = embedded.data_folder(crashed.home)
        (folder / "postmaster.pid").write_text(
            f"{other.pid}\n{folder}\n{int(time.time())}\n5432\n{folder}\n\n  1234 0\nready   \n"
        )  # fmt: skip
        (folder / ".s.PGSQL.5432.lock").write_text(f"{other.pid}\n{folder}\n{int(time.time())}\n5432\n{folder}\n")
        assert paths_found(crashed) == ["fruit.txt"]
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_torn_pid_file_is_seen_through(crashed):
    (embedded.data_folder(crashed.home) / "postmaster.pid").write_text("12\n/somewh")
    assert paths_found(crashed) == ["fruit.txt"]


@pytest.mark.parametrize("variable", ["STEMMA_SERVICE_PORT", "STEMMA_DAGSTER_PORT"])
def test_a_taken_port_is_named_with_its_variable_before_anything_is_started(crashed, variable):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(crashed.environment[variable])))
        taken.listen()
        refused = crashed.run("up")
        doctor = {finding["check"]: finding for finding in crashed.json("doctor")}
    assert refused.returncode == 3
    assert refused.stderr.startswith(
        f"port_taken: port {crashed.environment[variable]} on 127.0.0.1 ({variable}) cannot be used: it is in use."
    )
    assert "Starting" not in refused.stderr
    assert [finding["state"] for finding in doctor.values() if variable in finding["remedy"]] == ["fault"]
    assert crashed.processes() == []


@pytest.mark.slow
def test_an_interrupt_while_starting_ends_what_was_started(crashed):
    starting = subprocess.Popen([sys.executable, "-m", "stemma.cli.main", "up"], env=crashed.environment, stderr=subprocess.PIPE, text=True)
    for line in starting.stderr:
        if line.startswith("Starting Dagster"):
            break
    starting.send_signal(signal.SIGINT)
    _, said = starting.communicate(timeout=90)
    assert starting.returncode == 0, said
    assert "Traceback" not in said
    assert crashed.processes() == []


@pytest.mark.slow
def test_a_detached_start_returns_when_everything_answers_and_goes_on(crashed):
    crashed.run("down")
    done = crashed.run("up", "--detach")
    assert done.returncode == 0, done.stderr
    assert f"http://127.0.0.1:{crashed.service_port}/" in done.stdout
    assert crashed.json("status")["problems"] == {"service": None, "dagster": None}
    assert crashed.run("up", "--detach").returncode == 3
    assert crashed.run("down").returncode == 0
    assert crashed.processes() == []


def test_a_part_that_cannot_start_is_named_with_its_last_words_and_the_others_are_ended(crashed, tmp_path):
    (tmp_path / "dagster_webserver.py").write_text("raise SystemExit('the planted fault')")
    refused = subprocess.run(
        [sys.executable, "-m", "stemma.cli.main", "up"],
        env=crashed.environment | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert refused.returncode == 3
    assert "\nchild_failed: Dagster's webserver ended while it was starting. Its log" in refused.stderr
    assert "the planted fault\n" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert crashed.processes() == []
