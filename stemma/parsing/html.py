"""HTML: the text that a page shows, in the order of its source; nothing is fetched."""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from typing import Any

from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.document import BlockKind
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.html_menus import html_menus
from stemma.parsing.plain import encoding_metadata, read_text
from stemma.parsing.tables import markdown_table

etree: Any = import_module("lxml.etree")  # ships no types
HtmlElement = Any

_UNSEEN = frozenset({
    "head", "script", "style", "template", "noscript", "iframe", "object", "embed", "applet", "audio", "video", "canvas", "svg", "math",
    "select", "datalist", "nav", "frameset",
})  # fmt: skip
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "caption", "dd", "details", "dialog", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr", "html", "legend", "li", "main",
    "menu", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
})  # fmt: skip
MAX_TITLES = 10  # looked at for one that names the content: headings may lie in each other
MAX_COVERED_CELLS = 1_000_000  # of one table, which cells above or to the left of them cover; the spans beyond are taken for 1
_MENU_ROLES = frozenset({"navigation", "menu", "menubar", "toolbar"})
_HEADING = re.compile(r"h([1-6])")
_FLAT = frozenset({"html", "title", "body", "p", "br", "img"})
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)[^<>]{0,2000}>")
_DOCTYPE = re.compile(r"<!DOCTYPE", re.IGNORECASE)
_SUBSET = re.compile(r"([^>\[]{0,500})\[[^\]]{0,100000}\]\s*>")  # of XML's declarations; HTML would show its end
_HIDING_STYLE = re.compile(r"(display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)


def parse_html(source: Source) -> Draft:
    """Headings, paragraphs, lists, code and tables of a page, with its `<title>`, else its first h1, as title."""
    decoded = read_text(source, markup=True)
    builder = DraftBuilder(source)
    root = html_tree(decoded.text)
    titles: list[str | None] = []
    if root is not None:
        add_html(builder, root)
        titles = [_flat_text(element) for name in ("title", "h1") for element in islice(root.iter(name), MAX_TITLES)]
    return builder.finish(
        title=stated_title(*titles), empty=not decoded.text.strip(), guessed_encoding=decoded.guessed, metadata=encoding_metadata(decoded)
    )


def html_tree(text: str) -> HtmlElement | None:
    """The element tree of cleaned text, mended as browsers mend it; None when there is none.

    Beyond a depth of 2,048 libxml2 drops what follows. Such pages (tags that nothing closes) are read without the elements that
    only nest: as paragraphs. Raises RecursionError when they are still too deep.
    """
    if not text.strip():
        return None
    text = _without_subset(text)
    try:
        root, is_whole = _parsed(text)
        if not is_whole:
            root, is_whole = _parsed(_TAG.sub(_flattened, text))
    except etree.XMLSyntaxError:  # not a single element in it
        return None
    if not is_whole:
        raise RecursionError("the page is nested too deeply")
    return root


def _parsed(text: str) -> tuple[HtmlElement | None, bool]:
    """The tree, and whether all of the text is in it."""
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True)
    root = etree.fromstring(text.encode(), parser)
    return root, all(error.type_name != "ERR_RESOURCE_LIMIT" for error in parser.error_log.filter_from_fatals())


def _flattened(tag: re.Match[str]) -> str:
    name = tag[1].lower()
    if name in _UNSEEN or name in _FLAT:
        return tag[0]
    return "<p>" if name in _BLOCKS else ""


def _without_subset(text: str) -> str:
    """The text without the internal subset of its first document type."""
    if (declared := _DOCTYPE.search(text)) and (subset := _SUBSET.match(text, declared.end())):
        return f"{text[: subset.end(1)]}>{text[subset.end() :]}"
    return text


def add_html(builder: DraftBuilder, root: HtmlElement, *, picture_at: Callable[[str], str | None] = lambda _: None) -> None:
    """Append what the tree shows. Walks without recursion: pages nest deeper than Python's stack.

    Args:
        picture_at: an image's address -> the place of its picture in the file, or None when it lies elsewhere.
    """
    flow = _Flow(builder, picture_at)
    menus = html_menus(root)
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        name = _name(element)
        if event == "end":
            flow.close(element, name)
        elif element in menus or _is_hidden(element, name):
            walk.skip_subtree()
            flow.skipped.add(element)
        elif name == "table" and (rows := _data_rows(element)):
            walk.skip_subtree()
            flow.skipped.add(element)
            flow.flush()
            for caption in element.iterchildren("caption"):
                builder.add(_flat_text(caption), "caption")
            builder.add(markdown_table(rows), "table")
        else:
            flow.open(element, name)
    flow.flush()


class _Flow:
    """Inline text gathered until a block begins or ends, and what surrounds it."""

    def __init__(self, builder: DraftBuilder, picture_at: Callable[[str], str | None]) -> None:
        self._picture_at = picture_at
        self.skipped: set[HtmlElement] = set()  # entered by no one, but their tail is text of the parent
        self._builder = builder
        self._pieces: list[str] = []
        self._lists: list[int | None] = []  # per open list: the next number, or None for bullets
        self._marker = ""
        self._quotes = self._preformatted = 0

    def open(self, element: HtmlElement, name: str) -> None:
        if name in _BLOCKS:
            self.flush()
        if name == "pre":
            self._preformatted += 1
        elif name == "blockquote":
            self._quotes += 1
        elif name in ("ul", "menu"):
            self._lists.append(None)
        elif name == "ol":
            start = element.get("start", "1")
            self._lists.append(int(start) if start.isascii() and start.isdigit() else 1)
        elif name == "li":
            self._marker = self._next_marker()
        elif name == "br":
            self._pieces.append("\n")
        elif name == "img":
            caption, picture = clean_line(element.get("alt", "")), self._picture_at(element.get("src", ""))
            if caption or picture:
                self._builder.add_figure(caption, picture=picture)
        self._text(element.text)

    def close(self, element: HtmlElement, name: str) -> None:
        if element in self.skipped:
            self.skipped.discard(element)
        else:
            if name in _BLOCKS:
                self.flush(name)
            if name == "pre":
                self._preformatted -= 1
            elif name == "blockquote":
                self._quotes -= 1
            elif name in ("ul", "menu", "ol") and self._lists:
                self._lists.pop()
        self._text(element.tail)

    def flush(self, closing: str = "") -> None:
        """Append the gathered text as one block."""
        text = "".join(self._pieces)
        self._pieces.clear()
        heading = _HEADING.fullmatch(closing)
        kind: BlockKind = (
            "heading" if heading else "code" if self._preformatted else "list" if self._lists else "quote" if self._quotes else "paragraph"
        )
        if kind != "code":
            text = re.sub(r" *\n *", "\n", re.sub("  +", " ", text)).strip(" \n")
        if not text.strip():
            return
        if kind == "list":
            text, self._marker = self._marker + text, ""
        self._builder.add(text, kind, level=int(heading[1]) if heading else 0, continues=kind == "list")

    def _text(self, text: str | None) -> None:
        if text:
            self._pieces.append(text if self._preformatted else re.sub(r"[ \t\n\f]+", " ", text))

    def _next_marker(self) -> str:
        if not self._lists:
            return "- "
        number = self._lists[-1]
        if number is not None:
            self._lists[-1] = number + 1
        return "  " * min(len(self._lists) - 1, 9) + ("- " if number is None else f"{number}. ")


def _name(element: HtmlElement) -> str:
    return element.tag.lower() if isinstance(element.tag, str) else ""


def _is_hidden(element: HtmlElement, name: str) -> bool:
    return (
        not name
        or name in _UNSEEN
        or "hidden" in element.attrib
        or element.get("role") in _MENU_ROLES
        or bool(_HIDING_STYLE.search(element.get("style", "")[:1_000]))
    )


def _data_rows(table: HtmlElement) -> list[list[str]]:
    """The cells of a table of data; empty for a table that only lays out the page (its rows have one cell, or its role says so).

    A cell over several columns or rows has its text once, at its first place; a table inside a cell is part of its text.
    """
    if table.get("role") in ("presentation", "none") or all(len(_cells(row)) < 2 for row in _rows(table)):
        return []
    rows: list[list[str]] = []
    reaching: dict[int, int] = {}  # column -> rows below that a cell above still covers
    n_covered = 0
    for row in _rows(table):
        cells: list[str] = []
        for cell in _cells(row):
            while reaching.get(len(cells), 0):
                reaching[len(cells)] -= 1
                cells.append("")
                n_covered += 1
            columns, below = _span(cell, "colspan", 100), _span(cell, "rowspan", 10_000) - 1
            n_covered += columns - 1
            if n_covered > MAX_COVERED_CELLS:
                reaching.clear()
                columns, below = 1, 0
            for column in range(columns):
                if below:
                    reaching[len(cells)] = below
                cells.append("" if column or _is_hidden(cell, _name(cell)) else _flat_text(cell))
        rows.append(cells)
    return rows


def _cells(row: HtmlElement) -> list[HtmlElement]:
    return list(row.iterchildren("td", "th"))


def _rows(table: HtmlElement) -> Iterator[HtmlElement]:
    for child in table.iterchildren():
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from child.iterchildren("tr")


def _span(cell: HtmlElement, attribute: str, most: int) -> int:
    value = cell.get(attribute, "1").strip()
    return max(1, min(int(value), most)) if value.isascii() and value.isdigit() and len(value) < 9 else 1


def _flat_text(element: HtmlElement) -> str:
    """The visible text below an element as one line."""
    pieces: list[str] = [element.text or ""]
    walk = etree.iterwalk(element, events=("start", "end"))
    skipped: set[HtmlElement] = set()
    for event, inner in walk:
        if inner is element:
            continue
        name = _name(inner)
        if event == "start":
            if _is_hidden(inner, name):
                walk.skip_subtree()
                skipped.add(inner)
                continue
            pieces.append(" " if name in _BLOCKS or name == "br" else "")
            pieces.append(inner.text or "")
        else:
            pieces.append(" " if name in _BLOCKS and inner not in skipped else "")
            pieces.append(inner.tail or "")
    return clean_line("".join(pieces))
