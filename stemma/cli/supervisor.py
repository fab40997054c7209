"""The supervisor: starts PostgreSQL, Dagster and the query service in order, keeps them running, and ends them in order."""

import contextlib
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from stemma import orchestrator
from stemma.cli.addresses import free_port, listening_problem, port_problem, service_problem
from stemma.cli.child import Child, ChildFailed, Restarts, wait_until_ready
from stemma.cli.home import hold_home
from stemma.cli.installation import (
    child_environment,
    prepare_dagster_home,
    rotated_log,
    storage_environment,
    write_workspace,
)
from stemma.cli.postgres import PostgresFailed, clear_stale_server, postmaster_of, start_server, stop_server
from stemma.cli.processes import end_processes, leftover_processes, marked_processes
from stemma.cli.watchdog import start_watchdog, wait_for_watchdog
from stemma.errors import Unavailable
from stemma.library.walk import LibraryUnavailable
from stemma.settings import ENV_PREFIX, Settings
from stemma.store import embedded
from stemma.store.dumps import upgrade_safely
from stemma.store.postgres import connect

READY_TIMEOUT_S = 180.0
GRACE_S = 10.0
WATCHDOG_TIMEOUT_S = 90.0
CODE_SERVER = "code"
Report = Callable[[str], None]


class PortTaken(Unavailable):
    """A port that Stemma needs cannot be listened on, mostly because another program does."""

    code, remedy = "port_taken", "Stop that program, or set the variable to a free port."


class Supervisor:
    """What runs, while it runs."""

    def __init__(self, settings: Settings, children: list[Child], ensure_watchdog: Callable[[], None], *, started_at: datetime) -> None:
        self.settings = settings
        self.started_at = started_at
        """When the first child was started: work that the start set off counts from then on."""
        self._children = children
        self._ensure_watchdog = ensure_watchdog
        self._server = Restarts("PostgreSQL", settings.home / "postgres" / "log")

    def check(self) -> None:
        """Start again what ended by itself; to be called about once a second. Raises ChildFailed for what does not stay up."""
        self._ensure_watchdog()
        if self.settings.postgres_url is None and postmaster_of(self.settings.home) is None and self._server.due():
            with contextlib.suppress(PostgresFailed):  # its backends may be slow to go; `due` says when it was too often
                start_server(self.settings.home)
        for child in self._children:
            child.check()

    def wait(self) -> None:
        """Keep everything running until this process is interrupted."""
        while True:
            self.check()
            time.sleep(1)


@contextmanager
def supervised(settings: Settings, *, report: Report, workspace: Path | None = None) -> Generator[Supervisor]:
    """Everything started and answering, for the time of the block; nothing of it runs afterwards, however the block ends.

    Args:
        report: called with a short sentence per step.
        workspace: Dagster's workspace file; unless given, one that names a code server of the project's definitions.
    Raises:
        HomeBusy, PortTaken, LibraryUnavailable: before anything is started.
        ChildFailed, PostgresFailed, StoreUnavailable, MigrationFailed and its kin: what was started is ended again.
    """
    marker = uuid.uuid4().hex
    home = settings.home
    with hold_home(home, role="supervisor", patience_s=20.0) as lock, ExitStack() as cleanup:
        lock.update(
            library=str(settings.library), service_host=settings.service_host, service_port=settings.service_port,
            dagster_port=settings.dagster_port,
        )  # fmt: skip
        _clear_leftovers(home, report)
        _require_free_ports(settings)
        _require_library(settings)
        ensure_watchdog = cleanup.enter_context(_watchdog(settings, marker))
        cleanup.enter_context(_database(settings, report))
        prepare_dagster_home(settings)
        environment = child_environment(settings, marker) | storage_environment(settings)
        cleanup.callback(end_processes, lambda: marked_processes(marker), grace_s=GRACE_S)
        _recover_runs(settings, environment, report)
        children = _children(settings, workspace, environment)
        report("Starting Dagster and the query service …")
        started_at = datetime.now(UTC)
        for child in children:  # callbacks run in the other order: the query service is the first to end
            cleanup.callback(child.stop, grace_s=GRACE_S)
            child.start()
            if child.name == CODE_SERVER:  # who finds nobody there keeps saying so until the definitions are reloaded
                wait_until_ready([child], timeout_s=READY_TIMEOUT_S)
        wait_until_ready(children, timeout_s=READY_TIMEOUT_S)
        cleanup.callback(lock.update, state="stopping")
        lock.update(state="ready")
        yield Supervisor(settings, children, ensure_watchdog, started_at=started_at)


def _clear_leftovers(home: Path, report: Report) -> None:
    """End what an earlier supervisor left running; its watchdog is given the time to do so first."""
    wait_for_watchdog(home, timeout_s=WATCHDOG_TIMEOUT_S)
    if n_ended := end_processes(lambda: leftover_processes(home), grace_s=GRACE_S):
        report(f"Ended {n_ended} processes that an earlier start had left.")
    clear_stale_server(home)


def _require_library(settings: Settings) -> None:
    """Make the default one; a folder that somebody named and that is not there is a slip of the pen, or a disk that is away."""
    if "library" in settings.model_fields_set:
        if not settings.library.is_dir():
            state = "is no folder" if settings.library.exists() else "does not exist"
            raise LibraryUnavailable(f"The library {settings.library} {state}")
        return
    try:
        settings.library.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LibraryUnavailable(f"The library {settings.library} cannot be made: {error.strerror}") from error


def _require_free_ports(settings: Settings) -> None:
    wanted = {"SERVICE_PORT": (settings.service_host, settings.service_port), "DAGSTER_PORT": ("127.0.0.1", settings.dagster_port)}
    if settings.service_port == settings.dagster_port:
        raise PortTaken(f"{ENV_PREFIX}SERVICE_PORT and {ENV_PREFIX}DAGSTER_PORT are both {settings.dagster_port}")
    for name, (host, port) in wanted.items():
        if problem := port_problem(host, port):
            raise PortTaken(f"port {port} on {host} ({ENV_PREFIX}{name}) cannot be used: {problem}")


@contextmanager
def _watchdog(settings: Settings, marker: str) -> Generator[Callable[[], None]]:
    environment = child_environment(settings, marker)
    log = rotated_log(settings.home, "watchdog")

    def begin() -> subprocess.Popen[bytes]:
        return start_watchdog(marker, settings.home, embedded=settings.postgres_url is None, log=log, environment=environment)

    current = [begin()]

    def ensure() -> None:
        if current[0].poll() is not None:
            current[0] = begin()

    try:
        yield ensure
    finally:
        with contextlib.suppress(BrokenPipeError):
            current[0].stdin.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            current[0].wait(timeout=GRACE_S)


@contextmanager
def _database(settings: Settings, report: Report) -> Generator[None]:
    """A migrated corpus database and an empty or known one for Dagster, on a server that is stopped afterwards if it is ours."""
    with ExitStack() as cleanup:
        if settings.postgres_url is None:
            report("Starting PostgreSQL …")
            cleanup.callback(stop_server, settings.home)
            start_server(settings.home)
        else:
            embedded.ensure_database(settings.postgres_url)
            embedded.ensure_database(embedded.dagster_url(settings))
        url = embedded.postgres_url(settings)
        with connect(url) as connection:
            for name in upgrade_safely(connection, url, settings.home):
                report(f"Applied {name}")
        yield


def _recover_runs(settings: Settings, environment: dict[str, str], report: Report) -> None:
    """Dagster's part of the clearing up, in a process of its own: this one never imports Dagster."""
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.recovery"], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        raise ChildFailed("Dagster's storage cannot be opened", done.stderr.strip()[-2_000:])
    for line in done.stdout.splitlines():
        report(line)


def _children(settings: Settings, workspace: Path | None, environment: dict[str, str]) -> list[Child]:
    """Dagster's code server, webserver and daemon, and the query service, in the order in which they start.

    A given workspace brings its own code servers.
    """
    python = (sys.executable, "-m")
    code_servers: list[Child] = []
    if workspace is None:
        port = free_port()
        workspace = write_workspace(settings, port)
        command = (*python, "pipelines.code_server", "-h", "127.0.0.1", "-p", str(port))
        log = rotated_log(settings.home, CODE_SERVER)
        code_servers = [
            Child(CODE_SERVER, "Dagster's code server", command, environment, log, lambda: listening_problem("127.0.0.1", port))
        ]
    dagster = (*python, "dagster_webserver", "-h", "127.0.0.1", "-p", str(settings.dagster_port), "-w", str(workspace))
    daemon = (*python, "dagster._daemon", "run", "-w", str(workspace))
    query = (*python, "stemma.service")
    return [
        *code_servers,
        Child(
            "webserver",
            "Dagster's webserver",
            dagster,
            environment,
            rotated_log(settings.home, "webserver"),
            lambda: _webserver_problem(settings),
        ),
        Child("daemon", "Dagster's daemon", daemon, environment, rotated_log(settings.home, "daemon"), lambda: _daemon_problem(settings)),
        Child("service", "the query service", query, environment, rotated_log(settings.home, "service"), lambda: service_problem(settings)),
    ]


def _webserver_problem(settings: Settings) -> str | None:
    if not orchestrator.is_up(settings):
        return "it does not answer"
    health = orchestrator.health(settings)
    if health.load_error is not None:
        raise ChildFailed("Dagster cannot load the project's definitions", health.load_error)
    return health.problem if health.loading else None


def _daemon_problem(settings: Settings) -> str | None:
    return orchestrator.health(settings).problem
