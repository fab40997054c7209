"""`stemma settings`: every setting with its value, where the value comes from, and what it affects."""

from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import command, note, print_json, table

if TYPE_CHECKING:
    from stemma.settings import Settings
    from stemma.store.described_settings import DescribedSetting
    from stemma.store.postgres import Connection

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.callback()
def settings(context: typer.Context, as_json: Json = False) -> None:
    """Show and change settings.

    Defaults give way to the environment (STEMMA_...), and that to overrides, which are stored with the corpus.

    \b
    Examples:
      stemma settings
      stemma settings set CHUNK_SIZE=600 CHUNK_OVERLAP=80
      stemma settings unset CHUNK_SIZE CHUNK_OVERLAP
    """
    if context.invoked_subcommand is None:
        list_settings(as_json=as_json)


@app.command("list")
@command
def list_settings(as_json: Json = False) -> None:
    """Show every setting.

    With its value, its source (default, env or override) and the stage that a change touches.

    \b
    Examples:
      stemma settings list
      stemma settings list --json | jq '.[] | select(.source != "default")'
    """
    from stemma.settings import load_settings
    from stemma.store.described_settings import describe_settings

    base = load_settings()
    with _connection(base) as connection:
        described = describe_settings(base, connection)
    if as_json:
        print_json([_row(setting) for setting in described])
        return
    with table("setting", "value", "source", "stage", "meaning") as add:
        for setting in described:
            add(setting.name, setting.value, setting.source, setting.stage, setting.description)


@app.command("set")
@command
def set_settings(
    assignments: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="Settings, validated together before any is stored.")],
    as_json: Json = False,
) -> None:
    """Override settings.

    What becomes stale by it is rebuilt, and searches go on meanwhile.

    \b
    Examples:
      stemma settings set CHUNKING_STRATEGY=recursive_character
      stemma settings set SEMANTIC_WEIGHT=0.7 BM25_WEIGHT=0.3
    """
    from stemma.cli.postgres import corpus_database
    from stemma.settings import InvalidSetting, load_settings
    from stemma.store.app_settings import set_overrides
    from stemma.store.postgres import connect

    base = load_settings()
    given: dict[str, str] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign:
            raise InvalidSetting(f"{assignment} is not of the form NAME=VALUE")
        given[name] = value
    with corpus_database(base) as url, connect(url) as connection:
        changed = set_overrides(connection, base, given)
        _report(base, connection, given, as_json=as_json)
    _warn(changed)


@app.command("unset")
@command
def unset_settings(names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Settings.")], as_json: Json = False) -> None:
    """Forget overrides.

    The environment or the default holds again.

    \b
    Example:
      stemma settings unset CHUNK_SIZE
    """
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.store.app_settings import unset_overrides
    from stemma.store.postgres import connect

    base = load_settings()
    with corpus_database(base) as url, connect(url) as connection:
        changed = unset_overrides(connection, base, names)
        _report(base, connection, names, as_json=as_json)
    _warn(changed)


def _report(base: "Settings", connection: "Connection", names: Iterable[str], *, as_json: bool) -> None:
    """Say what holds now for the settings that were touched."""
    from stemma.store.app_settings import canonical_name
    from stemma.store.described_settings import describe_settings

    names_touched = {canonical_name(name) for name in names}
    touched = [setting for setting in describe_settings(base, connection) if setting.name in names_touched]
    if as_json:
        print_json([_row(setting) for setting in touched])
        return
    for setting in touched:
        print(f"{setting.name} = {setting.value} ({setting.source}; stage: {setting.stage})")


def _row(setting: "DescribedSetting") -> dict[str, Any]:
    """What JSON shows of a setting."""
    names = ("name", "value", "source", "stage", "description", "allowed")
    return {name: getattr(setting, name) for name in names}


def _warn(changed: "Settings") -> None:
    """Say on standard error what is allowed and hardly meant."""
    from stemma.embedding.window import window_warning

    if warning := window_warning(changed):
        note(f"Warning: {warning}.")


@contextmanager
def _connection(base: "Settings") -> "Generator[Connection | None]":
    """A connection, or None with a word about it: the environment's share is known without a database."""
    from stemma.cli.postgres import corpus_database
    from stemma.errors import Unavailable
    from stemma.store.postgres import connect

    with ExitStack() as opened:
        connection = None
        try:
            connection = opened.enter_context(connect(opened.enter_context(corpus_database(base))))
        except Unavailable as error:
            note(f"Overrides are not shown. {error}")
        yield connection
