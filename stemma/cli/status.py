"""`stemma status`: what runs, and how far the corpus is."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import ExitCode, command, note, print_json

if TYPE_CHECKING:
    from stemma.settings import Settings


@command
def status(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Show what runs, and how far the corpus is.

    That is the addresses, how many documents are ready, at work, or failed, and how far indexes are that are being built.

    Exits with 3 when Stemma does not run, and with 1 when documents failed.

    \b
    Examples:
      stemma status
      stemma status --json | jq .documents.by_status
    """
    from stemma.cli.home import served_settings

    found = look(served_settings())
    if as_json:
        print_json(found)
    else:
        _print(found)
    if not found["running"]:
        raise typer.Exit(ExitCode.UNAVAILABLE)
    if found["documents"]["by_status"].get("failed"):
        raise typer.Exit(ExitCode.PROBLEMS)


def look(settings: "Settings") -> dict[str, Any]:
    """What `--json` prints. Of a home where nothing runs, only where it is.

    Raises:
        StoreUnavailable: it runs, but PostgreSQL does not answer.
    """
    from stemma.cli.addresses import addresses, service_problem
    from stemma.cli.home import supervisor_of
    from stemma.orchestrator import is_up, problem

    holder = supervisor_of(settings.home)
    served = settings.postgres_url is not None and is_up(settings)  # by whatever else runs the parts, such as compose
    if holder is None and not served:
        return {"running": False, "home": str(settings.home)}
    return {
        "running": True,
        "home": str(settings.home),
        "pid": holder.pid if holder else None,
        "state": holder.state if holder else None,
        "library": str(settings.library),
        "addresses": addresses(settings),
        "problems": {"service": service_problem(settings), "dagster": problem(settings)},
        **_corpus(settings),
        "stale": _stale(settings),
    }


def _corpus(base: "Settings") -> dict[str, Any]:
    from stemma.cli.postgres import corpus_database
    from stemma.embedding.window import window_warning
    from stemma.library.listing import count_by_status
    from stemma.library.looks import last_look
    from stemma.stages.index_report import report_indexes
    from stemma.store.app_settings import current_settings
    from stemma.store.postgres import connect

    with corpus_database(base) as url, connect(url) as connection:
        by_status, notices = count_by_status(connection), last_look(connection).notices
        warning = window_warning(current_settings(connection, base))
        indexes = report_indexes(connection)
    return {
        "documents": {"total": sum(by_status.values()), "by_status": by_status},
        "indexes": asdict(indexes),
        "notices": list(notices),
        "warnings": [warning] if warning else [],
    }


def _stale(settings: "Settings") -> dict[str, Any]:
    """How far a backfill is: what is stale by the stage it is stale from, and how much of it a run has taken."""
    import polars as pl

    from stemma.cli.stale import opened
    from stemma.library.staleness import n_sources

    with opened(settings) as library:
        counts = library.counts()
    by_stage = counts.group_by("stage").agg(pl.col("sources").sum()).sort("stage")
    return {
        "total": n_sources(counts),
        "by_stage": dict(by_stage.iter_rows()),
        "taken": n_sources(counts.filter(pl.col("waits_for") == "run")),
        "waiting": n_sources(counts.filter(pl.col("waits_for").is_null())),
    }


def _print(found: dict[str, Any]) -> None:
    if not found["running"]:
        note(f"Stemma does not run in {found['home']}. Start it with `stemma up`.")
        return
    print(f"Running as pid {found['pid']} in {found['home']}" if found["pid"] else "Running")
    print(f"  {'Library':<12} {found['library']}")
    for name, address in found["addresses"].items():
        print(f"  {name:<12} {address}")
    counts = ", ".join(f"{count} {status}" for status, count in found["documents"]["by_status"].items() if count)
    print(f"  {'Documents':<12} {found['documents']['total']}" + (f": {counts}" if counts else ""))
    for warning in found["warnings"]:
        print(f"  Warning: {warning}")
    for index in found["indexes"]["embedding"]:
        if index["state"] != "retired":
            print(f"  {'Vectors':<12} {index['model']}, {index['state']}: {index['n_covered']} of {index['n_chunks']} chunks")
    for index in found["indexes"]["sparse"]:
        if index["state"] != "retired":
            state = "being made again" if index["incomplete_since"] else index["state"]
            print(f"  {'Keywords':<12} {index['backend']}, {state}: {index['n_covered']} of {index['n_documents']} documents")
    for notice in found["notices"]:
        print(f"  {notice}")
    if (of_stale := found["stale"])["total"]:
        stages = ", ".join(f"{count} from {stage} on" for stage, count in of_stale["by_stage"].items())
        print(f"  {'Stale':<12} {of_stale['total']}: {stages}; {of_stale['taken']} taken by runs, {of_stale['waiting']} to be taken")
    for part, reason in found["problems"].items():
        if reason:
            print(f"  {part} is not in order: {reason}")
