"""`stemma up` and `stemma down`: everything starts with one command and ends with one."""

import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from stemma.cli.console import command, note
from stemma.errors import Unavailable

STOP_TIMEOUT_S = 120.0
DETACHED_START_TIMEOUT_S = 300.0


class DoesNotStop(Unavailable):
    """The supervisor was asked to stop and still runs."""

    code, remedy = "does_not_stop", "Look at `logs` in STEMMA_HOME; as a last resort `kill -9` its pid: its watchdog ends the rest."


@command
def up(
    *,
    library: Annotated[str | None, typer.Option(help="Folder of documents; default: STEMMA_LIBRARY, else `library` in the home.")] = None,
    tour: Annotated[bool, typer.Option("--tour", help="Ingest the library (the example one unless told), then show a search.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Return when everything answers, and go on in the background.")] = False,
) -> None:
    """Start everything, and keep it running.

    That is PostgreSQL, Dagster and the query service. Stays in the foreground; Ctrl-C stops everything. What an earlier start left behind after a crash is cleared first.

    \b
    Examples:
      stemma up --library ~/Documents
      STEMMA_SERVICE_PORT=9000 stemma up
      stemma up --detach && stemma ingest --wait && stemma down
    """
    from stemma.cli.addresses import addresses
    from stemma.cli.supervisor import supervised
    from stemma.cli.tour import follow_first_ingest, library_of_the_tour, show_example_search
    from stemma.settings import InvalidSetting, load_settings

    if library is not None and not library.strip():
        raise InvalidSetting("LIBRARY cannot be empty")
    settings = load_settings() if library is None else load_settings(library=Path(library))
    if tour and library is None and "library" not in settings.model_fields_set:
        settings = load_settings(library=library_of_the_tour())
    if detach:
        _start_detached(settings.home, settings.library if "library" in settings.model_fields_set else None)
        _print_addresses(addresses(settings))
        return
    try:
        with _interruptible(), supervised(settings, report=note) as supervisor:
            if tour:
                follow_first_ingest(settings, since=supervisor.started_at, meanwhile=supervisor.check)
            _print_addresses(addresses(settings))
            if tour:
                show_example_search(settings)
            note("Ctrl-C stops everything.")
            supervisor.wait()
    except KeyboardInterrupt:
        note("Stopped.")


@command
def down() -> None:
    """Stop what `stemma up` started.

    Ends everything in order and waits for it; does nothing when nothing runs.

    \b
    Example:
      stemma down
    """
    import psutil

    from stemma.cli.home import supervisor_of
    from stemma.settings import load_settings

    home = load_settings().home
    holder = supervisor_of(home)
    if holder is None:
        note(f"Nothing runs in {home}.")
        return
    deadline = time.monotonic() + STOP_TIMEOUT_S
    with suppress(psutil.NoSuchProcess):  # it is gone: what was asked for
        supervisor = psutil.Process(holder.pid)
        supervisor.terminate()
        while supervisor.status() != psutil.STATUS_ZOMBIE:
            if time.monotonic() > deadline:
                raise DoesNotStop(f"pid {holder.pid} still runs after {STOP_TIMEOUT_S:.0f} s")
            time.sleep(0.1)
    note("Stopped.")


@contextmanager
def _interruptible() -> Generator[None]:
    """Let the first Ctrl-C, SIGTERM or SIGHUP raise KeyboardInterrupt; later ones are ignored, since stopping is under way."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        for name in signals:
            signal.signal(name, say_so)
        note("Stopping …")
        raise KeyboardInterrupt

    def say_so(_signal: int, _frame: FrameType | None) -> None:
        note("Already stopping …")

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {name: signal.signal(name, interrupt) for name in signals}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _start_detached(home: Path, library: Path | None) -> None:
    """Start a supervisor in a session of its own and wait until everything answers. Raises ChildFailed.

    `library` is one that somebody named; None: the default, which is made where it is missing.
    """
    from stemma.cli.child import ChildFailed
    from stemma.cli.home import supervisor_of
    from stemma.cli.installation import log_tail, rotated_log

    log = rotated_log(home, "supervisor")
    with log.open("ab") as output:
        beginning = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "stemma.cli.main", "up", *(["--library", str(library)] if library else [])],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + DETACHED_START_TIMEOUT_S
    while True:
        holder = supervisor_of(home)
        if holder is not None and holder.pid == process.pid and holder.state == "ready":
            return
        if process.poll() is not None or time.monotonic() > deadline:
            raise ChildFailed("The supervisor in the background did not come up", log_tail(log, since=beginning))
        time.sleep(0.2)


def _print_addresses(addresses: dict[str, str]) -> None:
    print()
    for name, address in addresses.items():
        print(f"  {name:<12} {address}")
    print(flush=True)
