"""Parser processes: every job is answered once, whatever its file does."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from stemma.errors import CorruptDocument, DocumentError, ParseMemoryExceeded, ParseTimeout, WorkerDied
from stemma.parsing.document import ParsedDocument
from stemma.parsing.formats import FORMATS, Format
from stemma.parsing.workers import ParseJob, ParserPool

HOSTILE = '''
"""Parsers that misbehave, for the tests of the pool."""
import ctypes, os, socket, time, urllib.request
from stemma.parsing.draft import Draft

def sleep(source): time.sleep(600)
def loop_in_c(source): ctypes.CDLL(None).sleep(600)
def grow(source):
    held = []
    while True: held.append(os.urandom(10_000_000)); time.sleep(0.005)
def jump(source): return Draft(str(len(bytearray(50_000_000_000))))
def crash(source): os.kill(os.getpid(), 11)
def leave(source): os._exit(3)
def shout(source): print("{}" * 100_000, flush=True); os.write(1, b"x" * 100); return Draft("heard")
def fetch(source): urllib.request.urlopen("http://127.0.0.1:9/")
def fetch_by_name(source): socket.getaddrinfo("example.com", 80)
def fail(source): raise KeyError(f"no such thing in {source.path}")
def pid(source): return Draft(str(os.getpid()))
'''


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`job("sleep")`: a file whose parser is that function of the module above."""
    (tmp_path / "hostile_parsers.py").write_text(HOSTILE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path = tmp_path / "file.txt"
    path.write_text("words")

    def job(function: str, source_path: str = "a/file.txt") -> ParseJob:
        return ParseJob(path, source_path, Format(function, f"hostile_parsers:{function}", 1))

    return job


def plain(tmp_path: Path, name: str, text: str = "words of a text") -> ParseJob:
    path = tmp_path / name
    path.write_text(text)
    return ParseJob(path, name, FORMATS["text"])


def pool(timeout_s: float = 20.0, memory_bytes: int = 1_000_000_000, **options) -> ParserPool:
    return ParserPool(timeout_s=timeout_s, memory_bytes=memory_bytes, **options)


def only(results) -> ParsedDocument | DocumentError:
    ((_, result),) = list(results)
    return result


@pytest.mark.parametrize("function", ["sleep", "loop_in_c"])
def test_a_parser_that_hangs_is_ended(job, function):
    started = time.monotonic()
    with pool(timeout_s=2) as parsers:
        result = only(parsers.parse([job(function)]))
    assert isinstance(result, ParseTimeout)
    assert time.monotonic() - started < 8


def test_a_worker_that_never_starts_is_ended_too(job, monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import time; time.sleep(600)")
    with pool(timeout_s=2) as parsers:
        assert isinstance(only(parsers.parse([job("pid")])), ParseTimeout)


@pytest.mark.parametrize("function", ["grow", "jump"])
def test_a_parser_that_takes_all_memory_is_ended(job, function):
    with pool(memory_bytes=300_000_000) as parsers:
        assert isinstance(only(parsers.parse([job(function)])), ParseMemoryExceeded)


@pytest.mark.parametrize(("function", "how"), [("crash", "SIGSEGV"), ("leave", "exit code 3")])
def test_a_parser_that_dies_is_reported(job, function, how):
    with pool() as parsers:
        result = only(parsers.parse([job(function)]))
    assert isinstance(result, WorkerDied)
    assert how in result.detail


def test_an_unexpected_exception_is_corrupt_and_names_no_path(job, tmp_path):
    with pool() as parsers:
        result = only(parsers.parse([job("fail")]))
    assert isinstance(result, CorruptDocument)
    assert str(tmp_path) not in result.message and "KeyError" in result.message


@pytest.mark.parametrize("function", ["fetch", "fetch_by_name"])
def test_a_document_cannot_reach_the_network(job, function):
    with pool() as parsers:
        result = only(parsers.parse([job(function)]))
    assert isinstance(result, DocumentError)


def test_what_libraries_print_does_not_disturb_the_answers(job):
    with pool() as parsers:
        result = only(parsers.parse([job("shout")]))
    assert isinstance(result, ParsedDocument) and result.text == "heard"


def test_every_job_is_answered_once_among_hostile_ones(job, tmp_path):
    jobs = [plain(tmp_path, f"{i}.txt", f"text {i}") for i in range(30)]
    jobs[5:5] = [job("crash", "crash"), job("fail", "fail"), job("leave", "leave")]
    with pool(size=2) as parsers:
        results = list(parsers.parse(iter(jobs)))
    assert sorted(found.source_path for found, _ in results) == sorted(given.source_path for given in jobs)
    texts = {found.source_path: result.text for found, result in results if isinstance(result, ParsedDocument)}
    assert texts == {f"{i}.txt": f"text {i}" for i in range(30)}


def test_a_warm_worker_is_reused_and_replaced_after_its_share(job):
    with pool(recycle_after=3) as parsers:
        pids = [result.text for _, result in parsers.parse(job("pid", str(i)) for i in range(7)) if isinstance(result, ParsedDocument)]
    assert [len(set(pids[i : i + 3])) for i in (0, 3)] == [1, 1]
    assert len(set(pids)) == 3


def test_a_worker_killed_between_jobs_is_replaced(job):
    with pool() as parsers:
        first = only(parsers.parse([job("pid")]))
        assert isinstance(first, ParsedDocument)
        os.kill(int(first.text), signal.SIGKILL)
        psutil.wait_procs([psutil.Process()], timeout=0.2)
        second = only(parsers.parse([job("pid")]))
    assert isinstance(second, ParsedDocument) and second.text != first.text


def test_a_large_answer_arrives_whole(tmp_path):
    text = "ein langer Text, öfter.\n\n" * 200_000
    with pool() as parsers:
        result = only(parsers.parse([plain(tmp_path, "large.txt", text)]))
    assert isinstance(result, ParsedDocument) and result.text == text


def test_leaving_early_ends_what_is_running_and_the_pool_goes_on(job, tmp_path):
    with pool(size=2) as parsers:
        results = parsers.parse([job("sleep", "one"), plain(tmp_path, "two"), job("sleep", "three")])
        assert next(results)[0].source_path == "two"
        results.close()
        assert isinstance(only(parsers.parse([plain(tmp_path, "four")])), ParsedDocument)
    assert not [child for child in psutil.Process().children() if "stemma.parsing.worker" in " ".join(child.cmdline())]


def test_workers_die_with_a_killed_parent(tmp_path, job):
    hanging = job("loop_in_c")
    script = (
        "import sys; from pathlib import Path\n"
        "from stemma.parsing.workers import *\n"
        f"job = ParseJob(Path({str(hanging.path)!r}), 'x', Format('loop', 'hostile_parsers:loop_in_c', 1))\n"
        "list(ParserPool(timeout_s=600, memory_bytes=10**9).parse([job]))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script])
    workers = wait_for(lambda: psutil.Process(parent.pid).children())
    time.sleep(0.5)  # the worker is inside C by now; if it is not yet, it dies the sooner
    parent.kill()
    parent.wait()
    wait_for(lambda: not [worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE])


def wait_for(condition, timeout_s: float = 20.0):
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
    return value


def test_a_pool_can_be_used_from_another_thread(tmp_path):
    with pool() as parsers:
        found: list[object] = []
        for name in ("one", "two"):
            thread = threading.Thread(target=lambda name=name: found.append(only(parsers.parse([plain(tmp_path, name)]))))
            thread.start()
            thread.join()
    assert all(isinstance(result, ParsedDocument) for result in found) and len(found) == 2


def test_a_worker_starts_without_what_only_its_parent_needs():
    code = "import sys, stemma.parsing.worker; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"pydantic", "structlog", "polars", "psycopg", "psutil", "numpy"} & set(imported) == set()
