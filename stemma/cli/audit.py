"""`stemma audit` and `stemma gc`: whether every promise holds, and what may be thrown away."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from stemma.cli.console import ExitCode, command, note, print_json

if TYPE_CHECKING:
    import polars as pl

    from stemma.stages.installation import Installation

SHOWN_PER_CHECK = 10
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@command
def audit(
    repair: Annotated[bool, typer.Option("--repair", help="Put right what was found, then audit once more.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Also read every file and compare its hash.")] = False,
    as_json: Json = False,
) -> None:
    """Read every store and report each promise that does not hold.

    Offsets, hashes, chunks, vectors, keyword entries, files, statuses, stage results: what should be equal is compared. Nothing is
    changed without --repair, which asks no model; documents that have to be made again are left to the next run, and
    so is what waits for a look at the library.

    Exits with 1 when something was found, with --repair when something is left.

    \b
    Examples:
      stemma audit
      stemma audit --deep --json | jq '.violations[] | .check'
      stemma audit --repair
    """
    from datetime import UTC, datetime

    from stemma.audit.audit import audit as examine
    from stemma.audit.repair import repair as put_right

    with _installation() as here:
        left = examine(here, deep=deep, now=datetime.now(UTC))
        done = put_right(here, left, now=datetime.now(UTC)) if repair else []
        if done:
            left = examine(here, deep=deep, now=datetime.now(UTC))
    if as_json:
        print_json({"clean": left.is_empty(), "repaired": done, "violations": left.to_dicts()})
    else:
        _print(left, done)
    if not left.is_empty():
        raise typer.Exit(ExitCode.PROBLEMS)


@command
def gc(as_json: Json = False) -> None:
    """Throw away what the lake and the vector cache hold above their limits, and what deleted documents and interrupted work left.

    The limits are LAKE_MAX_BYTES and EMBEDDING_CACHE_MAX_BYTES. What any document stands on stays, whatever the limit. A
    running Stemma does this by itself once an hour.

    \b
    Example:
      stemma gc
    """
    from dataclasses import asdict
    from datetime import UTC, datetime

    from stemma.stages.garbage import collect_garbage

    with _installation() as here:
        reclaimed = collect_garbage(here.pool, here.lake, here.settings(), now=datetime.now(UTC))
    if as_json:
        print_json(asdict(reclaimed))
    else:
        print(reclaimed.message)


@contextmanager
def _installation() -> "Generator[Installation]":
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages.installation import Installation

    base = load_settings()
    with corpus_database(base):
        here = Installation(base)
        try:
            yield here
        finally:
            here.close()


def _print(left: "pl.DataFrame", done: list[str]) -> None:
    from stemma.audit.violations import CHECKS

    for sentence in done:
        note(f"repaired: {sentence}")
    if left.is_empty():
        note(f"Clean: {len(CHECKS)} promises hold.")
        return
    for (check,), rows in left.group_by("check", maintain_order=True):
        print(f"{check}: {rows.height} against: {CHECKS[str(check)]}")
        for subject, detail in rows.head(SHOWN_PER_CHECK).select("subject", "detail").iter_rows():
            print(f"  {subject}: {detail}")
        if rows.height > SHOWN_PER_CHECK:
            print(f"  ... and {rows.height - SHOWN_PER_CHECK} more; --json lists all")
