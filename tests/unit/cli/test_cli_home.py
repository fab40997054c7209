"""One process at a time in a home; a lock never outlives its holder."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from stemma.cli.home import HomeBusy, HomeUnusable, hold_home, holder_of, served_settings, supervisor_of

HOLDER = "import sys, time; from pathlib import Path; from stemma.cli.home import hold_home\nwith hold_home(Path(sys.argv[1]), role=sys.argv[2]):\n  print('held', flush=True); time.sleep(float(sys.argv[3]))"


@pytest.fixture
def holding(tmp_path):
    """Start a process that holds `tmp_path` in a role for some seconds; returns it once it does."""
    started = []

    def start(role: str, seconds: float = 60) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path), role, str(seconds)], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "held\n"
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_second_supervisor_is_refused_with_the_pid_of_the_first(tmp_path, holding):
    first = holding("supervisor")
    with pytest.raises(HomeBusy, match=rf"held by pid {first.pid} \(stemma up\)"), hold_home(tmp_path, role="supervisor", patience_s=30):
        pass


def test_a_command_that_passes_is_waited_for(tmp_path, holding):
    holding("command", seconds=1)
    with hold_home(tmp_path, role="supervisor", patience_s=30) as lock:
        assert lock.holder.pid == os.getpid()


def test_a_command_that_stays_is_not_waited_for_beyond_the_patience(tmp_path, holding):
    holding("command")
    began = time.monotonic()
    with pytest.raises(HomeBusy, match="another stemma command"), hold_home(tmp_path, role="command", patience_s=1):
        pass
    assert time.monotonic() - began < 5


def test_a_killed_holder_leaves_a_record_and_no_lock(tmp_path, holding):
    first = holding("supervisor")
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert json.loads((tmp_path / "stemma.lock").read_text())["pid"] == first.pid
    assert holder_of(tmp_path) is None
    with hold_home(tmp_path, role="supervisor"):
        pass


def test_the_record_says_who_holds_what_for_which_library(tmp_path, holding):
    assert holder_of(tmp_path) is None
    with hold_home(tmp_path, role="supervisor") as lock:
        lock.update(state="ready", library="/documents")
        found = supervisor_of(tmp_path)
        assert (found.pid, found.state, found.library) == (os.getpid(), "ready", "/documents")
    assert supervisor_of(tmp_path) is None


def test_a_command_is_no_supervisor(tmp_path, holding):
    holding("command")
    assert supervisor_of(tmp_path) is None
    assert holder_of(tmp_path).role == "command"


def test_asking_who_holds_a_home_never_makes_another_fail_to_hold_it(tmp_path):
    asking = threading.Event()

    def ask() -> None:
        while not asking.is_set():
            holder_of(tmp_path)

    askers = [threading.Thread(target=ask) for _ in range(3)]
    for asker in askers:
        asker.start()
    try:
        for _ in range(50):
            with hold_home(tmp_path, role="supervisor"):
                pass
    finally:
        asking.set()
        for asker in askers:
            asker.join()


def test_a_home_that_cannot_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeUnusable, match="Not a directory"), hold_home(tmp_path / "file" / "home", role="command"):
        pass


def test_another_terminal_finds_the_library_and_the_ports_of_the_supervisor(tmp_path, monkeypatch):
    monkeypatch.setenv("STEMMA_HOME", str(tmp_path))
    assert served_settings().service_port == 8765
    with hold_home(tmp_path, role="supervisor") as lock:
        assert served_settings().service_port == 8765
        lock.update(library="/somewhere", service_port=9001, dagster_port=9002)
        served = served_settings()
        assert (str(served.library), served.service_host, served.service_port, served.dagster_port) == (
            "/somewhere",
            "127.0.0.1",
            9001,
            9002,
        )
    assert served_settings().dagster_port == 3000
