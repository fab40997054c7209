"""Binary workbooks (xls, xlsb) by calamine: one page per sheet, hidden sheets included; values as computed."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from importlib import import_module
from typing import Any

from stemma.errors import EncryptedDocument
from stemma.parsing.cleaning import is_visible
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.ole import ole_streams
from stemma.parsing.sheets import Cells, add_sheet

calamine: Any = import_module("python_calamine")


def parse_xls(source: Source) -> Draft:
    """The tables of an Excel 97-2003 workbook. Raises EncryptedDocument when it needs a password."""
    ole_streams(source)
    return parse_xlsb(source)


def parse_xlsb(source: Source) -> Draft:
    """The tables of every sheet, below its name as heading, as in an `xlsx` file; a formula without a value shows nothing.

    Raises:
        EncryptedDocument: it needs a password.
        CorruptDocument: the workbook cannot be read.
    """
    builder = DraftBuilder(source)
    hidden: list[str] = []
    without_text: list[int] = []
    try:
        # As a stream, whose bytes decide; a path's extension would.
        with source.path.open("rb") as file, calamine.CalamineWorkbook.from_filelike(file) as workbook:
            for number, sheet in enumerate(workbook.sheets_metadata, 1):
                builder.start_page(number, sheet.name)
                if sheet.visible != calamine.SheetVisibleEnum.Visible:
                    hidden.append(sheet.name)
                has_cells = sheet.typ == calamine.SheetTypeEnum.WorkSheet
                if not (has_cells and add_sheet(builder, sheet.name, _rows(workbook.get_sheet_by_name(sheet.name)))):
                    without_text.append(number)
    except calamine.PasswordError as error:
        raise EncryptedDocument(source.source_path, "the workbook needs a password") from error
    except calamine.CalamineError as error:
        raise source.corrupt("it is no workbook that can be read") from error
    return builder.finish(metadata={"pages_without_text": without_text, "hidden_sheets": hidden})


def _rows(sheet: Any) -> Iterator[tuple[int, Cells]]:
    first_row, first_column = sheet.start or (0, 0)
    for number, row in enumerate(sheet.iter_rows(), 1):
        texts = ((column, _shown(value)) for column, value in enumerate(row, first_column + 1))
        if cells := {column: text for column, text in texts if is_visible(text)}:
            yield first_row + number, cells


def _shown(value: Any) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case float():
            return format(value, ".15g")
        case datetime():
            return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ")
        case date() | time():
            return value.isoformat()
        case timedelta():
            return str(value)
        case _:
            return str(value)
