"""The project's own dagster.yaml and workspace files, as someone who knows Dagster starts them: a file in the library becomes searchable."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from stemma.store.embedded import DAGSTER_SUFFIX, beside, ensure_database
from stemma.store.postgres import connect

PROJECT = Path(__file__).resolve().parents[3]
PUBLISHED_WITHIN_S = 300
PYTHON = (sys.executable, "-m")


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@pytest.fixture
def environment(database_url, tmp_path) -> dict[str, str]:
    """What docs/operations.md says is to be set, and a library with one document."""
    storage = beside(database_url, DAGSTER_SUFFIX)
    ensure_database(storage)
    (tmp_path / "dagster").mkdir()
    shutil.copy(PROJECT / "dagster.yaml", tmp_path / "dagster")
    (tmp_path / "library").mkdir()
    document = tmp_path / "library" / "heron.txt"
    document.write_text("A heron stands in the reeds.")
    os.utime(document, (1_700_000_000, 1_700_000_000))
    return os.environ | {
        "STEMMA_HOME": str(tmp_path / "home"), "STEMMA_LIBRARY": str(tmp_path / "library"), "STEMMA_POSTGRES_URL": database_url,
        "STEMMA_DAGSTER_STORAGE_URL": storage.replace("postgresql://", "postgresql+psycopg2://"), "DAGSTER_HOME": str(tmp_path / "dagster"),
        "STEMMA_CODE_HOST": "127.0.0.1", "STEMMA_CODE_PORT": free_port(),
    }  # fmt: skip


@contextmanager
def started(command: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The command in a process group of its own; the whole group is ended afterwards."""
    process = subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        for name in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(process.pid, name)
                process.wait(timeout=20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


def wait_until_published(environment: dict[str, str], processes: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + PUBLISHED_WITHIN_S
    with connect(environment["STEMMA_POSTGRES_URL"]) as connection:
        connection.autocommit = True
        while connection.execute("SELECT source_path FROM documents").fetchall() != [("heron.txt",)]:
            assert time.monotonic() < deadline, "nothing was published"
            assert all(process.poll() is None for process in processes)
            time.sleep(0.25)


@pytest.mark.slow
def test_dagster_dev_alone_ingests_the_library(environment):
    with started((*PYTHON, "dagster", "dev", "-h", "127.0.0.1", "-p", free_port()), environment) as dev:
        wait_until_published(environment, [dev])


@pytest.mark.slow
def test_code_server_webserver_and_daemon_as_processes_of_their_own_ingest_the_library(environment):
    workspace = ("-w", "workspace.server.yaml")
    commands = (
        (*PYTHON, "pipelines.code_server", "-h", "127.0.0.1", "-p", environment["STEMMA_CODE_PORT"]),
        (*PYTHON, "dagster_webserver", "-h", "127.0.0.1", "-p", free_port(), *workspace),
        (*PYTHON, "dagster._daemon", "run", *workspace),
    )
    with ExitStack() as running:
        wait_until_published(environment, [running.enter_context(started(command, environment)) for command in commands])
