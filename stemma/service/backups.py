"""Work on bundles that a request begins and does not wait for: one at a time, with how far it is and how it ended."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from threading import Lock, Thread
from typing import Any, Literal

import structlog

from stemma.bundles.errors import BundlesBusy
from stemma.errors import StemmaError

Kind = Literal["export", "verify", "restore"]
Report = Callable[[int, int], None]
"""Called with what is done and the whole: bytes of an export, documents of a restore."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Work:
    """What was begun last."""

    kind: Kind
    bundle: str | None
    state: Literal["running", "done", "failed"]
    begun_at: datetime
    done: int = 0
    whole: int = 0
    ended_at: datetime | None = None
    result: dict[str, Any] | None = None
    """What it did, as the command's `--json` says it."""
    code: str | None = None
    """Why it failed; one of docs/errors.md, or `internal_error`."""
    message: str | None = None


class Backups:
    """The work of one service. A restore that another process does is refused by the stores, not here."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._work: Work | None = None
        self._thread: Thread | None = None

    @property
    def work(self) -> Work | None:
        """What goes on, or how it ended; None: nothing was begun since the service started."""
        return self._work

    def begin(self, kind: Kind, bundle: str | None, do: Callable[[Report], Any]) -> Work:
        """Begin it in the background. `do` returns a dataclass. Raises BundlesBusy while other work goes on."""
        with self._lock:
            if self._work is not None and self._work.state == "running":
                raise BundlesBusy(f"this service is at work on bundles ({self._work.kind})")
            begun = self._work = Work(kind, bundle, "running", datetime.now(UTC))
            self._thread = Thread(target=self._carry_out, args=(begun, do), name="backups", daemon=True)
            self._thread.start()
        return begun

    def wait(self, timeout_s: float) -> None:
        """Until the work ended, or this long; what is cut off by the end of the process leaves the old corpus, and no half bundle."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _carry_out(self, begun: Work, do: Callable[[Report], Any]) -> None:
        def report(done: int, whole: int) -> None:
            self._work = _with(begun, state="running", done=done, whole=whole)

        try:
            result = asdict(do(report))
        except StemmaError as error:
            log.warning("work on bundles refused", kind=begun.kind, bundle=begun.bundle, code=error.code, reason=str(error))
            self._work = _with(begun, state="failed", ended_at=datetime.now(UTC), code=error.code, message=str(error))
        except Exception:
            self._work = _with(begun, state="failed", ended_at=datetime.now(UTC), code="internal_error", message="See the service's log.")
            raise  # a bug: the thread's traceback goes to the log
        else:
            self._work = _with(begun, state="done", ended_at=datetime.now(UTC), result=result)


def _with(work: Work, **changed: Any) -> Work:
    return Work(**(asdict(work) | changed))
