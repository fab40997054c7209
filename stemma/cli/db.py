"""`stemma db`: the schema of the corpus database."""

from datetime import datetime
from typing import Annotated

import typer

from stemma.cli.console import ExitCode, command, note, print_json, table

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at and upgrade the schema.")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
@command
def upgrade(as_json: Json = False) -> None:
    """Apply the pending migrations.

    Each in one transaction; nothing happens when there is none. `stemma up` does this by itself. Two at once apply each migration once.

    \b
    Example:
      stemma db upgrade
    """
    from stemma.cli.postgres import server_url
    from stemma.settings import load_settings
    from stemma.store import migrations
    from stemma.store.postgres import connect

    with server_url(load_settings()) as url, connect(url) as connection:
        applied = migrations.upgrade(connection)
    if as_json:
        print_json({"applied": applied})
        return
    for name in applied:
        print(f"applied {name}")
    if not applied:
        note("The schema is up to date.")


@app.command()
@command
def status(as_json: Json = False) -> None:
    """Show every migration.

    With the time when it was applied. Exits with 1 while some are pending.

    \b
    Example:
      stemma db status --json
    """
    from stemma.cli.postgres import server_url
    from stemma.settings import load_settings
    from stemma.store import migrations
    from stemma.store.postgres import connect

    with server_url(load_settings()) as url, connect(url) as connection:
        pending = migrations.pending_migrations(connection)
        applied: dict[str, datetime] = {}
        if migrations.applied_migrations(connection):
            applied = dict(connection.execute("SELECT name, applied_at FROM schema_migrations").fetchall())
    rows = [{"name": name, "state": "applied", "applied_at": applied[name].isoformat(timespec="seconds")} for name in sorted(applied)]
    rows += [{"name": migration.name, "state": "pending", "applied_at": None} for migration in pending]
    if as_json:
        print_json(rows)
    else:
        with table("migration", "state", "applied at") as add:
            for row in rows:
                add(row["name"], row["state"], row["applied_at"])
    if pending:
        raise typer.Exit(ExitCode.PROBLEMS)
