"""The processes of one supervisor, found by a marker in their environment, however deep and in whatever session they run."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

MARKER = "STEMMA_SUPERVISOR"
"""Environment variable of everything a supervisor starts; its value is new with every start."""


def marked_processes(marker: str) -> list[psutil.Process]:
    """The running processes that carry this marker."""
    return _where(lambda environment: environment.get(MARKER) == marker)


def leftover_processes(home: Path) -> list[psutil.Process]:
    """What supervisors of this home started and left; right only for the holder of the home's lock."""
    return _where(lambda environment: MARKER in environment and environment.get("STEMMA_HOME") == str(home))


def end_processes(find: Callable[[], list[psutil.Process]], *, grace_s: float) -> int:
    """Ask every process that `find` names to end, end those that still run after `grace_s`, and return how many there were.

    `find` is asked again until it names none: what is ending may have started another.
    """
    ended: set[int] = set()
    deadline = time.monotonic() + grace_s
    asked: set[int] = set()
    while running := find():
        patient = time.monotonic() < deadline
        for process in running:
            ended.add(process.pid)
            if not patient:
                _signal(process.kill)
            elif process.pid not in asked:
                asked.add(process.pid)
                _signal(process.terminate)
        psutil.wait_procs(running, timeout=0.2)
        if time.monotonic() > deadline + 10:  # unkillable: in the kernel, waiting for a device
            break
    return len(ended)


def _where(matches: Callable[[Mapping[str, str]], bool]) -> list[psutil.Process]:
    own = psutil.Process().pid
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.pid != own and process.status() != psutil.STATUS_ZOMBIE and matches(process.environ()):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):  # ended meanwhile, or another user's
            continue
    return found


def _signal(send: Callable[[], None]) -> None:
    with suppress(psutil.NoSuchProcess):
        send()
