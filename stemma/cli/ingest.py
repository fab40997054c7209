"""`stemma ingest`: ask for a look at the library now, and follow what comes of it."""

import os
import time
import unicodedata
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import ExitCode, command, note, print_json
from stemma.errors import RequestError, Unavailable

if TYPE_CHECKING:
    from stemma.library.progress import Progress
    from stemma.settings import Settings

POLL_S = 0.5
STORE_PATIENCE_S = 60.0


class OutsideLibrary(RequestError):
    """A path lies outside the library."""

    code, remedy = "outside_library", "Copy the file into the library, or start Stemma with the library that holds it."


class NoSuchFile(RequestError):
    """A path names nothing."""

    code, remedy = "no_such_file", "Check the spelling; paths are relative to this folder, or to the library."


class IngestStopped(Unavailable):
    """Stemma stopped while its work was being followed."""

    code, remedy = "ingest_stopped", "Start it with `stemma up`: the work goes on where it stopped."


@command
def ingest(
    paths: Annotated[list[str] | None, typer.Argument(help="Files or folders of the library; none: all of it.", show_default=False)] = None,
    *,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Follow the work until it is done, or only ask for it.")] = True,
    reingest: Annotated[bool, typer.Option("--reingest", help="Do it all again, from the bytes on, whatever is already known.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object on standard output.")] = False,
) -> None:
    """Bring the corpus up to date now.

    The library is looked at at once instead of at the next interval. Only what changed is worked on. PATH names what --reingest does again, and brings back what
    `stemma delete` took out of the corpus; the look itself is always at the whole library. Documents stay searchable in their old version until the new one is published.

    \b
    Examples:
      stemma ingest
      stemma ingest --reingest handbook/leave.docx
      stemma ingest --json | jq .published

    \b
    The JSON object:
      {"seen", "new", "changed", "unchanged", "vanished", "published", "failed", "runs",
       "model_calls": {"parse", "context", "embed"}, "notices", "seconds"}
    """
    from stemma.cli.home import served_settings

    settings = served_settings()
    require_running(settings)
    source_paths = [source_path_of(path, settings.library) for path in paths] if paths else None
    if not wait:
        begin(settings, source_paths, force=reingest)
        note("Asked for. `stemma status` shows how far it is.")
        return
    summary = run_ingest(settings, source_paths, force=reingest, show=not as_json)
    if as_json:
        print_json(summary)
    else:
        print(describe(summary))
        for notice in summary["notices"]:
            note(notice)
    if summary["failed"]:
        note("`stemma documents --failed` shows which documents failed, and why.")
        raise typer.Exit(ExitCode.PROBLEMS)


def require_running(settings: "Settings") -> None:
    """Raises NotRunning unless something here takes up work: a supervisor of this home, or a Dagster on its port."""
    from stemma.cli.home import supervisor_of
    from stemma.orchestrator import is_up
    from stemma.store.embedded import NotRunning

    if supervisor_of(settings.home) is None and not (settings.postgres_url and is_up(settings)):
        raise NotRunning(f"Stemma does not run in {settings.home}")


def source_path_of(path: str, library: Path, *, must_exist: bool = True) -> str:
    """The source path that a path on the command line means; "" for the library itself.

    Raises:
        OutsideLibrary: it lies elsewhere.
        NoSuchFile: it lies in the library and there is nothing.
    """
    given = Path(path).expanduser()
    in_library = library / given
    means_library = not given.is_absolute() and not given.exists() and (in_library.exists() or not must_exist)
    absolute = Path(os.path.normpath(in_library if means_library else given.absolute()))
    relative = _relative(absolute, library) or _relative(Path(os.path.realpath(absolute)), Path(os.path.realpath(library)))
    if relative is None:
        raise OutsideLibrary(f"{path} is not in {library}")
    if must_exist and not absolute.exists():
        raise NoSuchFile(f"{path} does not exist")
    return "" if relative == Path() else unicodedata.normalize("NFC", relative.as_posix())


def run_ingest(
    settings: "Settings",
    source_paths: list[str] | None,
    *,
    force: bool,
    show: bool,
    since: datetime | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Ask for the work, follow it to its end, and return the summary that `--json` prints.

    Args:
        show: draw a progress bar on standard error.
        since: the moment since when work counts, None: from now on.
        meanwhile: called about twice a second.
    Raises:
        IngestStopped: the supervisor went away.
        LibraryUnavailable: the library cannot be listed, and nothing else is left to do.
        StoreUnavailable: PostgreSQL was away for more than a minute.
    """
    started = time.monotonic()
    since = begin(settings, source_paths, force=force, since=since)
    state = follow(settings, since, show=show, meanwhile=meanwhile)
    return summarize(state, seconds=round(time.monotonic() - started, 1))


def follow(settings: "Settings", since: datetime, *, show: bool, meanwhile: Callable[[], None] = lambda: None) -> "Progress":
    """Follow the work since that moment to its end, and return what came of it. Raises what `run_ingest` raises."""
    from stemma.library.walk import LibraryUnavailable

    with _progress_bar(show) as draw:
        while True:
            meanwhile()
            state = _look(settings, since)
            draw(state)
            if state.done:
                return state
            if state.library_away and not state.n_open:
                raise LibraryUnavailable("the library cannot be listed")
            require_still_running(settings)
            time.sleep(POLL_S)


def begin(settings: "Settings", source_paths: list[str] | None, *, force: bool, since: datetime | None = None) -> datetime:
    """Record the wish, unless a look that began after `since` has met it, and return the moment since when its work counts."""
    from stemma.library.wishes import request_ingest
    from stemma.store.embedded import postgres_url
    from stemma.store.postgres import connect

    moment = since or datetime.now(UTC)
    with connect(postgres_url(settings)) as connection:
        request_ingest(connection, paths=source_paths, force=force, now=moment)
    return moment


def require_still_running(settings: "Settings") -> None:
    """Raises IngestStopped once nobody is there to do the work."""
    from stemma.store.embedded import NotRunning

    try:
        require_running(settings)
    except NotRunning as error:
        raise IngestStopped(f"Stemma stopped in {settings.home}") from error


def summarize(state: "Progress", *, seconds: float) -> dict[str, Any]:
    """The object that `stemma ingest --json` ends with."""
    return {
        "seen": state.seen,
        "new": state.new,
        "changed": state.changed,
        "unchanged": max(0, state.seen - state.new - state.changed),
        "vanished": state.vanished,
        "published": state.published,
        "failed": state.failed,
        "runs": state.runs,
        "model_calls": {"parse": state.parse_calls, "context": state.context_calls, "embed": state.embed_calls},
        "notices": list(state.notices),
        "seconds": seconds,
    }


def describe(summary: dict[str, Any]) -> str:
    """The summary as one sentence."""
    return (
        f"{summary['seen']} files seen: {summary['new']} new, {summary['changed']} changed, {summary['unchanged']} unchanged, "
        f"{summary['vanished']} vanished. {summary['published']} published, {summary['failed']} failed, "
        f"{summary['runs']} runs, {summary['seconds']} s."
    )


def _relative(path: Path, folder: Path) -> Path | None:
    return path.relative_to(folder) if path.is_relative_to(folder) else None


def _look(settings: "Settings", since: datetime) -> "Progress":
    """The progress, through a restart of PostgreSQL if need be."""
    from stemma.library.progress import progress
    from stemma.store.embedded import NotRunning, postgres_url
    from stemma.store.postgres import StoreUnavailable, connect

    deadline = time.monotonic() + STORE_PATIENCE_S
    while True:
        try:
            with connect(postgres_url(settings)) as connection:
                return progress(connection, since)
        except (StoreUnavailable, NotRunning):
            if time.monotonic() > deadline:
                raise
            require_still_running(settings)
            time.sleep(1)


@contextmanager
def _progress_bar(show: bool) -> Generator[Callable[["Progress"], None]]:
    if not show:
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("Looking at the library", total=None)

        def draw(state: "Progress") -> None:
            settled = state.published + state.failed
            total = settled + state.n_open + state.n_remaining
            doing = "Ingesting" if total else "Looking at the library"
            failed = f" ({state.failed} failed)" if state.failed else ""
            bar.update(task, description=doing + failed, completed=settled, total=total or None)

        yield draw
