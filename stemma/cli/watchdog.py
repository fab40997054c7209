"""The watchdog: a process of its own session that outlives its supervisor just long enough to end what that one started.

It reads a pipe whose other end the supervisor holds. The end of the pipe means that the supervisor is gone, however it went.
Run as `python -m stemma.cli.watchdog MARKER HOME EMBEDDED`, with the pipe as standard input.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from stemma.cli.home import holder_of
from stemma.cli.processes import MARKER, end_processes, marked_processes

LOCK_FILE = "watchdog.lock"
GRACE_S = 5.0


def start_watchdog(marker: str, home: Path, *, embedded: bool, log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the watchdog of this process. Closing its `stdin`, or dying, makes it act; it then ends by itself."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "stemma.cli.watchdog", marker, str(home), str(int(embedded))],
            stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True,
            env={**environment, MARKER: f"watchdog of {marker}"},  # not among those it ends
        )  # fmt: skip


def wait_for_watchdog(home: Path, *, timeout_s: float) -> bool:
    """Wait until the watchdog of an earlier supervisor of this home has finished; False when it has not."""
    deadline = time.monotonic() + timeout_s
    descriptor = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.05)
    finally:
        os.close(descriptor)


def main(marker: str, home: Path, *, embedded: bool) -> None:
    """Wait for the end of the pipe, then end every marked process, then stop PostgreSQL."""
    for name in (signal.SIGINT, signal.SIGHUP):  # meant for the supervisor; this process follows it
        signal.signal(name, signal.SIG_IGN)
    lock = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # held until this process ends: the next supervisor waits for it
    while os.read(sys.stdin.fileno(), 4_096):
        pass
    ended = end_processes(lambda: marked_processes(marker), grace_s=GRACE_S)
    if ended:
        print(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} the supervisor was gone: ended {ended} processes", flush=True)
    # Whoever holds the home now waits for this process's lock and then joins the server instead of starting one.
    if embedded and holder_of(home) is None:
        from stemma.cli.postgres import stop_server  # PostgreSQL's client is only needed now

        stop_server(home)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), embedded=bool(int(sys.argv[3])))
