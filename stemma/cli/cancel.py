"""`stemma cancel` and `stemma retry`: stop the work on documents, and set it going again."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from stemma.cli.console import command, print_json
from stemma.errors import RequestError

if TYPE_CHECKING:
    from stemma.settings import Fingerprints, Settings
    from stemma.store.postgres import Connection

Paths = Annotated[list[str] | None, typer.Argument(help="Files or folders of the library.", show_default=False)]
Workspace = Annotated[str | None, typer.Option(help="Only documents of this workspace.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class NothingNamed(RequestError):
    """No document was named."""

    code, remedy = "nothing_named", "Give a path (the folder of the library is all of it), a workspace, or one of the options of `--help`."


@command
def cancel(
    paths: Paths = None,
    *,
    workspace: Workspace = None,
    batch: Annotated[UUID | None, typer.Option(help="What is queued or running of this batch (the run's tag stemma/batch).")] = None,
    as_json: AsJson = False,
) -> None:
    """Stop the work on documents that are waiting or being worked on.

    What is live of them stays live, and nothing half-made is published. They have the status `cancelled` and are left alone until
    `stemma retry`, or until their file, the settings or the code changes.

    \b
    Examples:
      stemma cancel handbook/leave.docx
      stemma cancel --workspace archive
    """
    from stemma.library.cancellation import Chosen, cancel_documents
    from stemma.orchestrator import terminate_runs

    if not paths and workspace is None and batch is None:
        raise NothingNamed("`stemma cancel` alone means nothing")
    with _library() as (connection, settings, wanted):
        chosen = Chosen(_source_paths(paths, settings), workspace=workspace, batch_id=batch)
        cancelled = cancel_documents(connection, chosen, settings, wanted, now=datetime.now(UTC))
    terminate_runs(settings, cancelled.idle_runs)
    _say("cancelled", len(cancelled.source_ids), as_json=as_json)


@command
def retry(
    paths: Paths = None,
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Only what failed; without a path or workspace, all of it.")] = False,
    cancelled: Annotated[
        bool, typer.Option("--cancelled", help="Only what was cancelled; without a path or workspace, all of it.")
    ] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Try failed and cancelled documents again, now.

    They have all their attempts before them, as if nothing had been tried. What was deleted with its file kept is brought back by
    `stemma ingest --reingest`.

    \b
    Examples:
      stemma retry handbook/leave.docx
      stemma retry --failed
    """
    from stemma.library.cancellation import Chosen, Stopped, retry_documents

    if not (paths or failed or cancelled or workspace is not None):
        raise NothingNamed("`stemma retry` alone means nothing")
    named: dict[Stopped, bool] = {"failed": failed, "cancelled": cancelled}
    of: list[Stopped] = [status for status, wished in named.items() if wished] or list(named)
    with _library() as (connection, settings, wanted):
        chosen = Chosen(_source_paths(paths, settings), workspace=workspace)
        retried = retry_documents(connection, chosen, settings, wanted, of=of, now=datetime.now(UTC))
    _say("retried", len(retried), as_json=as_json)


@contextmanager
def _library() -> "Generator[tuple[Connection, Settings, Fingerprints]]":
    """The corpus database in autocommit, the settings as they are now, and what they want."""
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages.installation import wanted_fingerprints
    from stemma.store.app_settings import current_settings
    from stemma.store.postgres import connect

    base = load_settings()
    with corpus_database(base) as url, connect(url) as connection:
        connection.autocommit = True
        settings = current_settings(connection, base)
        yield connection, settings, wanted_fingerprints(settings)


def _source_paths(paths: list[str] | None, settings: "Settings") -> list[str] | None:
    from stemma.cli.home import supervisor_of
    from stemma.cli.ingest import source_path_of

    if not paths:
        return None
    holder = supervisor_of(settings.home)
    library = Path(holder.library) if holder and holder.library else settings.library
    return [source_path_of(path, library) for path in paths]


def _say(what: str, n_documents: int, *, as_json: bool) -> None:
    if as_json:
        print_json({what: n_documents})
    else:
        print(f"{n_documents} documents {what}." if n_documents != 1 else f"1 document {what}.")
