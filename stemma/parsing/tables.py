"""Tables as Markdown, the one notation that chunkers, readers and models share."""

from collections.abc import Iterable, Sequence

MAX_FILLED_CELLS = 1_000_000
"""Beyond it, and where most of them would be blank, short rows stay short: a wide row must not be paid for by every other one."""


def markdown_table(rows: Iterable[Sequence[str]]) -> str:
    """A pipe table whose first row is the header; short rows are filled, wholly blank rows left out. Blank when nothing is in it.

    White space inside a cell becomes one space and `|` becomes `\\|`, so that a row stays a line. In a sparse table of more than
    MAX_FILLED_CELLS the header alone is filled; Markdown reads what a row lacks as blank cells.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(len(row) - next((i for i, value in enumerate(reversed(row)) if value), len(row)) for row in cells)
    filled = width * len(cells) <= max(MAX_FILLED_CELLS, 4 * sum(map(len, cells)))
    lines = ["| " + " | ".join(row[:width] + [""] * (width - len(row) if filled or row is cells[0] else 0)) + " |" for row in cells]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _cell(value: str) -> str:
    return " ".join(value.replace("|", "\\|").split())
