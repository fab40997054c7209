"""A real Stemma in a home of its own: started, used and killed as a user does it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from stemma.cli.home import supervisor_of

STEMMA = (sys.executable, "-m", "stemma.cli.main")
START_TIMEOUT_S = 180


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@dataclass
class Installation:
    """A home, its library, and what runs in it."""

    home: Path
    library: Path
    service_port: int = field(default_factory=free_port)
    dagster_port: int = field(default_factory=free_port)
    supervisor: subprocess.Popen[bytes] | None = None
    ingested: bool = False

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "STEMMA_HOME": str(self.home), "STEMMA_LIBRARY": str(self.library), "STEMMA_SERVICE_PORT": str(self.service_port),
            "STEMMA_DAGSTER_PORT": str(self.dagster_port), "STEMMA_RECONCILE_INTERVAL_S": "3600",
        }  # fmt: skip

    @staticmethod
    def wait_for(condition: Callable[[], Any], timeout_s: float, what: str) -> Any:
        """The condition's first true value. Fails after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if found := condition():
                return found
            time.sleep(0.1)
        pytest.fail(f"{what} did not happen within {timeout_s:.0f} s")

    @property
    def output(self) -> str:
        """What `stemma up` has printed."""
        return (self.home.parent / "up.log").read_text()

    def run(self, *arguments: str, timeout_s: float = 180) -> subprocess.CompletedProcess[str]:
        """A command, to its end."""
        return subprocess.run([*STEMMA, *arguments], env=self.environment, capture_output=True, text=True, timeout=timeout_s, check=False)

    def json(self, *arguments: str) -> Any:
        """What a command prints with --json."""
        done = self.run(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def up(self) -> None:
        """`stemma up` in the foreground of a process of its own, until everything answers."""
        with (self.home.parent / "up.log").open("wb") as output:
            self.supervisor = subprocess.Popen([*STEMMA, "up"], env=self.environment, stdout=output, stderr=output)

        def ready() -> bool:
            assert self.supervisor.poll() is None, self.output
            holder = supervisor_of(self.home)
            return holder is not None and holder.state == "ready"

        self.wait_for(ready, START_TIMEOUT_S, "the start")

    def is_up(self) -> bool:
        """Whether the supervisor that was started last still runs."""
        return self.supervisor is not None and self.supervisor.poll() is None

    def processes(self) -> list[psutil.Process]:
        """Everything that runs for this home, the supervisor apart: by environment, by command line, by working folder."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.pid in (os.getpid(), self.supervisor and self.supervisor.pid) or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if process.environ().get("STEMMA_HOME") == str(self.home) or str(self.home) in " ".join(process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def kill(self) -> None:
        """kill -9 of the supervisor alone."""
        self.supervisor.send_signal(signal.SIGKILL)
        self.supervisor.wait()

    def end(self) -> None:
        """Whatever is left, at once."""
        if self.supervisor is not None:
            self.kill()
        self.wait_for(lambda: not self.processes(), 60, "the end of everything")


@pytest.fixture(scope="module")
def installation(tmp_path_factory) -> Iterator[Installation]:
    """A home and a library with two documents and a broken one; nothing runs yet."""
    folder = tmp_path_factory.mktemp("installation")
    library = folder / "library"
    (library / "handbook").mkdir(parents=True)
    (library / "handbook" / "leave.md").write_text("# Leave\n\nUnused leave carries over until the end of March.\n")
    (library / "fruit.txt").write_text("Bananas ripen in a bag with an apple.\n")
    (library / "broken.pdf").write_bytes(b"%PDF-1.7\nthis is no PDF\n")
    made = Installation(folder / "home", library)
    yield made
    made.end()


@pytest.fixture
def started(installation) -> Installation:
    """It runs and its library is ingested, whatever the test before left."""
    if not installation.is_up():
        installation.up()
    if not installation.ingested:
        installation.json("ingest")
        installation.ingested = True
    return installation


@pytest.fixture
def stopped(installation, request) -> Installation:
    """Its library is ingested and nothing runs."""
    if not installation.ingested:
        request.getfixturevalue("started")
    if installation.is_up():
        assert installation.run("down").returncode == 0
        installation.supervisor.wait(timeout=10)
    return installation
