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


def paths_found(installation) -> list[str]:
    return [hit["source_path"] for hit in installation.json("search", "bananas", "--method", "bm25")["hits"]]


def test_kill_9_of_the_supervisor_leaves_nothing_running_and_the_next_start_knows_the_library(started):
    started.kill()
    started.wait_for(lambda: not started.processes(), 30, "the end of everything")
    assert holder_of(started.home) is None
    started.up()
    assert paths_found(started) == ["fruit.txt"]
    summary = started.json("ingest")
    assert (summary["unchanged"], summary["published"], summary["model_calls"]["parse"]) == (3, 0, 0)


@pytest.mark.slow
def test_a_start_right_after_a_kill_waits_for_the_watchdog(started):
    started.kill()
    started.up()
    assert started.json("status")["problems"] == {"service": None, "dagster": None}


@pytest.mark.slow
def test_what_is_left_when_the_watchdog_is_killed_too_is_cleared_by_the_next_start(started):
    watchdog = next(process for process in started.processes() if "stemma.cli.watchdog" in process.cmdline())
    os.kill(started.supervisor.pid, signal.SIGSTOP)  # or it would start another
    watchdog.kill()
    started.kill()
    left = {process.pid for process in started.processes()}
    assert len(left) >= 4  # the ports are still held
    started.up()
    assert "processes that an earlier start had left" in started.output
    postgres = {process.pid for process in started.processes() if process.name() == "postgres"}
    assert left & {process.pid for process in started.processes()} <= postgres  # the server is joined
    assert paths_found(started) == ["fruit.txt"]


def test_a_pid_file_whose_pid_now_belongs_to_another_program_is_seen_through(started):
    """After a power cut a low pid is soon another's, and the wheel would take that for the server."""
    started.supervisor.send_signal(signal.SIGTERM)
    assert started.supervisor.wait(timeout=60) == 0
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        folder = embedded.data_folder(started.home)
        (folder / "postmaster.pid").write_text(
            f"{other.pid}\n{folder}\n{int(time.time())}\n5432\n{folder}\n\n  1234 0\nready   \n"
        )  # fmt: skip
        (folder / ".s.PGSQL.5432.lock").write_text(f"{other.pid}\n{folder}\n{int(time.time())}\n5432\n{folder}\n")
        assert paths_found(started) == ["fruit.txt"]
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_torn_pid_file_is_seen_through(stopped):
    (embedded.data_folder(stopped.home) / "postmaster.pid").write_text("12\n/somewh")
    assert paths_found(stopped) == ["fruit.txt"]


@pytest.mark.parametrize("variable", ["STEMMA_SERVICE_PORT", "STEMMA_DAGSTER_PORT"])
def test_a_taken_port_is_named_with_its_variable_before_anything_is_started(stopped, variable):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(stopped.environment[variable])))
        taken.listen()
        refused = stopped.run("up")
        doctor = {finding["check"]: finding for finding in stopped.json("doctor")}
    assert refused.returncode == 3
    assert refused.stderr.startswith(
        f"port_taken: port {stopped.environment[variable]} on 127.0.0.1 ({variable}) cannot be used: it is in use."
    )
    assert "Starting" not in refused.stderr
    assert [finding["state"] for finding in doctor.values() if variable in finding["remedy"]] == ["fault"]
    assert stopped.processes() == []


@pytest.mark.slow
def test_an_interrupt_while_starting_ends_what_was_started(stopped):
    starting = subprocess.Popen([sys.executable, "-m", "stemma.cli.main", "up"], env=stopped.environment, stderr=subprocess.PIPE, text=True)
    for line in starting.stderr:
        if line.startswith("Starting Dagster"):
            break
    starting.send_signal(signal.SIGINT)
    _, said = starting.communicate(timeout=90)
    assert starting.returncode == 0, said
    assert "Traceback" not in said
    assert stopped.processes() == []


@pytest.mark.slow
def test_a_detached_start_returns_when_everything_answers_and_goes_on(stopped):
    done = stopped.run("up", "--detach")
    assert done.returncode == 0, done.stderr
    assert f"http://127.0.0.1:{stopped.service_port}/" in done.stdout
    assert stopped.json("status")["problems"] == {"service": None, "dagster": None}
    assert stopped.run("up", "--detach").returncode == 3
    assert stopped.run("down").returncode == 0
    assert stopped.processes() == []


def test_a_part_that_cannot_start_is_named_with_its_last_words_and_the_others_are_ended(stopped, tmp_path):
    (tmp_path / "dagster_webserver.py").write_text("raise SystemExit('the planted fault')")
    refused = subprocess.run(
        [sys.executable, "-m", "stemma.cli.main", "up"],
        env=stopped.environment | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert refused.returncode == 3
    assert "\nchild_failed: Dagster's webserver ended while it was starting. Its log" in refused.stderr
    assert "the planted fault\n" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert stopped.processes() == []
