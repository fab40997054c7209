"""How the commands speak: exit codes, results on standard output, everything else on standard error."""

import json
import logging
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from enum import IntEnum
from functools import wraps
from typing import Any, NoReturn, ParamSpec

import typer

from stemma.errors import ConfigurationError, StemmaError, Unavailable

P = ParamSpec("P")


class ExitCode(IntEnum):
    """What a command tells the shell."""

    OK = 0
    PROBLEMS = 1
    """It ran, but some documents failed, `doctor` found something, or the installation must be mended."""
    USAGE = 2
    """The command, an argument or a setting is wrong; nothing was done."""
    UNAVAILABLE = 3
    """Stemma is not running, or something it needs is away; the same command may succeed later."""


EXIT_CODES = """\b
Exit codes:
  0  done
  1  some documents failed, or something must be mended
  2  wrong usage, or an invalid setting; nothing was done
  3  not running, or something needed is away"""


def command(function: Callable[P, None]) -> Callable[P, None]:
    """A command whose StemmaErrors become one line and an exit code. Any other exception is a bug and keeps its traceback."""

    @wraps(function)
    def reported(*args: P.args, **kwargs: P.kwargs) -> None:
        _log_to_stderr()
        try:
            function(*args, **kwargs)
        except StemmaError as error:
            fail(error, as_json=bool(kwargs.get("as_json")))

    return reported


def fail(error: StemmaError, *, as_json: bool = False) -> NoReturn:
    """Print the error on standard error, as one line or as a JSON object, and exit with its code."""
    if as_json:
        print(json.dumps({"code": error.code, "message": str(error), "retryable": error.retryable}, ensure_ascii=False), file=sys.stderr)
    else:
        print(f"{error.code}: {error}", file=sys.stderr)
    raise typer.Exit(exit_code_of(error))


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
    """A table on standard output; the block adds its rows. Cells are text, never markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*columns, box=None, header_style="bold", pad_edge=False)
    yield lambda *cells: drawn.add_row(*(Text("" if cell is None else str(cell)) for cell in cells))
    Console().print(drawn)


def _log_to_stderr() -> None:
    import structlog

    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING), logger_factory=structlog.PrintLoggerFactory(sys.stderr)
    )
