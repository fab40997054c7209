"""The `stemma` command, assembled: a file per command beside this one."""

from importlib.metadata import version
from typing import Annotated

import typer

from stemma.cli import bundles as bundle_commands
from stemma.cli import db, settings
from stemma.cli.audit import audit, gc
from stemma.cli.backfill import backfill
from stemma.cli.bundles import bundles, export, restore
from stemma.cli.cancel import cancel, retry
from stemma.cli.chunk import chunk
from stemma.cli.delete import delete
from stemma.cli.doctor import doctor
from stemma.cli.documents import documents, show
from stemma.cli.figures import figures
from stemma.cli.ingest import ingest
from stemma.cli.mcp import mcp
from stemma.cli.parse import parse
from stemma.cli.prune import prune
from stemma.cli.reembed import reembed
from stemma.cli.search import search
from stemma.cli.stale import stale
from stemma.cli.status import status
from stemma.cli.trace import trace
from stemma.cli.up import down, up

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None, add_completion=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"stemma {version('stemma')}")
        raise typer.Exit


@app.callback()
def stemma(
    _version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Turns a library of files into a retrieval corpus and keeps it true.

    \b
    First steps:
      stemma up --library ~/Documents     start everything; leave it running
      stemma ingest                       in another terminal: bring the corpus up to date now
      stemma search "some question"       find passages, with their exact places

    \b
    Exit codes:
      0  done
      1  some documents failed, doctor found a fault, or something must be mended
      2  wrong usage, or an invalid setting; nothing was done
      3  not running, or something needed is away

    An error is one line on standard error, `code: message`; with --json a JSON object. docs/errors.md lists the codes.
    """


for function in (
    up,
    down,
    status,
    stale,
    ingest,
    backfill,
    search,
    documents,
    show,
    cancel,
    retry,
    trace,
    figures,
    delete,
    prune,
    reembed,
    parse,
    chunk,
    audit,
    gc,
    mcp,
    export,
    bundles,
    restore,
    doctor,
):
    app.command()(function)
app.add_typer(settings.app, name="settings")
app.add_typer(db.app, name="db")
app.add_typer(bundle_commands.app, name="bundle")


if __name__ == "__main__":
    app()
