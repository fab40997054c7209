"""Inputs that are made to be slow: what a parser does with them grows with their length, not with its square.

Each is so long that work in the square of it would take minutes; what is asserted is that it ends within the limits of a parse.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stemma.parsing import figures
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions, Source
from stemma.parsing.figures import take_pictures
from stemma.parsing.formats import EXTENSIONS, FORMATS
from stemma.parsing.work_folder import WorkFolder
from stemma.parsing.workers import ParseJob, ParserPool

N_CHARS = 200_000
LIMIT_S = 60


def fill(pattern: str, n: int) -> str:
    return pattern * (n // len(pattern))


def wide_and_long(cell: str, end: str, row: str, n: int) -> str:
    """A row of many cells above many rows of one."""
    return fill(cell, n // 2) + end + fill(row, n // 2)


HOSTILE: dict[str, Callable[[int], str]] = {
    "rst simple table, wide and long": lambda n: wide_and_long("= ", "=\n", "a\n", n) + fill("= ", n // 2) + "=\n",
    "rst simple table of one row": lambda n: "== ==\na  b\n" + fill("   c\n", n) + "== ==\n",
    "rst simple tables without rows": lambda n: fill("== ==\n\n", n),
    "rst grid, wide and long": lambda n: wide_and_long("+-", "+\n", "|\n", n),
    "rst figure with many options": lambda n: ".. figure:: x\n" + "".join(f"   :a{i}: b\n" for i in range(n // 14)),
    "rtf title in pieces": lambda n: "{\\rtf1{\\info{\\title " + fill("a\\'41", n) + "}}x\\par}",
    "rtf table, wide and long": lambda n: "{\\rtf1 " + wide_and_long("\\intbl a\\cell ", "\\row ", "\\intbl a\\cell\\row ", n) + "}",
    "html headings in each other": lambda n: "<html>" + fill("<h1>a", n),
    "html tables in each other": lambda n: "<html>" + fill("<table><tr><td>a<td>", n),
    "html table, wide and long": lambda n: "<html><table><tr>" + wide_and_long("<td>x", "", "<tr><td>y", n),
    "html cells over all rows": lambda n: "<html><table><tr>" + wide_and_long("<td rowspan=9999>x", "", "<tr><td>y", n),
    "html document types without end": lambda n: "<html>" + fill("<!DOCTYPE[", 10 * n),
    "html ends without beginnings": lambda n: "<html>" + fill("<div>", n // 2) + fill("</p>", n // 2),
    "md heading with a gap": lambda n: "# a" + " " * n + "b\n",
    "md title with a gap": lambda n: "---\ntitle: a" + " " * n + "b\n---\n",
    "md references": lambda n: fill("[a]: b\n", n),
    "md table, wide and long": lambda n: fill("|a", n // 6) + "|\n" + fill("|-", n // 6) + "|\n" + fill("a\n", n // 2),
    "md lists in each other": lambda n: fill("- ", n),
    "csv table, wide and long": lambda n: wide_and_long("a,", "b\n", "c\n", n),
    "json lines, one broken": lambda n: fill('{"a":1}\n', n) + "{",
    "json arrays in each other": lambda n: "[" * 150 + fill("1,", n) + "1" + "]" * 150,
    "vtt voices without end": lambda n: "WEBVTT\n\n00:00.000 --> 00:01.000\n" + fill("<v.", n),
    "ipynb outputs": lambda n: json.dumps({
        "cells": [{"cell_type": "code", "source": "a", "outputs": [{"output_type": "stream", "text": "a"}] * (n // 45)}],
    }),
    "py blocks further and further in": lambda n: "".join("\n" + " " * i + "a\n" for i in range(int((2 * n) ** 0.5))),
    "xml siblings": lambda n: "<r>x" + fill("<a>b</a>", n) + "</r>",
    "tex table, wide and long": lambda n: "\\begin{tabular}{l}" + wide_and_long("a&", "b\\\\", "c\\\\", n) + "\\end{tabular}",
    "eml names in quotes": lambda n: "From: " + fill('"a" ', n) + "\nSubject: x\n\nhi\n",
    "eml recipients": lambda n: "From: a@b.c\nTo: " + fill("ab@example.org, ", n) + "\nSubject: x\n\nhi\n",
    "eml type with many parameters": lambda n: "From: a@b.c\nContent-Type: text/plain; " + fill("a=b; ", n) + "\n\nhi\n",
    "eml parts": lambda n: "Content-Type: multipart/mixed; boundary=b\n\n" + fill("--b\n\na\n", n // 4) + "--b--\n",
}  # fmt: skip
"""Extension and what is hostile in it -> a file of about so many characters."""


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    with ParserPool(timeout_s=LIMIT_S, memory_bytes=1_500_000_000) as pool:
        yield pool


@pytest.mark.parametrize("n_chars", [N_CHARS, pytest.param(10 * N_CHARS, marks=pytest.mark.slow)], ids=["by default", "ten times as long"])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_made_to_be_slow_ends_within_the_limits(pool, tmp_path, name, n_chars):
    extension = name.split()[0]
    path = tmp_path / f"hostile.{extension}"
    path.write_text(HOSTILE[name](n_chars), "utf-8")
    job = ParseJob(path, path.name, FORMATS[EXTENSIONS[extension]], ParsingOptions(max_document_chars=20 * n_chars))
    ((_, answer),) = pool.parse([job])
    ended = isinstance(answer, ParsedDocument) or answer.code in ("corrupt", "too_large")
    assert ended, answer


def test_a_notebook_is_read_once_for_all_of_its_pictures(tmp_path, monkeypatch):
    n_read, read = [], figures.notebook_cells
    monkeypatch.setattr(figures, "notebook_cells", lambda source: n_read.append(source) or read(source))
    picture = {"output_type": "display_data", "data": {"image/png": "none"}}
    path = tmp_path / "plots.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "", "outputs": [picture] * 3}]}))
    places = tuple(f"output:0/{position}" for position in range(3))
    draft = take_pictures(Source(path, path.name, work=WorkFolder(Path(tmp_path / "work")), pictures=places))
    assert len(draft.metadata["pictures"]) == 3 and len(n_read) == 1
