"""Binary workbooks (xls, xlsb) by calamine: one page per sheet, hidden sheets included; values as computed."""

import io
import struct
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

XLS_ROWS, XLS_COLUMNS = 65_536, 256
_BOUNDSHEET, _DIMENSIONS = 0x0085, 0x0200
_CELL_RECORDS = frozenset(
    {0x0006, 0x00BD, 0x00BE, 0x00D6, 0x00FD, 0x0201, 0x0203, 0x0204, 0x0205, 0x027E}
)  # [MS-XLS] 2.3: row and column come first


def parse_xls(source: Source) -> Draft:
    """The tables of an Excel 97-2003 workbook. Raises EncryptedDocument when it needs a password."""
    if "Workbook" in ole_streams(source):
        _check_sizes(source)
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
    file = io.BytesIO(source.path.read_bytes())  # a stream, whose bytes decide; a path's extension would
    try:
        with calamine.CalamineWorkbook.from_filelike(file) as workbook:
            for number, sheet in enumerate(workbook.sheets_metadata, 1):
                builder.start_page(number, sheet.name)
                if sheet.visible != calamine.SheetVisibleEnum.Visible:
                    hidden.append(sheet.name)
                has_cells = sheet.typ == calamine.SheetTypeEnum.WorkSheet
                if not (has_cells and add_sheet(builder, sheet.name, _rows(workbook.get_sheet_by_name(sheet.name)))):
                    without_text.append(number)
    except calamine.PasswordError as error:
        raise EncryptedDocument(source.source_path, "the workbook needs a password") from error
    except (calamine.CalamineError, OSError) as error:
        raise source.corrupt("it is no workbook that can be read") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's; it is no Exception, so that nobody takes it for one
            raise
        raise source.corrupt("it is no workbook that can be read") from error
    return builder.finish(metadata={"pages_without_text": without_text, "hidden_sheets": hidden})


def _check_sizes(source: Source) -> None:
    """Raises CorruptDocument when a sheet states a size, or holds a cell, beyond the format's: calamine would take memory for all of it."""
    olefile: Any = import_module("olefile")
    with olefile.OleFileIO(source.path) as container:
        stream: bytes = container.openstream("Workbook").read()
    starts = [0]
    for kind, position, length in _records(stream, 0):
        if kind == _BOUNDSHEET and length >= 4:
            starts.append(struct.unpack_from("<I", stream, position)[0])
    for start in dict.fromkeys(starts):  # a damaged length hides what follows it from the walk, not from calamine
        for kind, position, length in _records(stream, start):
            if kind == _DIMENSIONS and length >= 12:
                first_row, end_row, _, end_column = struct.unpack_from("<2I2H", stream, position)
                if not (first_row <= end_row <= XLS_ROWS and end_column <= XLS_COLUMNS):
                    raise source.corrupt("a sheet's stated size is none that the format allows")
            if kind in _CELL_RECORDS and length >= 4 and struct.unpack_from("<H", stream, position + 2)[0] >= XLS_COLUMNS:
                raise source.corrupt("a cell lies beyond its sheet's columns")


def _records(stream: bytes, start: int) -> Iterator[tuple[int, int, int]]:
    """Kind, place of the content and its length, of each record from a place on."""
    while start + 4 <= len(stream):
        kind, length = struct.unpack_from("<2H", stream, start)
        if start + 4 + length > len(stream):
            return
        yield kind, start + 4, length
        start += 4 + length


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
