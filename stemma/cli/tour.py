"""The tour of `make run`: the library is ingested, then one question is asked, so that a newcomer sees the whole way."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from stemma.cli.console import note
from stemma.cli.ingest import describe, run_ingest

if TYPE_CHECKING:
    from stemma.settings import Settings

QUESTIONS = "evals/golden/examples.jsonl"


def library_of_the_tour() -> Path:
    """The documents that ship with the project. Raises IncompleteInstallation."""
    from stemma.cli.installation import project_file

    return project_file("examples/library")


def follow_first_ingest(settings: "Settings", *, since: datetime, meanwhile: Callable[[], None]) -> None:
    """Follow what the start at `since` set off to its end, and say what came of it."""
    note(f"Ingesting {settings.library} …")
    summary = run_ingest(settings, None, force=False, show=True, since=since, meanwhile=meanwhile)
    print(describe(summary))
    if summary["failed"]:
        print("`stemma documents --failed` shows what failed, and why.")


def show_example_search(settings: "Settings") -> None:
    """One search of the example library, as a user would make it; nothing for another library."""
    from stemma.cli.search import answered, print_hits

    question = _question(settings)
    if question is None:
        return
    print(f"$ stemma search {json.dumps(question, ensure_ascii=False)} -k 3 -v\n")
    with answered(settings, question, k=3) as answer:
        print_hits(answer, verbose=1)


def _question(settings: "Settings") -> str | None:
    """The first question that ships with the example library; none of another library is known."""
    from stemma.cli.installation import project_file

    if settings.library != library_of_the_tour():
        return None
    with project_file(QUESTIONS).open(encoding="utf-8") as lines:
        return json.loads(next(lines))["query"]
