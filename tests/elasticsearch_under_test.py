"""A server that speaks Elasticsearch's protocol, for tests: noida-db's, pinned in constraints.txt, or one that the environment names.

`ELASTICSEARCH_UNDER_TEST=http://127.0.0.1:9200 make test` runs the same tests against a server of version 8 or 9.
"""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from elasticsearch import Elasticsearch, TransportError

from stemma.lexical.elasticsearch_server import connect
from stemma.settings import Settings

VARIABLE = "ELASTICSEARCH_UNDER_TEST"
DEADLINE_S = 30.0


@cache
def client_of_server_under_test() -> Elasticsearch:
    """One client per process; a process that a test starts inherits the variable."""
    return connect(Settings(elasticsearch_url=os.environ[VARIABLE]))


def server_under_test(folder: Path) -> Iterator[str]:
    """URL of the server while the generator is open; for fixtures."""
    if given := os.environ.get(VARIABLE):
        yield given
        return
    with RunningServer(folder) as server:
        os.environ[VARIABLE] = server.url
        try:
            yield server.url
        finally:
            del os.environ[VARIABLE]


class RunningServer:
    """A server of its own on a free port, whose entries lie in a folder and outlive it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        binary = files("noida_db").joinpath("noida-db")
        self._process = subprocess.Popen(
            [str(binary), "start", "--data-dir", str(self._folder), "--only", "elasticsearch", "--elasticsearch-port", str(self._port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + DEADLINE_S
        with Elasticsearch(self.url, max_retries=0) as client:
            while True:
                try:
                    client.info()
                    return
                except TransportError:
                    assert self._process.poll() is None, "the server has ended"
                    assert time.monotonic() < deadline, "the server does not answer"

    def stop(self) -> None:
        """Stop it; what was written stays."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(DEADLINE_S)
            self._process = None

    def __enter__(self) -> "RunningServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
