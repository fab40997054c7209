"""`stemma db`: the schema of the corpus database, and its indexes."""

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stemma.cli.console import ExitCode, command, counting, note, print_json, table

if TYPE_CHECKING:
    from stemma.settings import Settings
    from stemma.stages.index_report import IndexReport

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at and upgrade the schema and the indexes.")
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
@command
def upgrade(
    *,
    snapshot: Annotated[bool, typer.Option(help="Before documents are touched, write every table into `backups` of the home.")] = True,
    as_json: Json = False,
) -> None:
    """Apply the pending migrations.

    Each in one transaction; nothing happens when there is none. `stemma up` does this by itself. Two at once apply each migration once. A database that holds documents is dumped first and the dump read back; without it nothing is migrated. The newest two are kept, and `stemma db rollback` puts one back.

    \b
    Example:
      stemma db upgrade
    """
    from stemma.cli.postgres import server_url
    from stemma.settings import load_settings
    from stemma.store.dumps import upgrade_safely
    from stemma.store.postgres import connect

    settings = load_settings()
    with server_url(settings) as url, connect(url) as connection:
        applied = upgrade_safely(connection, url, settings.home, snapshot=snapshot)
    if as_json:
        print_json({"applied": applied})
        return
    for name in applied:
        print(f"applied {name}")
    if not applied:
        note("The schema is up to date.")


@app.command()
@command
def rollback(
    name: Annotated[
        str | None, typer.Argument(help="The snapshot; without it, those that there are are listed.", show_default=False)
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Put back the database as it was before an upgrade.

    All that was done since is lost, so it asks. Nobody may be connected: stop Stemma first. Afterwards use the release that the snapshot is from; this one would upgrade it again.

    Exits with 1 when the question was answered with no.

    \b
    Examples:
      stemma db rollback
      stemma db rollback 008-009.dump
    """
    from stemma.cli.postgres import server_url
    from stemma.settings import load_settings
    from stemma.store.dumps import dumps, put_back

    settings = load_settings()
    if name is None:
        found = dumps(settings.home)
        rows = [
            {"name": d.path.name, "before": d.before, "upgraded_to": d.upgraded_to, "taken_at": d.taken_at, "size_bytes": d.size_bytes}
            for d in found
        ]
        if as_json:
            print_json(rows)
            return
        with table("snapshot", "of schema", "before the upgrade to", "taken at", "size") as add:
            for d in found:
                add(d.path.name, d.before, d.upgraded_to, f"{d.taken_at:%Y-%m-%d %H:%M}", f"{d.size_bytes / 1e6:.1f} MB")
        if not rows:
            note("There is no snapshot: none was needed yet.")
        return
    if not (yes or as_json) and not typer.confirm(f"Replace the database by {name}? What was done since is lost.", err=True):
        raise typer.Exit(ExitCode.PROBLEMS)
    with server_url(settings) as url:
        done = put_back(url, settings.home, name)
    if as_json:
        print_json({"name": name, "schema": done.before})
    else:
        print(f"The database is as it was at {done.taken_at:%Y-%m-%d %H:%M}, with the schema {done.before}.")


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


@app.command()
@command
def index(
    rebuild: Annotated[
        Literal["vectors", "keywords"] | None,
        typer.Option(help="Make again: the search structure over the vectors, or the keyword index from its rows. No model is called."),
    ] = None,
    m: Annotated[int | None, typer.Option("--m", help="HNSW: links per vector.", show_default=False)] = None,
    ef_construction: Annotated[
        int | None, typer.Option("--ef-construction", help="HNSW: candidates looked at while building.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the indexes, or make one again.

    Searches go on meanwhile: they use what is there until the new one is whole. Only while a keyword index is lost, full-text search in PostgreSQL answers in its place. --m and --ef-construction rebuild the search structure of the active vectors with these parameters.

    \b
    Examples:
      stemma db index
      stemma db index --rebuild keywords
      stemma db index --rebuild vectors --m 32 --ef-construction 128
    """
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages.index_report import report_indexes
    from stemma.store.postgres import connect

    settings = load_settings()
    with corpus_database(settings) as url:
        done: dict[str, Any] = {}
        if rebuild == "keywords":
            done = _rebuild_keywords(settings, show=not as_json)
        elif rebuild == "vectors" or m is not None or ef_construction is not None:
            done = _rebuild_vectors(settings, m=m, ef_construction=ef_construction)
        with connect(url) as connection:
            report = report_indexes(connection)
    if as_json:
        print_json({"rebuilt": done or None, **asdict(report)})
    else:
        _print_indexes(report)


def _rebuild_keywords(settings: "Settings", *, show: bool) -> dict[str, Any]:
    from contextlib import closing

    from stemma.stages.installation import Installation
    from stemma.stages.keyword_rebuild import rebuild_keyword_index

    with closing(Installation(settings)) as here, counting("Indexing documents", show=show) as draw:
        rebuilt = rebuild_keyword_index(here, progress=draw)
    if rebuilt.reason:
        note(f"The keyword index was lost: {rebuilt.reason}.")
    note(f"Indexed {rebuilt.n_documents} documents, {rebuilt.n_entries} entries.")
    return asdict(rebuilt)


def _rebuild_vectors(settings: "Settings", *, m: int | None, ef_construction: int | None) -> dict[str, Any]:
    from contextlib import closing

    from stemma.stages.installation import Installation
    from stemma.stages.vector_rebuild import rebuild_search_structure

    with closing(Installation(settings)) as here:
        hnsw = rebuild_search_structure(here, m=m, ef_construction=ef_construction)
    note("Nothing was ingested yet." if hnsw is None else f"Built with m={hnsw.m}, ef_construction={hnsw.ef_construction}.")
    return asdict(hnsw) if hnsw else {}


def _print_indexes(report: "IndexReport") -> None:
    with table("vectors", "model", "dimension", "state", "chunks", "covered", "search structure", "size") as add:
        for index in report.embedding:
            built = index.hnsw and (index.hnsw if index.hnsw_whole else f"{index.hnsw} (cut off)")
            size = f"{index.n_bytes / 1e6:.1f} MB" if index.hnsw else None
            add(index.embedding_index_id, index.model, index.dimension, index.state, index.n_chunks, index.n_covered, built, size)
    print()
    with table("keywords", "engine", "name", "state", "documents", "covered") as add:
        for index in report.sparse:
            state = "being made again" if index.incomplete_since and index.state == "active" else index.state
            add(index.sparse_index_id, index.backend, index.name, state, index.n_documents, index.n_covered)
