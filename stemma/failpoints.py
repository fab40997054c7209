"""Fail points: named instants at which a fault test may end, hold or fail the process that reaches them.

They are off, and cost one comparison, unless STEMMA_FAILPOINTS names a folder when the process starts. (This is below the settings,
which a damaged installation may not be able to read; no user sets it.) A file in that folder arms the point it is named after, for
whichever process comes first. Its text says what happens there:

    kill      the process ends as if by `kill -9`
    full      OSError: no space left on the device
    read_only OSError: read-only file system
    pause     the process waits until the file `<point>.go` exists; `<point>.reached` says that it does
    note      nothing; the point was reached

`kill:3` means the third time. A point that has fired is disarmed: its file is now called `<point>.fired`, or `<point>.reached`.
"""

import contextlib
import errno
import os
import signal
import time
from pathlib import Path
from typing import Literal, get_args

FailPoint = Literal[
    "walk.before_decision",
    "walk.after_renames",
    "claim.before_commit",
    "request.before_commit",
    "look.done",
    "run.begun",
    "spool.copied",
    "spool.recorded",
    "documents.parsed",
    "lake.before_rename",
    "lake.object_written",
    "documents.recorded",
    "chunks.recorded",
    "contexts.recorded",
    "embeddings.before_store",
    "embeddings.stored",
    "embeddings.recorded",
    "keywords.before_commit",
    "keywords.committed",
    "coverage.recorded",
    "publish.locked",
    "publish.before_commit",
    "publish.committed",
    "run.published",
    "retire.before_entries",
    "retire.entries_removed",
    "deletion.marked",
    "deletion.entries_removed",
    "deletion.before_unlink",
    "deletion.file_removed",
    "deletion.before_commit",
    "deletion.committed",
    "prune.before_marking",
    "reembed.filled",
    "reembed.built",
    "switch.before_commit",
    "switch.committed",
    "drop.before_commit",
    "keyword_rebuild.entries_added",
    "keyword_rebuild.covered",
    "keyword_switch.before_commit",
    "garbage.orphans_removed",
    "garbage.results_forgotten",
    "repair.vectors_taken",
    "repair.published_again",
    "repair.before_lake",
    "forgotten.rewritten",
    "forgotten.dropped",
    "export.before_vectors",
    "export.before_manifest",
    "export.before_rename",
    "export.renamed",
    "restore.staged",
    "restore.begun",
    "restore.entries_written",
    "restore.locked",
    "restore.before_commit",
    "restore.committed",
]

FAIL_POINTS: tuple[FailPoint, ...] = get_args(FailPoint)

PAUSE_LIMIT_S = 120.0
"""A process that nobody lets go on goes on by itself after this long."""

_folder: Path | None = Path(os.environ["STEMMA_FAILPOINTS"]) if os.environ.get("STEMMA_FAILPOINTS") else None


def reach(point: FailPoint) -> None:
    """The process is at this instant. Raises OSError where a test asked for it."""
    if _folder is not None:
        _fire(_folder, point)


def _fire(folder: Path, point: FailPoint) -> None:
    armed = folder / point
    try:
        action, _, times = armed.read_text("utf-8").strip().partition(":")
    except OSError:
        return
    if times and int(times) > 1:
        later = folder / f"{point}.{os.getpid()}"
        later.write_text(f"{action}:{int(times) - 1}", "utf-8")
        later.replace(armed)
        return
    fired = folder / f"{point}.{'reached' if action == 'pause' else 'fired'}"
    try:
        armed.rename(fired)
    except FileNotFoundError:  # another process came first
        return
    match action:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), point)
        case "read_only":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), point)
        case "pause":
            _wait_for(folder / f"{point}.go")
        case _:
            assert action == "note", f"{point} is armed with {action!r}"


def _wait_for(signal_file: Path) -> None:
    deadline = time.monotonic() + PAUSE_LIMIT_S
    while not signal_file.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    with contextlib.suppress(FileNotFoundError):
        signal_file.unlink()
