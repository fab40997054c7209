"""Sheets of cells -> tables below the sheet's name: shared by every kind of workbook."""

from collections.abc import Iterable

from stemma.parsing.draft import DraftBuilder
from stemma.parsing.tables import markdown_table

Cells = dict[int, str]
"""Column, from 1 -> shown text; blank cells are absent."""


def add_sheet(builder: DraftBuilder, name: str, rows: Iterable[tuple[int, Cells]]) -> bool:
    """Append a sheet's tables, divided by blank rows and without blank columns; returns whether it has any text.

    Args:
        rows: number and cells of the rows that show anything, in order.
    Raises:
        DocumentTooLarge: its tables would be longer than a document may be.
    """
    table: list[Cells] = []
    last_row = 0
    named = False

    def add() -> bool:
        if not table:
            return named
        if not named:
            builder.add(name, "heading", level=1)
        columns = sorted({column for cells in table for column in cells})
        builder.check_room(3 * len(columns) * len(table))  # cells that lie apart make a table of blanks
        texts = [[cells.get(column, "") for column in columns] for cells in table]
        if len(columns) == 1 and len(table) == 1:
            builder.add(texts[0][0])  # a note beside the tables
        else:
            builder.add(markdown_table(texts), "table")
        table.clear()
        return True

    for row, cells in rows:
        if row != last_row + 1:
            named = add()
        table.append(cells)
        last_row = row
    return add()
