"""Everything a supervisor started is found and ended, however it tries to stay."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from stemma.cli.processes import MARKER, end_processes, leftover_processes, marked_processes


@pytest.fixture
def start(tmp_path):
    """Start Python code with a marker; it prints when it is ready, which is waited for."""
    started = []

    def run(code: str, marker: str, **environment: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env={**os.environ, MARKER: marker, **environment}
        )
        started.append(process)
        process.stdout.readline()
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


SLEEPING = "import time; print(flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
POLITE = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(print('goodbye'))); print(flush=True); time.sleep(60)"
WITH_A_CHILD_OF_ANOTHER_SESSION = (
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True);"
    " print(flush=True); time.sleep(60)"
)


def test_only_processes_with_the_marker_are_found(start):
    mine, _other = start(SLEEPING, "mine"), start(SLEEPING, "other")
    assert [process.pid for process in marked_processes("mine")] == [mine.pid]


def test_a_child_in_a_session_of_its_own_is_found_after_its_parent_is_gone(start):
    parent = start(WITH_A_CHILD_OF_ANOTHER_SESSION, "deep")
    deadline = time.monotonic() + 10
    while len(marked_processes("deep")) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    (orphan,) = marked_processes("deep")
    assert end_processes(lambda: marked_processes("deep"), grace_s=5) == 1
    assert not psutil.pid_exists(orphan.pid) or orphan.status() == psutil.STATUS_ZOMBIE


def test_a_process_that_does_not_heed_the_request_is_killed_after_the_grace(start):
    process = start(STUBBORN, "stubborn")
    began = time.monotonic()
    end_processes(lambda: marked_processes("stubborn"), grace_s=1)
    assert process.poll() is not None
    assert 1 <= time.monotonic() - began < 6


def test_one_that_heeds_has_the_time_to_end_in_its_own_way(start):
    process = start(POLITE, "polite")
    end_processes(lambda: marked_processes("polite"), grace_s=10)
    assert process.stdout.read() == "goodbye\n"


def test_leftovers_are_those_of_the_same_home(start, tmp_path):
    mine = start(SLEEPING, "earlier", STEMMA_HOME=str(tmp_path))
    start(SLEEPING, "earlier", STEMMA_HOME=str(tmp_path / "other"))
    assert [process.pid for process in leftover_processes(tmp_path)] == [mine.pid]


def test_nothing_to_end_is_no_error():
    assert end_processes(lambda: marked_processes("nobody"), grace_s=5) == 0
