"""The embedded PostgreSQL as commands need it: joined where it runs, started for as long as it is needed where it does not."""

import subprocess
import time
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from stemma.cli.home import hold_home, supervisor_of
from stemma.errors import Unavailable
from stemma.settings import Settings
from stemma.store import embedded, migrations
from stemma.store.dumps import upgrade_safely
from stemma.store.postgres import connect

START_TIMEOUT_S = 120.0


class PostgresFailed(Unavailable):
    """The embedded PostgreSQL server did not start."""

    code, remedy = "postgres_failed", "Its log is `postgres/log` in STEMMA_HOME; `stemma doctor` checks disk and permissions."


def postmaster_of(home: Path) -> psutil.Process | None:
    """The running server of this home, found by its command line: a pid file may be stale, torn or gone."""
    folder = embedded.data_folder(home)
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError, ValueError):
            if process.name() != "postgres" or process.status() == psutil.STATUS_ZOMBIE:
                continue
            arguments = process.cmdline()
            if Path(arguments[arguments.index("-D") + 1]).samefile(folder):
                return process
    return None


def clear_stale_server(home: Path) -> None:
    """Remove what a server that is gone left behind, so that a recycled pid is not taken for it. Only for the holder of the home."""
    folder = embedded.data_folder(home)
    postmaster = postmaster_of(home)
    if postmaster is not None:
        if _recorded_pid(folder) == postmaster.pid:
            return
        _end_server(postmaster)  # without its pid file nobody can join it
    (folder / "postmaster.pid").unlink(missing_ok=True)
    for lock in embedded.socket_folder(home).glob(".s.PGSQL.*"):
        lock.unlink(missing_ok=True)


def start_server(home: Path) -> str:
    """Start or join the home's server and return the URL of the corpus database. Raises PostgresFailed."""
    clear_stale_server(home)
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            return embedded.start_embedded(home)
        except (subprocess.SubprocessError, AssertionError, OSError) as error:
            # pg_ctl waits a minute; recovery after a crash may take longer, and then the server is there but not ready.
            if postmaster_of(home) is None or time.monotonic() > deadline:
                raise PostgresFailed(f"the embedded PostgreSQL did not start: {_log_tail(home) or error}") from error
            time.sleep(0.5)


def stop_server(home: Path) -> None:
    """Stop the home's server and wait for it; nothing happens when none runs."""
    postmaster = postmaster_of(home)
    if postmaster is None:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # platformdirs on machines without XDG_RUNTIME_DIR
            embedded.stop_embedded(home)
    except subprocess.CalledProcessError:  # pg_ctl gave up, or lost the race with a server that was ending anyway
        _end_server(postmaster)


@contextmanager
def server_url(settings: Settings) -> Generator[str]:
    """The URL of the corpus database, for the time of the block, whatever its schema is.

    A server that STEMMA_POSTGRES_URL names or that the supervisor runs is used as it is. Otherwise the embedded one is started, under
    the home's lock, and stopped afterwards.

    Raises:
        embedded.NotRunning: there is no embedded database yet, since `stemma up` never ran.
    """
    home = settings.home
    if settings.postgres_url is not None or supervisor_of(home) is not None:
        yield embedded.postgres_url(settings)
        return
    if not embedded.data_folder(home).is_dir():
        raise embedded.NotRunning(f"{home} holds no database yet")
    with hold_home(home, role="command", patience_s=20.0):
        try:
            yield start_server(home)
        finally:
            stop_server(home)


@contextmanager
def corpus_database(settings: Settings) -> Generator[str]:
    """Like `server_url`, with a schema that is this release's: one that is not served by anybody is upgraded first.

    Raises:
        PendingMigrations, MigrationDrift, NewerSchema: the schema is another, and a server that others use is not touched.
    """
    with server_url(settings) as url:
        with connect(url) as connection:
            if settings.postgres_url is None and supervisor_of(settings.home) is None:
                upgrade_safely(connection, url, settings.home)
            else:
                migrations.require_current(connection)
        yield url


def _recorded_pid(folder: Path) -> int | None:
    try:
        lines = (folder / "postmaster.pid").read_text("utf-8").splitlines()
        return int(lines[0]) if len(lines) == 8 else None
    except (OSError, ValueError, IndexError):
        return None


def _end_server(postmaster: psutil.Process) -> None:
    with suppress(psutil.NoSuchProcess):
        postmaster.send_signal(2)  # "fast": PostgreSQL's documentation, "Shutting Down the Server"
        with suppress(psutil.TimeoutExpired):
            postmaster.wait(30)
            return
        postmaster.send_signal(3)  # "immediate"
        postmaster.wait(10)


def _log_tail(home: Path, lines: int = 5) -> str:
    try:
        return " / ".join((embedded.data_folder(home) / "log").read_text("utf-8", errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
