"""`stemma delete`: take documents out of the corpus, and their files out of the library only if asked."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import ExitCode, command, note, print_json
from stemma.errors import RequestError

if TYPE_CHECKING:
    from stemma.library.selection import DeletionReport, Selected, Selection

LISTED = 10


class NothingSelected(RequestError):
    """No document, folder or workspace was named, or the whole library was."""

    code, remedy = "nothing_selected", "Name documents, or folders with --folder, or workspaces with --workspace; each workspace by itself."


class NamesFolder(RequestError):
    """A folder was named where documents are."""

    code, remedy = "names_folder", "`--folder` before it means all that it holds."


class NotConfirmed(RequestError):
    """The question was not answered with yes."""

    code, remedy = "not_confirmed", "Nothing was deleted; --yes answers beforehand."


@command
def delete(
    documents: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="Files of the library, source_ids or doc_ids.", show_default=False)
    ] = None,
    *,
    folder: Annotated[list[str] | None, typer.Option(help="A folder with all it holds; may be repeated.", show_default=False)] = None,
    workspace: Annotated[list[str] | None, typer.Option(help="A whole workspace; may be repeated.", show_default=False)] = None,
    remove_file: Annotated[bool, typer.Option("--remove-file", help="Remove the files from the library too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; never asks, so it needs --yes or --dry-run.")] = False,
) -> None:
    """Delete documents from the corpus.

    No search finds them from this moment on. Their files stay and are not read again until their bytes change or `stemma ingest PATH` names them;
    with --remove-file they go too, but only those that are as Stemma last saw them.

    \b
    Examples:
      stemma delete handbook/leave.docx
      stemma delete --folder handbook/old --dry-run
      stemma delete --workspace sales --remove-file --yes

    Exits with 1 when a file could not be removed, or a name stands for no document.

    \b
    The JSON object:
      {"selected", "deleted", "excluded", "changed", "failed", "pending", "not_found"}
    """
    from stemma.cli.home import served_settings
    from stemma.cli.postgres import corpus_database
    from stemma.library.selection import DeletionReport, delete_selected, select_sources
    from stemma.stages.installation import Installation
    from stemma.store.postgres import connect

    settings = served_settings()
    selection = selection_of(documents or (), folder or (), workspace or (), settings.library)
    with corpus_database(settings) as url:
        with connect(url) as connection:
            selected = select_sources(connection, selection, remove_file=remove_file)
        report = DeletionReport(not_found=selected.not_found)
        if selected.sources and not dry_run:
            if not yes:
                _confirm(selected, remove_file=remove_file, may_ask=not as_json)
            stores = Installation(settings)
            try:
                intent = "remove_file" if remove_file else "keep_file"
                report = delete_selected(stores.pool, selected, stores.remove_sparse, library=settings.library, intent=intent)
            finally:
                stores.close()
    print_json(_as_json(selected, report)) if as_json else _print(selected, report, dry_run=dry_run)
    if report.failed or report.not_found:
        raise typer.Exit(ExitCode.PROBLEMS)


def selection_of(documents: Sequence[str], folders: Sequence[str], workspaces: Sequence[str], library: Path) -> "Selection":
    """What the words on the command line select. A path may be relative to this folder or to the library, and need not exist any more.

    Raises:
        NothingSelected: nothing is named, or the library itself is.
        NamesFolder: a document's path is that of a folder.
        OutsideLibrary: a path lies elsewhere.
    """
    from stemma.library.selection import Selection

    if not (documents or folders or workspaces):
        raise NothingSelected("No document was named")
    ids = tuple(name for name in documents if _is_id(name))
    paths = tuple(_named(name, library) for name in documents if name not in ids)
    for path in paths:
        if (library / path).is_dir():
            raise NamesFolder(f"{path} is a folder")
    return Selection(
        documents=ids,
        paths=paths,
        folders=tuple(_named(name, library) for name in folders),
        workspaces=tuple(workspaces),
    )


def _named(path: str, library: Path) -> str:
    from stemma.cli.ingest import source_path_of

    source_path = source_path_of(path, library, must_exist=False) if path.strip() else ""
    if not source_path:
        raise NothingSelected(f"{path!r} is no document and no folder of the library")
    return source_path


def _is_id(name: str) -> bool:
    from uuid import UUID

    if len(name) == 16 and all(character in "0123456789abcdef" for character in name):
        return True
    try:
        UUID(name)
    except ValueError:
        return False
    return True


def _confirm(selected: "Selected", *, remove_file: bool, may_ask: bool) -> None:
    n_documents = len(selected.sources)
    what = f"{n_documents} document{'' if n_documents == 1 else 's'}" + (" and the files of the library" if remove_file else "")
    if not may_ask:
        raise NotConfirmed(f"This deletes {what}")
    _list(selected)
    try:
        confirmed = typer.confirm(f"Delete {what}?", err=True)
    except typer.Abort:  # no terminal, or Ctrl-D
        confirmed = False
    if not confirmed:
        raise NotConfirmed(f"This deletes {what}")


def _list(selected: "Selected") -> None:
    for source in selected.sources[:LISTED]:
        note(f"  {source.source_path}")
    if len(selected.sources) > LISTED:
        note(f"  and {len(selected.sources) - LISTED} more")


def _as_json(selected: "Selected", report: "DeletionReport") -> dict[str, Any]:
    parts: dict[str, Any] = {"selected": [asdict(source) for source in selected.sources]}
    for name in ("deleted", "excluded", "changed", "pending"):
        parts[name] = [asdict(source) for source in getattr(report, name)]
    failed = [asdict(source) | {"error_code": error.code, "error_message": error.message} for source, error in report.failed]
    return parts | {"failed": failed, "not_found": list(report.not_found)}


def _print(selected: "Selected", report: "DeletionReport", *, dry_run: bool) -> None:
    if dry_run:
        _list(selected)
        print(f"{len(selected.sources)} would be deleted.")
    else:
        kept = f", {len(report.excluded)} taken out of the corpus (their files stay)" if report.excluded else ""
        print(f"{len(report.deleted)} deleted{kept}.")
    for source in report.changed:
        note(f"{source.source_path}: the file was changed since it was read and stays; it becomes a new document.")
    for source in report.pending:
        note(f"{source.source_path}: Stemma is carrying the deletion out.")
    for _, error in report.failed:
        note(f"{error.code}: {error}")
    for name in report.not_found:
        note(f"unknown_document: nothing is left to delete of {name}")
