"""A pool of parser processes with limits on time and memory: no file can take its caller down."""

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import psutil
import structlog

from stemma.errors import DocumentError, ParseMemoryExceeded, ParseTimeout, WorkerDied, error_codes
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import Format
from stemma.parsing.work_folder import WorkFolder
from stemma.parsing.worker import write_frame

log = structlog.get_logger(__name__)

WATCH_INTERVAL_S = 0.1  # between two looks at clock and memory
MAX_ANSWER_BYTES = 2_000_000_000  # a longer answer is no answer


@dataclass(frozen=True, slots=True)
class ParseJob:
    """One file to parse: a private copy at `path`, the name it has in messages, how to read it."""

    path: Path
    source_path: str
    format: Format
    options: ParsingOptions = field(default_factory=ParsingOptions)
    work_folder: Path | None = None
    """Keeps the finished pages of a parse that is ended; whoever gave the job removes it. None: a parse begins at its first page."""
    pictures: tuple[str, ...] = ()
    """With FIGURES as format: the places of the pictures to take."""


@dataclass(frozen=True, slots=True)
class TakeOutJob:
    """One container out of which members are taken: path in the container -> new file."""

    path: Path
    source_path: str
    format: Format
    options: ParsingOptions
    targets: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class TakenOut:
    """Path in the container -> None when it was written, or why it could not be; a path that no member has is absent."""

    members: Mapping[str, DocumentError | None]


Job = ParseJob | TakeOutJob
Answer = ParsedDocument | TakenOut | DocumentError


class ParserPool:
    """Parses in `size` processes, which are started at the first job and kept warm.

    Args:
        timeout_s: per document; a worker's start counts as part of its first document.
        memory_bytes: resident memory of one worker, libraries and models included: 80 MB for text, up to 1.3 GB while a page is recognised.
        recycle_after: documents after which a worker is replaced, so that what libraries leak stays bounded.
    """

    def __init__(self, *, size: int = 1, timeout_s: float, memory_bytes: int, recycle_after: int = 200) -> None:
        self._timeout_s, self._memory_bytes, self._recycle_after = timeout_s, memory_bytes, recycle_after
        self._workers = [_Worker(memory_bytes) for _ in range(max(1, size))]
        self._busy = False
        self.last_peak_bytes: int | None = None
        """Most resident memory of the worker while it was at the document yielded last; None if it was ended, or the system does not say."""

    def __enter__(self) -> "ParserPool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()

    def parse(self, jobs: Iterable[ParseJob]) -> Iterator[tuple[ParseJob, ParsedDocument | DocumentError]]:
        """Results as they finish, every job answered exactly once; jobs are taken from the iterable one by one.

        Errors are returned, not raised: `parse_timeout`, `parse_memory`, `worker_died` and whatever the parser says. These three
        are `retryable` when the work folder holds more than before: the next parse of the file goes on from there.
        Not reentrant: one iteration at a time. Leaving it early ends the documents that are being parsed.
        """
        return cast(Iterator[tuple[ParseJob, ParsedDocument | DocumentError]], self._answers(jobs))

    def take_out(self, jobs: Iterable[TakeOutJob]) -> Iterator[tuple[TakeOutJob, TakenOut | DocumentError]]:
        """As `parse`, but members of containers are written to files of the caller's."""
        return cast(Iterator[tuple[TakeOutJob, TakenOut | DocumentError]], self._answers(jobs))

    def _answers(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, Answer]]:
        assert not self._busy, "a pool serves one iteration at a time"
        self._busy = True
        waiting = iter(jobs)
        exhausted = False
        try:
            while True:
                for worker in self._workers:
                    if worker.job is None and not exhausted:
                        if (job := next(waiting, None)) is None:
                            exhausted = True
                        else:
                            worker.give(job, self._timeout_s, self._recycle_after)
                working = [worker for worker in self._workers if worker.job is not None]
                if not working:
                    return
                for worker in _ready(working):
                    if (result := worker.result(self._timeout_s)) is not None:
                        job, worker.job = cast(Job, worker.job), None
                        self.last_peak_bytes = worker.peak_bytes
                        yield job, result
        finally:
            self._busy = False
            for worker in self._workers:
                if worker.job is not None:
                    worker.kill()
                    worker.job = None


def _ready(workers: list["_Worker"]) -> list["_Worker"]:
    """Wait until a worker has something to say, or the time of the next look has come; every worker is looked at."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            if not worker.closed:
                selector.register(worker.answers, selectors.EVENT_READ)
        if selector.get_map():
            selector.select(WATCH_INTERVAL_S)
    return workers


class _Worker:
    """One process, started when it is needed, and the job it is at."""

    def __init__(self, memory_bytes: int) -> None:
        self.job: Job | None = None
        self.peak_bytes: int | None = None
        self.closed = False
        self._memory_bytes = memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._received = bytearray()
        self._deadline = 0.0
        self._n_batches = 0
        self._n_jobs = 0
        self._starter: threading.Thread | None = None

    @property
    def answers(self) -> IO[bytes]:
        """The pipe that answers come from."""
        assert self._process is not None and self._process.stdout is not None
        return self._process.stdout

    def give(self, job: Job, timeout_s: float, recycle_after: int) -> None:
        """Hand over a job; its clock starts. The process is started or replaced first where that is due."""
        self._deadline = time.monotonic() + timeout_s
        self.peak_bytes = None
        if self._process is not None and (
            self._n_jobs >= recycle_after
            or self._process.poll() is not None
            or self._starter is not threading.current_thread()  # the kernel counts the death of that thread as the parent's
        ):
            self.stop()
        if self._process is None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        self.job = job
        self._n_jobs += 1
        work_folder = _work_folder(job)
        self._n_batches = WorkFolder(work_folder).n_batches()
        message = {
            "path": os.fsencode(job.path.absolute()).hex(),  # a name need not be text
            "work_folder": None if work_folder is None else os.fsencode(work_folder.absolute()).hex(),
            "source_path": job.source_path,
            "format": asdict(job.format),
            "options": asdict(job.options),
            "pictures": job.pictures if isinstance(job, ParseJob) else (),
        }
        if isinstance(job, TakeOutJob):
            message["targets"] = {member: os.fsencode(target.absolute()).hex() for member, target in job.targets.items()}
        try:
            write_frame(cast(Any, self._process.stdin), message)
        except BrokenPipeError:
            self.closed = True  # it died; `result` says so

    def result(self, timeout_s: float) -> Answer | None:
        """The answer to the job, an error when a limit was passed or the process ended, None while it works."""
        assert self.job is not None
        message = self._receive()
        if message is not None:
            self.peak_bytes = message["peak_bytes"]
            return _answer(self.job, message)
        if self.closed:
            return self._died()
        if time.monotonic() > self._deadline:
            self.kill()
            return self._ended(ParseTimeout(self.job.source_path, f"parsing took longer than {timeout_s:g} seconds"))
        if self._resident_bytes() > self._memory_bytes:
            self.kill()
            return self._ended(
                ParseMemoryExceeded(self.job.source_path, f"parsing needed more than {self._memory_bytes / 1e6:,.0f} MB of memory")
            )
        return None

    def stop(self) -> None:
        """End an idle process by closing its stdin; one that does not go within two seconds, or works, is killed."""
        if self._process is not None and self.job is None and self._process.stdin is not None:
            with suppress(subprocess.TimeoutExpired, BrokenPipeError):
                self._process.stdin.close()
                self._process.wait(timeout=2)
        self.kill()

    def kill(self) -> None:
        """End the process now and forget what it said."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    _close_quietly(stream)
        self._process, self.closed, self._n_jobs = None, False, 0
        self._received.clear()

    def _start(self) -> None:
        self._starter = threading.current_thread()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "stemma.parsing.worker", str(os.getpid()), str(self._memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        os.set_blocking(self.answers.fileno(), False)

    def _receive(self) -> dict[str, Any] | None:
        while not self.closed:
            try:
                piece = os.read(self.answers.fileno(), 1 << 20)
            except BlockingIOError:
                break
            if piece:
                self._received += piece
            else:
                self.closed = True
        if len(self._received) < 8:
            return None
        length = int.from_bytes(self._received[:8], "big")
        if length > MAX_ANSWER_BYTES:
            self.closed = True
            return None
        if len(self._received) < 8 + length:
            return None
        message = json.loads(self._received[8 : 8 + length])
        self._received.clear()
        return message

    def _resident_bytes(self) -> int:
        assert self._process is not None
        try:
            return psutil.Process(self._process.pid).memory_info().rss
        except psutil.Error:
            return 0  # it just ended; the next look at its pipe says so

    def _ended(self, error: DocumentError) -> DocumentError:
        """The error of a parse that was ended: worth a retry if it had finished pages, since the next one goes on after them."""
        assert self.job is not None
        error.retryable = WorkFolder(_work_folder(self.job)).n_batches() > self._n_batches
        return error

    def _died(self) -> DocumentError:
        assert self.job is not None and self._process is not None
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            code = None
        source_path = self.job.source_path
        self.kill()
        log.warning("Parser process died", source_path=source_path, exit_code=code)
        how = f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
        return self._ended(WorkerDied(source_path, f"the parser's process ended without an answer ({how})"))


def _work_folder(job: Job) -> Path | None:
    return job.work_folder if isinstance(job, ParseJob) else None


def _answer(job: Job, message: dict[str, Any]) -> Answer:
    if "document" in message:
        return ParsedDocument.from_json(json.dumps(message["document"]))
    if "taken" in message:
        return TakenOut({member: refusal and _refusal(job, refusal) for member, refusal in message["taken"].items()})
    return _refusal(job, message)


def _refusal(job: Job, message: dict[str, Any]) -> DocumentError:
    error = error_codes()[message["code"]]
    assert issubclass(error, DocumentError)
    return error(job.source_path, message["detail"])


def _close_quietly(stream: IO[bytes]) -> None:
    with suppress(BrokenPipeError):  # bytes for a process that is gone
        stream.close()
