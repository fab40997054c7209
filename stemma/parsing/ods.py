"""OpenDocument workbooks: one page per sheet, hidden sheets included; values as computed."""

from collections.abc import Iterator

from stemma.parsing.cleaning import is_visible, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.elements import Element, attribute, local_name
from stemma.parsing.opendocument import OpenDocument
from stemma.parsing.sheets import Cells, add_sheet

MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384


def parse_ods(source: Source) -> Draft:
    """The tables of every sheet, below its name as heading; numbers as stored, dates in ISO form, comments left out."""
    builder = DraftBuilder(source)
    hidden: list[str] = []
    without_text: list[int] = []
    with OpenDocument(source) as document:
        sheets = [sheet for sheet in document.body("spreadsheet") if local_name(sheet) == "table"]
        for number, sheet in enumerate(sheets, 1):
            name = attribute(sheet, "name") or ""
            builder.start_page(number, name)
            if attribute(sheet, "style-name") in document.hidden_styles:
                hidden.append(name)
            if not add_sheet(builder, name, _numbered(source, sheet)):
                without_text.append(number)
        properties = document.properties()
    title = stated_title(properties.pop("title", None))
    return builder.finish(title=title, metadata={"hidden_sheets": hidden, "pages_without_text": without_text, **properties})


def _numbered(source: Source, sheet: Element) -> Iterator[tuple[int, Cells]]:
    """Number, from 1, and cells of the rows that show anything; a repeated row as often as the file says."""
    number = n_chars = 0
    for row in _rows(sheet):
        repeated = _count(row, "number-rows-repeated", MAX_ROWS)
        if cells := _cells(row):
            for again in range(min(repeated, MAX_ROWS - number)):
                n_chars += sum(map(len, cells.values()))
                source.check_length(n_chars)
                yield number + again + 1, cells
        number += repeated


def _rows(parent: Element) -> Iterator[Element]:
    for element in parent:
        if local_name(element) == "table-row":
            yield element
        elif local_name(element) in ("table-header-rows", "table-rows", "table-row-group"):
            yield from _rows(element)


def _cells(row: Element) -> Cells:
    cells: Cells = {}
    column = 0
    for cell in row:
        if local_name(cell) not in ("table-cell", "covered-table-cell"):
            continue
        repeated = _count(cell, "number-columns-repeated", MAX_COLUMNS)
        if is_visible(text := _value(cell)):
            cells |= dict.fromkeys(range(column + 1, min(column + repeated, MAX_COLUMNS) + 1), text)
        column += repeated
    return cells


def _value(cell: Element) -> str:
    kind = attribute(cell, "value-type")
    shown = " ".join("".join(paragraph.itertext()) for paragraph in cell if local_name(paragraph) == "p")
    if kind in ("float", "currency", "percentage"):
        return _number(attribute(cell, "value") or shown, shown)
    if kind == "date":
        return (attribute(cell, "date-value") or shown).replace("T", " ").removesuffix(" 00:00:00")
    if kind == "boolean":
        return (attribute(cell, "boolean-value") or shown).upper()
    return shown


def _number(text: str, shown: str) -> str:
    """The stored number; what is shown where that is the same number with leading zeros."""
    if shown.isdigit() and shown.startswith("0") and shown.lstrip("0") == text:
        return shown
    try:
        return text if text.lstrip("-").isdigit() else format(float(text), ".15g")
    except ValueError:
        return text


def _count(element: Element, name: str, most: int) -> int:
    value = attribute(element, name) or "1"
    return max(1, min(int(value), most)) if value.isdigit() and len(value) < 12 else 1
