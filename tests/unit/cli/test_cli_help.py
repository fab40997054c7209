"""The command line teaches itself, quickly."""

import json
import subprocess
import sys

import pytest
import typer.main
from typer.testing import CliRunner

from stemma.cli.main import app

ROOT = typer.main.get_command(app)
PATHS = [(name,) for name in ROOT.commands] + [
    (name, below) for name, command in ROOT.commands.items() for below in getattr(command, "commands", {})
]
HEAVY = {
    "torch",
    "sentence_transformers",
    "docling",
    "mcp",
    "dagster",
    "polars",
    "tantivy",
    "fastapi",
    "psycopg",
    "pydantic",
    "great_expectations",
}


def test_the_commands_are_those_of_the_reference():
    assert set(ROOT.commands) == {
        "up",
        "down",
        "status",
        "ingest",
        "stale",
        "backfill",
        "search",
        "documents",
        "show",
        "cancel",
        "retry",
        "trace",
        "figures",
        "delete",
        "prune",
        "reembed",
        "parse",
        "chunk",
        "audit",
        "gc",
        "mcp",
        "export",
        "bundles",
        "restore",
        "doctor",
        "settings",
        "db",
        "bundle",
    }


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_says_what_it_does_and_gives_an_example(path):
    shown = CliRunner().invoke(app, [*path, "--help"])
    assert shown.exit_code == 0
    assert "Example" in shown.stdout or "Commands:" in shown.stdout


def test_the_exit_codes_stand_in_the_help():
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert [line.split()[0] for line in shown.splitlines() if line.startswith("    ") and line.split()[0].isdigit()] == ["0", "1", "2", "3"]


def test_help_imports_nothing_heavy():
    code = "import json, sys; from stemma.cli.main import app\ntry: app(['--help'])\nexcept SystemExit: pass\nprint(json.dumps(list(sys.modules)))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert HEAVY & set(json.loads(shown.splitlines()[-1])) == set()


def test_wrong_usage_ends_with_2():
    assert CliRunner().invoke(app, ["search"]).exit_code == 2
    assert CliRunner().invoke(app, ["search", "x", "--method", "magic"]).exit_code == 2
    assert CliRunner().invoke(app, ["no-such-command"]).exit_code == 2
