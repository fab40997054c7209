"""Which table's head a chunk lacks, because it begins below it: said in the chunk's context, never pasted into its text."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cache

from stemma.chunking.breadcrumb import MAX_HEADER_CHARS, clipped, one_line
from stemma.chunking.graphemes import next_visible
from stemma.parsing.document import Block, ParsedDocument

_CELL_EDGE = re.compile(r"(?<!\\)\|")
_RULE = frozenset("|-: \t")


def table_headers(document: ParsedDocument, starts: Sequence[int]) -> list[str | None]:
    """For each chunk, by where it begins: the head of the table that it begins in, if it begins below it; else None."""
    tables = [block for block in document.blocks if block.kind == "table"]
    table_starts = [table.char_start for table in tables]

    @cache
    def head_of(table: Block) -> tuple[int, str | None]:
        return _head_end(document.text, table), header_of(document.text, table)

    found: list[str | None] = []
    for start in starts:
        i = bisect_right(table_starts, start) - 1
        head_end, header = head_of(tables[i]) if i >= 0 and start < tables[i].char_end else (start, None)
        found.append(header if start > head_end else None)
    return found


def header_of(text: str, table: Block) -> str | None:
    """The column names of a Markdown table, `Name | Price`, clipped to `MAX_HEADER_CHARS`; None when it has none."""
    row_start, row_end = next_visible(text, table.char_start, table.char_end), _head_end(text, table)
    if row_start is None:
        return None
    rule_end = text.find("\n", row_end + 1, table.char_end)
    rule = text[row_end + 1 : table.char_end if rule_end < 0 else rule_end]
    if "-" not in rule or not _RULE.issuperset(rule):
        return None
    # A row of a thousand columns is not read to its end to be clipped.
    cells = _CELL_EDGE.split(text[row_start : min(row_end, row_start + 20 * MAX_HEADER_CHARS)])
    names = [one_line(cell.replace("\\|", "|")) for cell in cells]
    return clipped(" | ".join(name for name in names if name), MAX_HEADER_CHARS) or None


def _head_end(text: str, table: Block) -> int:
    """Where the table's first row ends."""
    row_start = next_visible(text, table.char_start, table.char_end)
    row_end = -1 if row_start is None else text.find("\n", row_start, table.char_end)
    return table.char_end if row_end < 0 else row_end
