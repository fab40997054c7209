"""`stemma parse`: text, blocks and failures, without any store."""

import json

import pytest
from typer.testing import CliRunner

from stemma.cli.main import app


@pytest.fixture
def run(tmp_path, monkeypatch):
    """`run(name, data, *options)` parses a file of that name and content as the command line would."""
    monkeypatch.setenv("STEMMA_HOME", str(tmp_path / "home"))

    def run(name: str, data: bytes, *options: str):
        (tmp_path / name).write_bytes(data)
        return CliRunner().invoke(app, ["parse", str(tmp_path / name), *options])

    return run


def test_the_text_goes_to_standard_output_and_what_is_known_beside_it(run):
    result = run("a.md", b"# Title\n\nText\n")
    assert (result.exit_code, result.stdout) == (0, "# Title\n\nText\n\n")
    assert "markdown" in result.stderr


def test_blocks_are_listed_with_their_spans(run):
    lines = run("a.md", b"# Title\n\nText\n", "--blocks").stdout.splitlines()
    assert [line.split() for line in lines[1:]] == [["heading", "1", "0-7", "1-1", "#", "Title"], ["paragraph", "9-13", "3-3", "Text"]]


def test_json_holds_the_whole_document(run):
    document = json.loads(run("a.csv", b"a,b\n1,2\n", "--json").stdout)
    assert document["text"] == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert (document["source_path"], document["assets"][0]["kind"], document["elapsed_s"] > 0) == ("a.csv", "table", True)


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [("a.docx", b"PK\x03\x04 cut", "corrupt"), ("a.zip", b"PK\x03\x04", "unsupported"), ("a.pdf", b"%PDF-1.4", "corrupt")],
)
def test_a_file_that_cannot_be_read_ends_with_its_code(run, name, data, code):
    result = run(name, data)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"{code}: {name}: ")


def test_a_failure_as_json_is_one_object(run):
    assert json.loads(run("a.zip", b"PK\x03\x04", "--json").stderr)["code"] == "unsupported"


def test_a_file_that_is_absent_is_unreadable(tmp_path):
    result = CliRunner().invoke(app, ["parse", str(tmp_path / "none.txt")])
    assert (result.exit_code, result.stderr.split(":")[0]) == (1, "unreadable")


def test_a_limit_of_the_environment_holds(run, monkeypatch):
    monkeypatch.setenv("STEMMA_MAX_FILE_BYTES", "10")
    assert run("a.txt", b"x" * 11).stderr.startswith("too_large")
