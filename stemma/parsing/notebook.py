"""Jupyter notebooks: Markdown cells as Markdown, code cells and their outputs as code."""

import base64
import json
import re
from typing import Any, cast

from stemma.parsing.cleaning import clean_text, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.markdown import heading_text, markdown_blocks
from stemma.parsing.plain import read_text

_TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PIXELS = ("image/png", "image/jpeg")
_PICTURES = (*_PIXELS, "image/svg+xml", "application/vnd.plotly.v1+json")


def parse_notebook(source: Source) -> Draft:
    """Cells in order. An output is the text that a terminal would show (streams, results, the last line of an error), without colours.

    Pictures among the outputs are figures without text; HTML, widgets and JSON are left out where a plain text stands beside
    them. The title is the metadata's, else the first heading of level 1.

    Raises:
        CorruptDocument: it is no JSON, or has no cells.
    """
    try:
        notebook = json.loads(read_text(source).text)
        cells = _cells(notebook)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise source.corrupt("it is no notebook") from error
    builder = DraftBuilder(source)
    headings: list[str] = []
    for number, cell in enumerate(cells):
        text = clean_text(_joined(cell.get("source", cell.get("input", ""))))
        match cell.get("cell_type"):
            case "markdown" | "heading":
                blocks = markdown_blocks(text)
                builder.add_stretch(text, blocks)
                headings += [text[block.char_start : block.char_end] for block in blocks if block.level == 1]
            case "code":
                builder.add(text, "code")
                for position, output in enumerate(cast(list[dict[str, Any]], cell.get("outputs") or [])):
                    _add_output(builder, output, f"output:{number}/{position}")
            case _:
                builder.add(text)
    metadata = cast(dict[str, Any], notebook.get("metadata") or {})
    language = cast(dict[str, Any], metadata.get("language_info") or {}).get("name")
    titles = [heading_text(heading) for heading in headings[:1]]
    return builder.finish(title=stated_title(_text_of(metadata.get("title")), *titles), metadata={"language": _text_of(language)})


def notebook_cells(source: Source) -> list[dict[str, Any]]:
    """The cells of a notebook in order. Raises ValueError, LookupError or TypeError when it is none."""
    return _cells(json.loads(read_text(source).text))


def output_picture(cells: list[dict[str, Any]], place: str) -> bytes:
    """The picture at `CELL/OUTPUT`, counted from 0, as parse_notebook noted it. Raises LookupError or ValueError where there is none."""
    cell, output = map(int, place.split("/"))
    data = cells[cell]["outputs"][output]["data"]
    return base64.b64decode(_joined(next(data[kind] for kind in _PIXELS if kind in data)))


def _cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    if "cells" in notebook:
        return [dict(cell) for cell in notebook["cells"]]
    return [dict(cell) for sheet in notebook["worksheets"] for cell in sheet["cells"]]  # before version 4


def _add_output(builder: DraftBuilder, output: dict[str, Any], place: str) -> None:
    data = cast(dict[str, Any], output.get("data") or {})
    if output.get("output_type") == "error":
        text = f"{_text_of(output.get('ename')) or 'Error'}: {_text_of(output.get('evalue')) or ''}"
    else:
        text = _joined(output.get("text") or data.get("text/plain") or data.get("text/markdown") or "")
    if any(kind in data for kind in _PICTURES):
        builder.add_figure(None, picture=place if any(kind in data for kind in _PIXELS) else None)
    else:
        builder.add(_shown(text), "code")


def _shown(text: str) -> str:
    """What a terminal shows: no colours, and of a line that was written over (progress bars) the last state."""
    lines = _TERMINAL.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def _joined(value: Any) -> str:
    return "".join(map(str, cast(list[Any], value))) if isinstance(value, list) else str(value)


def _text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None
