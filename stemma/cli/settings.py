"""`stemma settings`: every setting with its value, where the value comes from, and what it affects."""

import re
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import command, note, print_json, table

if TYPE_CHECKING:
    from stemma.settings import Settings
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

    base = load_settings()
    with _connection(base) as connection:
        rows = describe_settings(base, connection)
    if as_json:
        print_json(rows)
        return
    with table("setting", "value", "source", "stage", "meaning") as add:
        for row in rows:
            add(row["name"], row["value"], row["source"], row["stage"], row["description"])


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


def describe_settings(base: "Settings", connection: "Connection | None") -> list[dict[str, Any]]:
    """One row per setting: name, value, source, stage, description, allowed values. Without a connection no override is known."""
    from stemma.settings import SETTINGS, with_overrides
    from stemma.store.app_settings import read_overrides, valid_overrides

    overrides = valid_overrides(base, read_overrides(connection)) if connection is not None else {}
    values = with_overrides(base, overrides).model_dump(mode="json")
    return [
        {
            "name": name,
            "value": _without_password(values[name.lower()]),
            "source": "override" if name in overrides else "env" if name.lower() in base.model_fields_set else "default",
            "stage": info.stage,
            "description": info.description,
            "allowed": info.allowed,
        }
        for name, info in SETTINGS.items()
    ]


def _without_password(value: Any) -> Any:
    return re.sub(r"(://[^/@:]*):[^/@]+@", r"\1:***@", value) if isinstance(value, str) else value


def _report(base: "Settings", connection: "Connection", names: Iterable[str], *, as_json: bool) -> None:
    """Say what holds now for the settings that were touched."""
    from stemma.store.app_settings import canonical_name

    touched = {canonical_name(name) for name in names}
    rows = [row for row in describe_settings(base, connection) if row["name"] in touched]
    if as_json:
        print_json(rows)
        return
    for row in rows:
        print(f"{row['name']} = {row['value']} ({row['source']}; stage: {row['stage']})")


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
