"""How the commands speak: exit codes, results on standard output, everything else on standard error."""

import json
import logging
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import IntEnum
from functools import wraps
from typing import Any, NoReturn, ParamSpec

import typer

from stemma.errors import ConfigurationError, StemmaError, Unavailable

P = ParamSpec("P")
PIPE_WIDTH = 4_000


class ExitCode(IntEnum):
    """What a command tells the shell."""

    OK = 0
    PROBLEMS = 1
    """It ran, but some documents failed, `doctor` found something, or the installation must be mended."""
    USAGE = 2
    """The command, an argument or a setting is wrong; nothing was done."""
    UNAVAILABLE = 3
    """Stemma is not running, or something it needs is away; the same command may succeed later."""


class Refused(Exception):
    """The query service refused a request; the problem (RFC 9457) is as it worded it."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem)
        self.problem = problem


def command(function: Callable[P, None]) -> Callable[P, None]:
    """A command whose refusals become one line and an exit code. Any other exception is a bug and keeps its traceback."""

    @wraps(function)
    def reported(*args: P.args, **kwargs: P.kwargs) -> None:
        _log_to_stderr()
        as_json = bool(kwargs.get("as_json"))
        try:
            with _explaining():
                function(*args, **kwargs)
        except StemmaError as error:
            if log := getattr(error, "log", ""):
                note(log)
            _fail(problem_of(error), exit_code_of(error), as_json=as_json)
        except Refused as refused:
            away = refused.problem["status"] >= 500
            _fail(refused.problem, ExitCode.UNAVAILABLE if away else ExitCode.USAGE, as_json=as_json)
        except BrokenPipeError:  # `| head` has read enough; nor may the flush at exit complain
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    return reported


@contextmanager
def _explaining() -> Generator[None]:
    """What psycopg says of a server that is lost in the middle of a command is StoreUnavailable or StoreBusy, whoever asked it."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in {"psycopg", "psycopg_pool"}:
            raise
        from stemma.store.postgres import explained

        with explained():
            raise


def problem_of(error: StemmaError) -> dict[str, Any]:
    """The error as the service would word it, without an HTTP status."""
    detail = " ".join(str(error).removesuffix(error.remedy).split())  # libpq's messages have several lines
    return {"type": f"urn:stemma:problem:{error.code}", "code": error.code, "detail": detail, "remedy": error.remedy}


def _fail(problem: dict[str, Any], exit_code: ExitCode, *, as_json: bool) -> NoReturn:
    line = f"{problem['code']}: {problem['detail']} {problem['remedy']}".strip()
    print(json.dumps(problem, ensure_ascii=False) if as_json else line, file=sys.stderr)
    raise typer.Exit(exit_code)


def exit_code_of(error: StemmaError) -> ExitCode:
    """The exit code of a command that ended with this error."""
    if isinstance(error, Unavailable):
        return ExitCode.UNAVAILABLE
    # A wrong environment variable is wrong usage; a drifted migration is not.
    return ExitCode.PROBLEMS if isinstance(error, ConfigurationError) and error.code != "invalid_environment" else ExitCode.USAGE


def print_json(value: Any) -> None:
    """One JSON value on standard output."""
    print(json.dumps(value, ensure_ascii=False, default=str))


def note(text: str) -> None:
    """A line for the person at the terminal, on standard error."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def table(*columns: str) -> Generator[Callable[..., None]]:
    """A table on standard output; the block adds its rows. Cells are text, never markup; long ones are folded, never cut.

    Where the output is no terminal a row is one line, for `grep` and its like.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    yield lambda *cells: drawn.add_row(*(Text("" if cell is None else str(cell)) for cell in cells))
    Console(width=None if sys.stdout.isatty() else PIPE_WIDTH).print(drawn)


@contextmanager
def counting(description: str, *, show: bool) -> Generator[Callable[[int, int], None]]:
    """A bar on standard error, where that is a terminal, for work that is counted; the block calls it with what is done and the whole."""
    if not (show and sys.stderr.isatty()):
        yield lambda _done, _whole: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, whole: bar.update(task, completed=done, total=whole or None)


def _log_to_stderr() -> None:
    import structlog

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),  # as it is at each line: it may be redirected meanwhile
    )
