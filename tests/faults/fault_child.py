"""Processes of the quick tier: forked from one that has library and model loaded, so that starting one costs little and killing it nothing.

`python -m fault_child` is the one that is forked from. It reads tasks from its stdin and reports the end of each child in a file.
"""

import faulthandler
import json
import logging
import os
import pickle
import selectors
import signal
import struct
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

NEEDS_A_REASON = 3
"""Exit code of a child that met a condition Stemma can explain, as `stemma` itself ends."""
BUG = 70
"""Exit code of a child that met a condition nobody thought of."""
CHILD_LIMIT_S = 120
"""A child that runs longer hangs."""
SLOW_S = 90
"""A child that still runs after this long says where it is."""


@dataclass
class Child:
    """A process that was forked."""

    pid: int
    _end: Path
    exitcode: int | None = None
    """Negative: the signal that ended it."""

    def is_alive(self) -> bool:
        """Whether it still runs."""
        if self.exitcode is None:
            with suppress(FileNotFoundError):
                self.exitcode = int(self._end.read_text())
        return self.exitcode is None

    def join(self, limit_s: float) -> None:
        """Wait for its end, at most so long."""
        deadline = time.monotonic() + limit_s
        while self.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)

    def kill(self) -> None:
        """kill -9, unless it has ended."""
        if self.is_alive():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Nursery:
    """The process that children are forked from, and what it has loaded; `models` are the values of EMBEDDING_MODEL that it has at hand."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        path = [str(Path(__file__).parent), *(entry for entry in sys.path if entry)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fault_child", str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(path), "TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert self._process.stdout is not None
        self.models: list[str] = json.loads(self._process.stdout.readline())

    def start(self, task: str, *arguments: object, log: Path) -> Child:
        """Run a function of fault_child_loaded in a process of its own; what it prints goes to the log."""
        assert self._process.stdin is not None and self._process.stdout is not None
        message = pickle.dumps((task, arguments, log))
        self._process.stdin.write(struct.pack("!I", len(message)) + message)
        self._process.stdin.flush()
        pid = int(self._process.stdout.readline())
        return Child(pid, self._folder / f"{pid}.ended")

    def close(self) -> None:
        """End it; children that still run go on."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


def main(folder: Path) -> None:
    """Fork a child for every task, and note how each ended."""
    import fault_child_loaded

    answers, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    print(
        json.dumps(fault_child_loaded.prepare(folder)), file=answers, flush=True
    )  # before the first fork: that is what this process is for
    tasks = sys.stdin.buffer
    selector = selectors.DefaultSelector()
    selector.register(tasks, selectors.EVENT_READ)
    while True:
        if selector.select(0.02):
            if not (head := tasks.read(4)):
                os._exit(0)  # the children may outlive it
            task, arguments, log = pickle.loads(tasks.read(struct.unpack("!I", head)[0]))
            if (pid := os.fork()) == 0:
                _run(task, arguments, log, tasks)
            print(pid, file=answers, flush=True)
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                note = folder / f"{ended[0]}.ending"
                note.write_text(str(os.waitstatus_to_exitcode(ended[1])))
                note.rename(folder / f"{ended[0]}.ended")


def _run(task: str, arguments: tuple[object, ...], log: Path, tasks: IO[Any]) -> None:
    import fault_child_loaded

    from stemma.errors import StemmaError

    os.close(tasks.fileno())
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    logging.basicConfig(level=logging.WARNING)
    faulthandler.dump_traceback_later(SLOW_S, file=sys.stderr)
    print(f"--- {task} in {os.getpid()}", flush=True)
    try:
        getattr(fault_child_loaded, task)(*arguments)
    except StemmaError as error:
        print(f"{error.code}: {error}", flush=True)
        os._exit(NEEDS_A_REASON)
    except SystemExit as ended:
        sys.stderr.flush()
        os._exit(int(ended.code or 0))
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(BUG)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
