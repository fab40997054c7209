"""The started product as its user has it: `stemma up` in an empty home on a copy of the example library, and a browser."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser

PROJECT = Path(__file__).resolve().parents[2]
SCREENSHOTS = PROJECT / "screenshots"
START_LIMIT_S = 240


@dataclass
class Product:
    """A running installation."""

    home: Path
    library: Path
    environment: dict[str, str]
    page: str
    dagster: str
    socket_log: Path

    def stemma(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess:
        """Run the command against this installation."""
        command = [sys.executable, "-m", "stemma.cli.main", *arguments]
        done = subprocess.run(
            command, env=self.environment, cwd=self.home, capture_output=True, text=True, timeout=START_LIMIT_S, check=False
        )
        assert not check or done.returncode in (0, 1), done.stderr
        return done

    def ingest(self, *arguments: str) -> dict:
        """`stemma ingest`, waited for; its closing object."""
        return json.loads(self.stemma("ingest", "--wait", "--json", *arguments).stdout.splitlines()[-1])

    def search(self, query: str, **request) -> list[dict]:
        """The hits of a search over HTTP."""
        answer = httpx.post(f"{self.page}/api/search", json={"query": query, **request}, timeout=60)
        answer.raise_for_status()
        return answer.json()["hits"]

    def write(self, path: str, content: str) -> None:
        """Write a file of the library as an editor would some seconds ago, so that its timestamp has settled."""
        target = self.library / path
        target.write_text(content, "utf-8")
        past = time.time() - 5
        os.utime(target, (past, past))


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(home: Path, library: Path, *, log: Path) -> tuple[subprocess.Popen, Product]:
    """Start `stemma up` and wait until it answers."""
    service, dagster = free_port(), free_port()
    environment = os.environ | {
        "STEMMA_HOME": str(home),
        "STEMMA_LIBRARY": str(library),
        "STEMMA_SERVICE_PORT": str(service),
        "STEMMA_DAGSTER_PORT": str(dagster),
        "STEMMA_PRUNE_GRACE_S": "0",
        "PYTHONPATH": str(PROJECT / "tests" / "e2e" / "socket_guard"),
        "SOCKET_GUARD_LOG": str(log),
    }
    output = (home.parent / "up.log").open("a")
    process = subprocess.Popen([sys.executable, "-m", "stemma.cli.main", "up"], env=environment, stdout=output, stderr=output)
    product = Product(home, library, environment, f"http://127.0.0.1:{service}", f"http://127.0.0.1:{dagster}", log)
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        assert process.poll() is None, (home.parent / "up.log").read_text()
        try:
            if (
                httpx.get(f"{product.page}/api/health", timeout=5).json()["ready"]
                and httpx.get(f"{product.dagster}/server_info", timeout=5).is_success
            ):
                return process, product
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise AssertionError(f"not ready after {START_LIMIT_S} s: {(home.parent / 'up.log').read_text()}")


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    """`stemma up` on a copy of the example library, everything ingested."""
    folder = Path(tempfile.mkdtemp(prefix="stemma-e2e-"))
    library = folder / "library"
    shutil.copytree(PROJECT / "examples" / "library", library)
    process, running = start(folder / "home", library, log=folder / "sockets.log")
    try:
        running.ingest()
        yield running
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def page(browser: Browser):
    """A tab of the size of a laptop's screen; errors in its console fail the test."""
    SCREENSHOTS.mkdir(exist_ok=True)
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.set_default_timeout(60_000)
    yield tab
    tab.close()
