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
