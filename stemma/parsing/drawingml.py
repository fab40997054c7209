"""DrawingML, which presentations and workbooks share: the lines of a shape's text, the cached data of a chart."""

from collections.abc import Iterator

from stemma.parsing.cleaning import clean_line
from stemma.parsing.draft import DraftBuilder
from stemma.parsing.elements import Element, child, local_name
from stemma.parsing.tables import markdown_table


def text_lines(element: Element) -> list[str]:
    """The lines of text below an element, blank ones left out."""
    lines = ["".join(text_runs(paragraph)) for paragraph in element.iter() if local_name(paragraph) == "p"]
    return [line for line in lines if line.strip()]


def text_runs(paragraph: Element) -> Iterator[str]:
    """The pieces of a paragraph's text."""
    for element in paragraph.iter():
        if local_name(element) == "t":
            yield element.text or ""
        elif local_name(element) == "br":
            yield "\n"
        elif local_name(element) == "tab" and element.getparent() is paragraph:
            yield "\t"


def add_chart(builder: DraftBuilder, tree: Element) -> bool:
    """Append a chart's title as caption and its data as table, a column per series; returns whether it has any."""
    chart = child(tree, "chart")
    before = builder.length
    title = child(chart, "title")
    if title is not None:
        builder.add(clean_line(" ".join(text_lines(title))), "caption")
    series = [element for element in chart.iter() if local_name(element) == "ser"] if chart is not None else []
    columns: list[tuple[dict[int, str], dict[int, str], dict[int, str]]]
    columns = [(_points(child(ser, "cat")), _points(child(ser, "val")), _points(child(ser, "tx"))) for ser in series]
    if columns:
        categories = next((points for points, _, _ in columns if points), dict[int, str]())
        keys = sorted({*categories, *(key for _, values, _ in columns for key in values)})
        header = ["", *(" ".join(name.values()) for _, _, name in columns)]
        rows = [[categories.get(key, ""), *(values.get(key, "") for _, values, _ in columns)] for key in keys]
        builder.add(markdown_table([header, *rows]), "table")
    return builder.length > before


def _points(element: Element | None) -> dict[int, str]:
    """Index -> cached value of a chart's reference."""
    if element is None:
        return {}
    points = [point for point in element.iter() if local_name(point) == "pt"]
    found: dict[int, str] = {}
    for point in points:
        value, index = child(point, "v"), point.get("idx", "")
        if value is not None and index.isdigit():
            found[int(index)] = value.text or ""
    return found
