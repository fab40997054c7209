"""Tables as Markdown, the one notation that chunkers, readers and models share."""

from collections.abc import Iterable, Sequence


def markdown_table(rows: Iterable[Sequence[str]]) -> str:
    """A pipe table whose first row is the header; short rows are filled, wholly blank rows left out. Blank when nothing is in it.

    White space inside a cell becomes one space and `|` becomes `\\|`, so that a row stays a line.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    cells = [row for row in cells if any(row)]
    if not cells:
        return ""
    width = max(len(row) - next((i for i, value in enumerate(reversed(row)) if value), len(row)) for row in cells)
    lines = ["| " + " | ".join(row[:width] + [""] * (width - len(row))) + " |" for row in cells]
    lines.insert(1, "|" + " --- |" * width)
    return "\n".join(lines)


def _cell(value: str) -> str:
    return " ".join(value.replace("|", "\\|").split())
