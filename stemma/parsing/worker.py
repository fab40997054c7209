"""The parser's process: `python -m stemma.parsing.worker`. Reads jobs from stdin, writes one answer each, holds no secrets.

A frame is its length in eight bytes, big-endian, and JSON: a worker that a hostile file took over can send the wrong text
to its parent, but nothing that runs there.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from stemma.errors import DocumentError
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import Format
from stemma.parsing.memory import forget_peak, peak_bytes
from stemma.parsing.parse import parse_file, take_out_members

_PR_SET_PDEATHSIG = 1
_NETWORK_EVENTS = frozenset(
    {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
)


def write_frame(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Send one message."""
    body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    stream.write(len(body).to_bytes(8, "big") + body)
    stream.flush()


def read_frame(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message, or None when the other side has closed."""
    header = stream.read(8)
    if len(header) < 8:
        return None
    body = stream.read(int.from_bytes(header, "big"))
    return json.loads(body)


def main() -> None:
    """Answer jobs until the parent closes stdin or dies."""
    parent, memory_bytes = int(sys.argv[1]), int(sys.argv[2])
    _die_with(parent)
    jobs, answers = _private_streams()
    _limit_memory(memory_bytes)
    sys.addaudithook(_refuse_network)
    while (job := read_frame(jobs)) is not None:
        forget_peak()
        answer = _answer(job)
        write_frame(answers, answer | {"peak_bytes": peak_bytes()})


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = dict(job["format"])
    fields["libraries"] = tuple(fields["libraries"])  # JSON has lists
    format = Format(**fields)
    path, work_folder = (Path(os.fsdecode(bytes.fromhex(job[name]))) if job[name] else None for name in ("path", "work_folder"))
    assert path is not None
    options = ParsingOptions(**job["options"])
    try:
        if "targets" in job:
            targets = {member: Path(os.fsdecode(bytes.fromhex(target))) for member, target in job["targets"].items()}
            taken = take_out_members(path, source_path=job["source_path"], format=format, options=options, targets=targets)
            return {"taken": {member: error and {"code": error.code, "detail": error.detail} for member, error in taken.items()}}
        document = parse_file(
            path,
            source_path=job["source_path"],
            format=format,
            options=options,
            work_folder=work_folder,
            pictures=tuple(job["pictures"]),
        )
    except DocumentError as error:
        return {"code": error.code, "detail": error.detail}
    return {"document": asdict(document)}


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the parent; what libraries print goes to stderr instead, and nothing they read comes from the parent."""
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return jobs, answers


def _die_with(parent: int) -> None:
    """Have the kernel end this process when its parent dies, also while a library's code never returns (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent died before its worker started")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle


def _limit_memory(memory_bytes: int) -> None:
    """A backstop for a jump between two looks of the parent, who watches what is really used and ends the process earlier."""
    backstop = memory_bytes + max(memory_bytes // 2, 500_000_000)
    resource.setrlimit(resource.RLIMIT_DATA, (backstop, backstop))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _refuse_network(event: str, _: tuple[Any, ...]) -> None:
    if event in _NETWORK_EVENTS:
        raise PermissionError("a document may not reach the network")


if __name__ == "__main__":
    main()
