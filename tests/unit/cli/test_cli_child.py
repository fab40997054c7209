"""A child that ends is started again, a few times; one that does not start is told of with its last words."""

import sys
import time

import pytest

from stemma.cli import child as child_module
from stemma.cli.child import Child, ChildFailed, Restarts, wait_until_ready


@pytest.fixture
def child(tmp_path):
    made = []

    def make(code: str, problem=lambda: None) -> Child:
        made.append(Child("part", "The part", (sys.executable, "-c", code), {}, tmp_path / "part.log", problem))
        return made[-1]

    yield make
    for one in made:
        one.stop(grace_s=5)


def test_one_that_ends_while_starting_fails_with_the_end_of_its_log(child):
    broken = child("raise SystemExit('no such thing')", problem=lambda: "not yet")
    broken.start()
    with pytest.raises(ChildFailed, match=r"The part ended while it was starting\. Its log") as failure:
        wait_until_ready([broken], timeout_s=30)
    assert failure.value.log == "no such thing"


def test_one_that_never_becomes_ready_fails_with_its_reason(child):
    slow = child("import time; time.sleep(60)", problem=lambda: "still loading")
    slow.start()
    with pytest.raises(ChildFailed, match="The part is not ready after 1 s: still loading"):
        wait_until_ready([slow], timeout_s=1)


def test_one_that_ended_is_started_again_after_a_second(child):
    brief = child("import time; time.sleep(60)")
    brief.start()
    brief._process.kill()
    brief._process.wait()
    deadline = time.monotonic() + 10
    while not brief.is_running() and time.monotonic() < deadline:
        brief.check()
        time.sleep(0.05)
    assert brief.is_running()


def test_waits_double_and_the_sixth_end_is_the_last(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(child_module.time, "monotonic", lambda: now[0])
    restarts, waits = Restarts("The part", tmp_path / "part.log"), []
    for _ in range(5):
        began = now[0]
        while not restarts.due():
            now[0] += 0.5
        waits.append(now[0] - began)
    assert waits == [1, 2, 4, 8, 16]
    with pytest.raises(ChildFailed, match="The part ended 6 times"):
        restarts.due()


def test_after_five_good_minutes_the_count_begins_anew(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(child_module.time, "monotonic", lambda: now[0])
    restarts = Restarts("The part", tmp_path / "part.log")
    for _ in range(20):
        while not restarts.due():
            now[0] += 0.5
        now[0] += 301


def test_stopping_ends_one_that_does_not_heed(child):
    stubborn = child("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)")
    stubborn.start()
    stubborn.stop(grace_s=1)
    assert not stubborn.is_running()
