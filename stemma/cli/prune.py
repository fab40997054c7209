"""`stemma prune`: what vanished from the library leaves the corpus, and an operator decides about what Stemma holds back."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer

from stemma.cli.console import command, note, print_json, table


@command
def prune(
    *,
    confirm: Annotated[bool, typer.Option("--confirm", help="The missing files are gone indeed: prune what is held back as well.")] = False,
    workspace: Annotated[list[str] | None, typer.Option(help="Only in this workspace; may be repeated.", show_default=False)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is missing, and what would be pruned.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Prune documents whose files vanished.

    Stemma prunes by itself what was missing in two looks at the library. It holds back what vanished in bulk, since a disk that is away looks the same: a whole
    first folder, or more than PRUNE_MAX_SHARE and PRUNE_MIN_COUNT of a workspace. Such documents stay searchable until their files are back or --confirm.

    \b
    Examples:
      stemma prune --dry-run
      stemma prune --confirm --workspace sales

    \b
    The JSON object:
      {"missing": [{"workspace", "folder", "n_files", "n_missing", "n_due", "held"}], "n_pruned"}
    """
    from stemma.cli.home import served_settings
    from stemma.cli.postgres import corpus_database
    from stemma.library.pruning import prune_and_delete
    from stemma.stages.installation import Installation

    base = served_settings()
    with corpus_database(base):
        stores = Installation(base)
        try:
            found = prune_and_delete(
                stores.pool, stores.settings(), stores.remove_sparse,
                confirm=confirm, workspaces=workspace, dry_run=dry_run, now=datetime.now(UTC),
            )  # fmt: skip
        finally:
            stores.close()
    if as_json:
        print_json({"missing": [asdict(loss) for loss in found.losses], "n_pruned": 0 if dry_run else len(found.marked)})
        return
    if found.losses:
        with table("workspace", "folder", "missing", "of files") as add:
            for loss in found.losses:
                add(loss.workspace, loss.folder or "(root)", loss.n_missing, loss.n_files)
    print(f"{len(found.marked)} {'would be pruned' if dry_run else 'pruned'}.")
    if not confirm:
        for notice in found.notices:
            note(notice)
        if waiting := sum(loss.n_missing for loss in found.losses if not loss.held) - len(found.marked):
            note(f"{waiting} more missing files wait for another look at the library.")
