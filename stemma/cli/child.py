"""A process that the supervisor keeps running."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stemma.cli.installation import log_tail
from stemma.errors import Unavailable

MAX_RESTARTS = 5
HEALTHY_AFTER_S = 300.0


class ChildFailed(Unavailable):
    """A part of Stemma does not start, or does not stay up."""

    code, remedy = "child_failed", "Its log is in `logs` in STEMMA_HOME; `stemma doctor` says what is amiss."

    def __init__(self, what: str, log: str = "") -> None:
        super().__init__(what)
        self.log = log
        """The end of its log, which the command line shows before the error."""


class Restarts:
    """How often something ended by itself, and when it may be started again: after 1, 2, 4, 8 and 16 seconds, then never."""

    def __init__(self, title: str, log: Path) -> None:
        self.title = title
        self._log = log
        self._count = 0
        self._last = time.monotonic()
        self._at: float | None = None

    def due(self) -> bool:
        """To be asked while the thing is down: whether it is to be started now. Raises ChildFailed when it ended too often."""
        now = time.monotonic()
        if self._at is None:
            if now - self._last > HEALTHY_AFTER_S:
                self._count = 0
            if self._count >= MAX_RESTARTS:
                raise ChildFailed(f"{self.title} ended {self._count + 1} times; its last words", log_tail(self._log))
            self._at = now + float(2**self._count)
            self._count += 1
        if now < self._at:
            return False
        self._at, self._last = None, now
        return True


@dataclass(eq=False)
class Child:
    """One process in a session of its own, so that a Ctrl-C at the terminal reaches the supervisor alone."""

    name: str
    title: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    problem: Callable[[], str | None]
    """Why the process does not do its work yet, None when it does; may raise Unavailable."""

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._restarts = Restarts(self.title, self.log)

    def start(self) -> None:
        """Start it; whether it works is for `problem` to say."""
        with self.log.open("ab") as output:
            self._log_start = output.tell()
            self._process = subprocess.Popen(
                list(self.command),
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def last_words(self) -> str:
        """The end of what it has logged since it was started last."""
        return log_tail(self.log, since=self._log_start)

    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def check(self) -> None:
        """Start it again if it ended, after a growing wait. Raises ChildFailed when that was too often."""
        if not self.is_running() and self._restarts.due():
            self.start()

    def stop(self, *, grace_s: float) -> None:
        """Ask the process to end, and end it if it does not within `grace_s`. What it started itself is left to the caller."""
        if self._process is None or not self.is_running():
            return
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=grace_s)
            return
        self._process.kill()
        self._process.wait(timeout=grace_s)


def wait_until_ready(children: Sequence[Child], *, timeout_s: float) -> None:
    """Return when every child does its work. Raises ChildFailed, with the end of its log, for one that ends or takes too long."""
    deadline = time.monotonic() + timeout_s
    waiting = list(children)
    while waiting:
        problems: dict[Child, str] = {}
        for child in waiting:
            if not child.is_running():
                raise ChildFailed(f"{child.title} ended while it was starting", child.last_words)
            try:
                problem = child.problem()
            except ChildFailed:
                raise
            except Unavailable as error:
                problem = str(error)
            if problem is not None:
                problems[child] = problem
        waiting = list(problems)
        if waiting and time.monotonic() > deadline:
            late = waiting[0]
            raise ChildFailed(f"{late.title} is not ready after {timeout_s:.0f} s: {problems[late]}", late.last_words)
        if waiting:
            time.sleep(0.25)
