"""`stemma backfill`: bring what is stale up to date, or make something again; what it costs, and how far it is."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import ExitCode, command, note, print_json
from stemma.cli.options import StageOption, WorkspaceOption
from stemma.errors import RequestError

if TYPE_CHECKING:
    from stemma.library.estimate import Estimate
    from stemma.library.restriction import Restriction
    from stemma.settings import Settings

INTERRUPTED = 130  # what a shell calls a command that Ctrl-C ended


class InvalidMadeBy(RequestError):
    """--made-by is not of the form NAME=VALUE."""

    code, remedy = "invalid_made_by", "Write for example `--made-by parser=pdfium`; `stemma show` prints what made a document."


@command
def backfill(
    *,
    stage: StageOption = None,
    force: Annotated[bool, typer.Option("--force", help="Make it again from --stage on (default: documents), stale or not.")] = False,
    workspace: WorkspaceOption = None,
    path: Annotated[list[str] | None, typer.Option("--path", help="Only this file or folder; may be repeated.", show_default=False)] = None,
    made_by: Annotated[
        list[str] | None,
        typer.Option(
            "--made-by",
            metavar="NAME=VALUE",
            help="Make again whatever this made: parser, parser_version, chunker or embedding_model. May be repeated: all must hold.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and do nothing.")] = False,
    detach: Annotated[bool, typer.Option("--detach", help="Ask for it and return.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="End with one JSON object on standard output.")] = False,
) -> None:
    """Bring what is stale up to date, or make something again.

    Without --force and --made-by only what is stale is worked on (with --stage: from that stage on), and what was made before is used.
    With them the documents are made again whatever is known, from --stage on; --made-by alone begins at the stage that it speaks of.
    Documents stay searchable in their old version until the new one is published. Ctrl-C leaves the work going on in the background, and
    the same command without --force follows it again. One run takes BATCH_SIZE documents at most; ending a run in Dagster ends it within one batch, with nothing half-published.

    \b
    Examples:
      stemma backfill --dry-run
      stemma backfill --stage chunks --workspace handbook
      stemma backfill --stage embeddings --force --detach
      stemma backfill --made-by parser=pdfium --made-by parser_version=5.11.0 --dry-run

    \b
    The JSON object of --dry-run:
      {"documents", "by_stage", "runs", "chunks", "parse_calls", "context_calls", "embed_calls", "seconds", "runs_measured",
       "exact": names of the numbers that are no estimates}
    and without it that of `stemma ingest`, or with --detach {"documents"}.
    """
    from stemma.cli.ingest import describe, follow, require_running, summarize
    from stemma.library.restriction import Restriction
    from stemma.settings import load_settings

    settings = load_settings()
    restriction = Restriction(_source_paths(settings, path), workspace, _made_by(made_by or []))
    force = force or bool(restriction.made_by)
    if dry_run:
        estimate = _estimate(settings, restriction, stage, force=force)
        print_json(asdict(estimate)) if as_json else _print_estimate(estimate)
        return
    require_running(settings)
    started, since = time.monotonic(), datetime.now(UTC)
    asked_for = _wish(settings, restriction, stage, force=force, since=since)
    if detach:
        print_json({"documents": asked_for}) if as_json else note(f"{asked_for} documents asked for. `stemma status` shows how far it is.")
        return
    note(f"{asked_for} documents asked for.")
    try:
        state = follow(settings, since, show=not as_json)
    except KeyboardInterrupt:
        note("\nThe work goes on in the background. `stemma status` shows how far it is, `stemma backfill` follows it again.")
        raise typer.Exit(INTERRUPTED) from None
    summary = summarize(state, seconds=round(time.monotonic() - started, 1))
    print_json(summary) if as_json else print(describe(summary))
    if summary["failed"]:
        note("`stemma documents --failed` shows which documents failed, and why.")
        raise typer.Exit(ExitCode.PROBLEMS)


def _source_paths(settings: "Settings", paths: list[str] | None) -> list[str] | None:
    from stemma.cli.home import supervisor_of
    from stemma.cli.ingest import source_path_of

    if not paths:
        return None
    holder = supervisor_of(settings.home)
    library = Path(holder.library) if holder and holder.library else settings.library
    return [source_path_of(path, library) for path in paths]


def _made_by(given: list[str]) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in given]
    if malformed := [name for name, sign, value in pairs if not (name and sign and value)]:
        raise InvalidMadeBy(f"{malformed[0]!r} has no value")
    return {name: value for name, _, value in pairs}


def _estimate(settings: "Settings", restriction: "Restriction", stage: Any, *, force: bool) -> "Estimate":
    from stemma.cli.stale import opened
    from stemma.embedding.models import embedding_spec
    from stemma.library.estimate import estimate_work

    with opened(settings) as library:
        spec = embedding_spec(library.settings.embedding_model)
        return estimate_work(
            library.connection, library.settings, library.wanted, spec, restriction, stage=stage, force=force, now=datetime.now(UTC)
        )


def _wish(settings: "Settings", restriction: "Restriction", stage: Any, *, force: bool, since: datetime) -> int:
    from stemma.cli.stale import opened
    from stemma.library.wishes import wish

    with opened(settings) as library:
        return wish(library.connection, library.settings, library.wanted, restriction, stage=stage, force=force, now=since)


def _print_estimate(estimate: "Estimate") -> None:
    if not estimate.documents:
        print("Nothing is to be done.")
        return
    stages = ", ".join(f"{count} from {stage} on" for stage, count in estimate.by_stage.items())
    print(f"{estimate.documents} documents ({stages}), in {estimate.runs} runs or more")

    def say(name: str, words: str, about: str) -> None:
        number: int = getattr(estimate, name)
        print(f"{number if name in estimate.exact else f'{about} {number}'} {words}")

    say("chunks", "chunks", "about")
    say("parse_calls", "documents parsed", "at most")
    say("context_calls", "contexts written by a model", "at most")
    say("embed_calls", "strings embedded, beside what the cache holds", "at most about")
    if estimate.seconds is None:
        print("no run has ended yet that would tell how long it takes")
    else:
        print(f"about {_duration(estimate.seconds)}, by what the last {estimate.runs_measured} runs took")


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
