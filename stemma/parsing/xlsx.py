"""Workbooks: one page per sheet, hidden sheets included; values as computed, read cell by present cell."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from stemma.parsing.cleaning import is_visible, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.drawingml import add_chart
from stemma.parsing.elements import Element, attribute, child, is_on, local_name
from stemma.parsing.ooxml import Package, Relationship
from stemma.parsing.sheets import Cells, add_sheet

MAX_COLUMNS = 16_384
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})  # built in, ECMA-376 18.8.30
_LITERALS = re.compile(r'"[^"]*"|\\.|\[[^\]]*\]|_.|\*.')
_REFERENCE = re.compile(r"([A-Za-z]{1,3})(\d{1,7})")


def parse_xlsx(source: Source) -> Draft:
    """The tables of every sheet, below its name as heading.

    Blank rows divide a sheet into tables, blank columns are left out of each. A formula shows its cached value, itself
    (`=...`) only where the file holds none. Numbers are written as stored (15 digits), dates in ISO form; a format of zeros
    (`00000`) keeps its leading zeros. Merged cells have their text once. A sheet of charts alone shows their
    data; charts beside cells, whose data the cells hold, and comments are left out.
    """
    with Package(source) as package:
        main = package.main_part()
        workbook = package.tree(main)
        relationships = package.relationships(main)
        values = _Values(package, workbook, relationships)
        sheets = child(workbook, "sheets")
        if sheets is None or not len(sheets):
            raise source.corrupt("the workbook names no sheets")
        builder = DraftBuilder(source)
        without_text: list[int] = []
        hidden: list[str] = []
        for number, sheet in enumerate(sheets, 1):
            name = sheet.get("name", "")
            builder.start_page(number, name)
            if attribute(sheet, "state") in ("hidden", "veryHidden"):
                hidden.append(name)
            relationship = relationships.get(next((value for key, value in sheet.attrib.items() if key.endswith("}id")), ""))
            part = relationship.part if relationship is not None and package.has(relationship.part) else ""
            is_grid = relationship is not None and relationship.kind == "worksheet"
            has_text = bool(part) and (
                (is_grid and add_sheet(builder, name, values.rows(part))) or _add_charts(builder, package, name, part)
            )
            if not has_text:
                without_text.append(number)
        properties = package.core_properties()
    return builder.finish(
        title=stated_title(properties.get("title")),
        metadata={
            "pages_without_text": without_text,
            "hidden_sheets": hidden,
            **{name: value for name, value in properties.items() if name != "title"},
        },
    )


def _add_charts(builder: DraftBuilder, package: Package, name: str, part: str) -> bool:
    """Append the data of a sheet's charts below its name; returns whether there are any."""
    drawings = [found.part for found in package.relationships(part).values() if found.kind == "drawing"]
    charts = [found.part for drawing in drawings for found in package.relationships(drawing).values() if found.kind == "chart"]
    charts = [chart for chart in charts if package.has(chart)]
    if charts:
        builder.add(name, "heading", level=1)
    return sum(add_chart(builder, package.tree(chart)) for chart in charts) > 0


class _Values:
    """What cells show: shared strings, number formats and the epoch of one workbook."""

    def __init__(self, package: Package, workbook: Element, relationships: dict[str, Relationship]) -> None:
        self._package = package
        parts = {relationship.kind: relationship.part for relationship in relationships.values() if package.has(relationship.part)}
        self._strings = [_string(item) for item in package.elements(parts["sharedStrings"], "si")] if "sharedStrings" in parts else []
        self._formats: Sequence[str] = _number_formats(package.tree(parts["styles"])) if "styles" in parts else ()
        properties = child(workbook, "workbookPr")
        date_1904 = attribute(properties, "date1904") if properties is not None else None
        self._epoch = datetime(1904, 1, 1) if date_1904 in ("1", "true") else datetime(1899, 12, 30)

    def rows(self, part: str) -> Iterator[tuple[int, Cells]]:
        """Row number, from 1, and cells of the rows that show anything, in order; nothing is made for the absent ones."""
        number = 0
        for row in self._package.elements(part, "row"):
            stated = row.get("r", "")
            number = int(stated) if stated.isdigit() else number + 1
            cells: Cells = {}
            column = 0
            for cell in row:
                reference = _REFERENCE.match(cell.get("r", ""))
                column = _column(reference[1]) if reference else column + 1
                if column <= MAX_COLUMNS and is_visible(text := self._text(cell)):
                    cells[column] = text
            if cells:
                yield number, cells

    def _text(self, cell: Element) -> str:
        kind = cell.get("t", "n")
        if kind == "inlineStr":
            inline = child(cell, "is")
            return _string(inline) if inline is not None else ""
        value, formula = child(cell, "v"), child(cell, "f")
        text = (value.text or "") if value is not None else ""
        if not text:
            return f"={formula.text}" if formula is not None and formula.text else ""
        if kind == "s":
            index = int(text) if text.isdigit() else -1
            return self._strings[index] if 0 <= index < len(self._strings) else ""
        if kind == "b":
            return "TRUE" if text == "1" else "FALSE"
        return self._number(text, cell.get("s", "0")) if kind == "n" else text

    def _number(self, text: str, style: str) -> str:
        number_format = self._formats[int(style)] if style.isdigit() and int(style) < len(self._formats) else ""
        try:
            value = float(text)
        except ValueError:
            return text
        if number_format == "date":
            return self._date(value) or text
        if re.fullmatch("0{2,}", number_format) and value >= 0 and value.is_integer():
            return str(int(value)).zfill(len(number_format))
        if re.fullmatch(r"-?\d{1,15}", text):
            return text
        return format(value, ".15g") if abs(value) < 1e15 else text

    def _date(self, value: float) -> str | None:
        try:
            moment = self._epoch + timedelta(seconds=round(value * 86_400))
        except (OverflowError, ValueError):
            return None
        if 0 <= value < 1:
            return moment.time().isoformat()
        return moment.date().isoformat() if moment.time().isoformat() == "00:00:00" else moment.isoformat(sep=" ")


def _string(item: Element) -> str:
    """The text of a string item; readings of Japanese characters are left out."""
    pieces: list[str] = []
    for element in item:
        if local_name(element) == "t":
            pieces.append(element.text or "")
        elif local_name(element) == "r" and not is_on(child(element, "rPr", "vanish")):
            text = child(element, "t")
            pieces.append((text.text or "") if text is not None else "")
    return "".join(pieces)


def _number_formats(styles: Element) -> Sequence[str]:
    """Per cell style: `date`, or the format's code, or nothing."""
    stated, used = child(styles, "numFmts"), child(styles, "cellXfs")
    codes = {element.get("numFmtId", ""): element.get("formatCode", "") for element in (stated if stated is not None else ())}
    formats: list[str] = []
    for style in used if used is not None else ():
        number = style.get("numFmtId", "0")
        code = codes.get(number, "")
        bare = _LITERALS.sub("", code.split(";")[0]).lower()
        is_date = (number.isdigit() and int(number) in _DATE_FORMATS and not code) or bool(re.search("[dyhs]|m(?!illi)", bare))
        formats.append("date" if is_date and "general" not in bare else code)
    return formats


def _column(letters: str) -> int:
    column = 0
    for letter in letters.upper():
        column = column * 26 + ord(letter) - 64
    return column
