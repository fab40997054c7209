"""`stemma figures`: take the pictures that published documents lack; texts, chunks and vectors stay as they are."""

from dataclasses import asdict
from typing import Annotated

import typer

from stemma.cli.console import ExitCode, command, note, print_json

DOCUMENTS_PER_PASS = 200


@command
def figures(
    *,
    again: Annotated[bool, typer.Option("--again", help="Take every picture again, also those that are kept.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: documents, pictures, failed.")] = False,
) -> None:
    """Take the pictures of figures that published documents lack.

    Every run does this for its documents; this is for what was published before pictures were kept and, with --again, for pictures that
    were lost. No text is read, cut or embedded again. What is interrupted goes on where it stopped.

    Exits with 1 when the pictures of a document could not be taken.

    \b
    Examples:
      stemma figures
      stemma figures --again --json
    """
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.stages.figures import Kept, forget_all_figures, keep_figures
    from stemma.store.app_settings import current_settings
    from stemma.store.lake import Lake
    from stemma.store.postgres import open_pool

    base = load_settings()
    done = Kept()
    with corpus_database(base) as url, open_pool(url) as pool:
        if again:
            forget_all_figures(pool)
        with pool.connection() as connection:
            settings = current_settings(connection, base)
        lake = Lake(settings.lake_url)
        while (kept := keep_figures(pool, lake, settings, limit=DOCUMENTS_PER_PASS)).documents:
            done = Kept(done.documents + kept.documents, done.pictures + kept.pictures, kept.failed)
        done = Kept(done.documents, done.pictures, kept.failed)
    if as_json:
        print_json(asdict(done))
    else:
        note(f"{done.pictures} pictures of {done.documents} documents" + (f", {done.failed} documents failed" if done.failed else ""))
    if done.failed:
        raise typer.Exit(ExitCode.PROBLEMS)
