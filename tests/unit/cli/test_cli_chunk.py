"""`stemma chunk`: the chunks of a file by every strategy, without any store."""

import json

import pytest
from typer.testing import CliRunner

from stemma.chunking.strategies import UNITS
from stemma.cli.main import app

GUIDE = (
    "# Guide\n\n"
    + "".join(f"Sentence {n} says something of its own. " for n in range(40))
    + "\n\n## Prices\n\n| item | price |\n| --- | --- |\n"
)
GUIDE += "".join(f"| thing {n} | {n} |\n" for n in range(60))


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`run(text, *options)` chunks a Markdown file of that text as the command line would."""
    monkeypatch.setenv("STEMMA_HOME", str(tmp_path / "home"))

    def run(text: str, *options: str):
        (tmp_path / "guide.md").write_text(text)
        return CliRunner().invoke(app, ["chunk", str(tmp_path / "guide.md"), *options])

    return run


@pytest.mark.parametrize("strategy", sorted(UNITS.keys() - {"semantic"}))  # its model is loaded in the integration tests
def test_every_strategy_prints_chunks_with_their_places(run, strategy):
    shown = json.loads(run(GUIDE, "--strategy", strategy, "--size", "100", "--overlap", "0", "--json").stdout)
    assert (shown["strategy"], shown["size"], shown["overlap"], shown["unit"]) == (strategy, 100, 0, UNITS[strategy])
    assert len(shown["chunks"]) > 3
    assert [chunk["char_end"] - chunk["char_start"] for chunk in shown["chunks"]] == [len(chunk["content"]) for chunk in shown["chunks"]]


def test_the_table_names_places_and_sections(run):
    result = run("# Title\n\nSome text.\n")
    assert result.stderr == "guide.md: 1 chunks by markdown_aware, size 800 characters, overlap 100\n"
    assert result.stdout.splitlines()[1].split() == ["0", "0-19", "1-3", "5", "prose", "Title", "#", "Title", "Some", "text."]


def test_rows_below_the_head_of_a_table_show_its_columns(run):
    last = run(GUIDE, "--strategy", "docling_hybrid", "--size", "60").stdout.splitlines()[-1]
    assert "Guide > Prices > item | price" in last


def test_an_impossible_size_is_wrong_usage(run):
    result = run("Text.", "--size", "10", "--overlap", "10")
    assert (result.exit_code, result.stderr.split(":")[0]) == (2, "invalid_chunk_size")


def test_a_size_alone_brings_an_overlap_that_goes_with_it(run):
    assert json.loads(run("Text.", "--size", "40", "--json").stdout)["overlap"] == 5


def test_an_unknown_strategy_is_wrong_usage(run):
    assert run("Text.", "--strategy", "by_feeling").exit_code == 2


def test_a_file_that_is_absent_is_unreadable(tmp_path):
    result = CliRunner().invoke(app, ["chunk", str(tmp_path / "none.txt")])
    assert (result.exit_code, result.stderr.split(":")[0]) == (1, "unreadable")
