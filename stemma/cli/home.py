"""Who works in a home: one process at a time, held by a file lock that dies with its holder."""

import fcntl
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from stemma.errors import ConfigurationError, Unavailable
from stemma.settings import Settings, load_settings

LOCK_FILE = "stemma.lock"
_RECORD_BYTES = 4_096


class HomeBusy(Unavailable):
    """Another process works in this home."""

    code, remedy = "home_busy", "Stop it with `stemma down`, or use another STEMMA_HOME."


class HomeUnusable(ConfigurationError):
    """The home cannot be made or written."""

    code, remedy = "home_unusable", "Point STEMMA_HOME to a folder that this user may write."


@dataclass(frozen=True)
class Holder:
    """What the holder of a home says of itself."""

    pid: int
    role: Literal["supervisor", "command"]
    state: Literal["starting", "ready", "stopping"] = "starting"
    library: str | None = None
    """The library that a supervisor serves; other commands then mean the same one."""
    service_host: str | None = None
    service_port: int | None = None
    dagster_port: int | None = None
    """Where its servers listen, whatever the environment of another terminal says."""


class HomeLock:
    """The lock while it is held; its record is what others read."""

    def __init__(self, descriptor: int, holder: Holder) -> None:
        self._descriptor = descriptor
        self.holder = holder
        self._write()

    def update(self, **changes: str | int) -> None:
        """Replace fields of the record."""
        self.holder = replace(self.holder, **changes)  # type: ignore[arg-type]
        self._write()

    def _write(self) -> None:
        record = json.dumps(asdict(self.holder)).encode()
        os.pwrite(self._descriptor, record.ljust(_RECORD_BYTES), 0)  # one write of one size: a reader never meets half a record


@contextmanager
def hold_home(home: Path, *, role: Literal["supervisor", "command"], patience_s: float = 0.0) -> Generator[HomeLock]:
    """Hold the home for the time of the block; a holder that is only a passing command is waited for.

    Raises:
        HomeBusy: a supervisor holds it, or a command still does after `patience_s`; the message has the pid.
        HomeUnusable: the folder cannot be made or written.
    """
    with writing_in(home):
        home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(home / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    started = time.monotonic()
    try:
        while not _try_lock(descriptor):
            holder = _read(descriptor)
            # Half a second always: `holder_of` takes the lock for an instant when it asks.
            enough = 0.5 if holder is not None and holder.role == "supervisor" else max(0.5, patience_s)
            if time.monotonic() - started >= enough:
                raise HomeBusy(_who(home, holder))
            time.sleep(0.05)
        yield HomeLock(descriptor, Holder(pid=os.getpid(), role=role))
    finally:
        os.close(descriptor)  # and with it the lock


def holder_of(home: Path) -> Holder | None:
    """Who holds the home now; None when nobody does, whatever a record left behind says."""
    try:
        descriptor = os.open(home / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HomeUnusable(f"{home}: {error.strerror}") from error
    try:
        if _try_lock(descriptor, shared=True):
            return None
        return _read(descriptor)
    finally:
        os.close(descriptor)


def supervisor_of(home: Path) -> Holder | None:
    """The running supervisor of the home."""
    holder = holder_of(home)
    return holder if holder is not None and holder.role == "supervisor" else None


def served_settings() -> Settings:
    """The settings of this process, with the library and the addresses of the supervisor that runs in its home, if one does."""
    settings = load_settings()
    holder = supervisor_of(settings.home)
    if holder is None:
        return settings
    served = {
        "library": holder.library and Path(holder.library), "service_host": holder.service_host, "service_port": holder.service_port,
        "dagster_port": holder.dagster_port,
    }  # fmt: skip
    return settings.model_copy(update={name: value for name, value in served.items() if value is not None})


@contextmanager
def writing_in(home: Path) -> Generator[None]:
    """Turn what the operating system refuses in this block into HomeUnusable."""
    try:
        yield
    except OSError as error:
        raise HomeUnusable(f"{error.filename or home}: {error.strerror}") from error


def _try_lock(descriptor: int, *, shared: bool = False) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read(descriptor: int) -> Holder | None:
    try:
        return Holder(**json.loads(os.pread(descriptor, _RECORD_BYTES, 0)))
    except (ValueError, TypeError):  # locked a moment ago and not written yet
        return None


def _who(home: Path, holder: Holder | None) -> str:
    if holder is None:
        return f"another process is just starting in {home}"
    return f"{home} is held by pid {holder.pid} ({'stemma up' if holder.role == 'supervisor' else 'another stemma command'})"
