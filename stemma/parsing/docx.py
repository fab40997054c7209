"""Word documents: the text as it reads with all tracked changes accepted, in the order of the body."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.docx_numbering import Numbering
from stemma.parsing.docx_styles import Style, read_styles
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.elements import Element, attribute, child, is_on, local_name
from stemma.parsing.encoding import NotText, decode
from stemma.parsing.html import add_html, html_tree
from stemma.parsing.ooxml import Package, embedded_picture
from stemma.parsing.tables import markdown_table

# Deleted and moved-away text, field codes, comments' anchors, what Word shows only in place of something else.
_LEFT_OUT = frozenset({
    "del", "moveFrom", "delText", "delInstrText", "instrText", "pPr", "rPr", "sectPr", "tblPr", "tblGrid", "trPr", "tcPr",
    "sdtPr", "sdtEndPr", "commentRangeStart", "commentReference", "Fallback", "rt", "fldData", "proofErr", "bookmarkStart",
    "bookmarkEnd",
})  # fmt: skip
_MAX_DEPTH = 200  # of nested tables, text boxes and controls; Word allows far fewer
_NOTES = {"footnoteReference": "footnotes", "endnoteReference": "endnotes"}


def parse_docx(source: Source) -> Draft:
    """Paragraphs, headings, lists and tables of the body; footnotes and endnotes follow at the end as `[^n]: ...`.

    Insertions are text, deletions are not; hidden runs, comments, headers and footers are left out. Text boxes and content
    controls stand where they are anchored.
    """
    with Package(source) as package:
        main = package.main_part()
        body = child(package.tree(main), "body")
        if body is None:
            raise source.corrupt("the document has no body")
        properties = package.core_properties()
        reader = _Reader(source, package, main)
        reader.blocks(body)
        reader.notes()
    return reader.builder.finish(
        title=stated_title(properties.get("title"), reader.title),
        metadata={name: value for name, value in properties.items() if name != "title"},
    )


@dataclass(slots=True)
class _Inline:
    """The text of one paragraph while it is gathered, and the boxes anchored in it."""

    pieces: list[str] = field(default_factory=list[str])
    boxes: list[Element] = field(default_factory=list[Element])
    pictures: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])
    """Caption, and the place of the picture."""


class _Reader:
    def __init__(self, source: Source, package: Package, main: str) -> None:
        self.builder = DraftBuilder(source)
        self.title: str | None = None
        self._source, self._package = source, package
        self._relationships = package.relationships(main)
        self._styles = read_styles(package, self._relationships)
        part = next((r.part for r in self._relationships.values() if r.kind == "numbering" and package.has(r.part)), None)
        self._numbering = Numbering(package.tree(part) if part else None)
        self._note_ids: list[tuple[str, str]] = []  # (part kind, id) in the order of reference

    def blocks(self, parent: Element, depth: int = 0) -> None:
        """Append the paragraphs and tables below an element, through content controls and the like."""
        if depth > _MAX_DEPTH:
            raise self._source.corrupt("its content is nested too deeply")
        for element in parent:
            match local_name(element):
                case "p":
                    self._paragraph(element, depth)
                case "tbl":
                    rows = [list(self._cells(row, depth)) for row in _rows(element)]
                    self.builder.add(markdown_table(rows), "table")
                case "altChunk":
                    self._embedded(element)
                case name if name not in _LEFT_OUT:
                    self.blocks(element, depth + 1)
                case _:
                    pass

    def notes(self) -> None:
        """Append the referenced footnotes and endnotes, in the order of their marks."""
        texts: dict[tuple[str, str], str] = {}
        for relationship in self._relationships.values():
            if relationship.kind in _NOTES.values() and self._package.has(relationship.part):
                for note in self._package.tree(relationship.part):
                    texts[relationship.kind, attribute(note, "id") or ""] = self._flat(note)
        for number, key in enumerate(list(self._note_ids), 1):
            if text := texts.get(key):
                self.builder.add(f"[^{number}]: {text}")

    def _paragraph(self, paragraph: Element, depth: int) -> None:
        properties = child(paragraph, "pPr")
        style = self._style(properties)
        inline = _Inline()
        self._inline(paragraph, inline, depth)
        text = "".join(inline.pieces).strip()
        if style.heading or style.is_title:
            number, level = self._number(properties, style)
            mark = self._numbering.mark(number, level) if text and number else ""
            self.builder.add(f"{mark} {text}" if mark not in ("", "-") else text, "heading", level=style.heading or 1)
            if self.title is None and (style.is_title or style.heading == 1):
                self.title = stated_title(text)
        elif text and self._is_item(properties, style):
            number, level = self._number(properties, style)
            mark = self._numbering.mark(number, level)
            self.builder.add("  " * min(level, 9) + f"{mark} {text}".lstrip(), "list", continues=True)
        else:
            self.builder.add(text, "code" if style.is_code else "paragraph", continues=style.is_code)
        for caption, picture in inline.pictures:
            self.builder.add_figure(caption, picture=picture)
        for box in inline.boxes:
            self.blocks(box, depth + 1)

    def _is_item(self, properties: Element | None, style: Style) -> bool:
        number = child(properties, "numPr", "numId")
        return attribute(number, "val") != "0" if number is not None else style.is_list

    def _number(self, properties: Element | None, style: Style) -> tuple[str, int]:
        """The list that a paragraph is counted in, empty for none, and its level from 0; the paragraph's own goes before its style's."""
        number, level = child(properties, "numPr", "numId"), child(properties, "numPr", "ilvl")
        stated = (attribute(level, "val") or "") if level is not None else ""
        depth = int(stated) if stated.isdigit() and len(stated) < 3 else style.list_level
        num_id = attribute(number, "val") or "" if number is not None else style.num_id
        return ("" if num_id == "0" else num_id), depth

    def _style(self, properties: Element | None) -> Style:
        named = child(properties, "pStyle")
        style = self._styles.get(attribute(named, "val") or "" if named is not None else "", Style())
        outline = child(properties, "outlineLvl")
        level = attribute(outline, "val") if outline is not None else None
        return replace(style, heading=int(level) + 1) if level is not None and level.isdigit() and int(level) < 6 else style

    def _inline(self, parent: Element, inline: _Inline, depth: int) -> None:  # noqa: PLR0912 - one case per element
        if depth > _MAX_DEPTH:
            raise self._source.corrupt("its content is nested too deeply")
        for element in parent:
            match local_name(element):
                case "t":
                    inline.pieces.append(element.text or "")
                case "tab" | "ptab":
                    inline.pieces.append("\t")
                case "br" | "cr":
                    inline.pieces.append("" if attribute(element, "type") in ("page", "column") else "\n")
                case "noBreakHyphen":
                    inline.pieces.append("-")
                case "softHyphen":
                    pass  # a place where a line may end, no character of the word
                case "sym":
                    inline.pieces.append(_symbol(element))
                case "footnoteReference" | "endnoteReference" as name:
                    self._note_ids.append((_NOTES[name], attribute(element, "id") or ""))
                    inline.pieces.append(f"[^{len(self._note_ids)}]")
                case "txbxContent":
                    inline.boxes.append(element)
                case "inline" | "anchor":
                    properties = child(element, "docPr")
                    caption = clean_line(attribute(properties, "descr") or "") if properties is not None else ""
                    picture = embedded_picture(element, self._package, self._relationships)
                    if caption or picture:
                        inline.pictures.append((caption, picture))
                    self._inline(element, inline, depth + 1)
                case "r" if is_on(child(element, "rPr", "vanish")):
                    pass
                case "AlternateContent":
                    chosen = child(element, "Choice")
                    self._inline(element if chosen is None else chosen, inline, depth + 1)
                case name if name not in _LEFT_OUT:
                    self._inline(element, inline, depth + 1)
                case _:
                    pass

    def _cells(self, row: Element, depth: int) -> Iterator[str]:
        """The texts of a row; a merged cell has its text once, at its first place."""
        for cell in _through_controls(row, "tc"):
            properties = child(cell, "tcPr")
            merged = child(properties, "vMerge")
            goes_on = merged is not None and attribute(merged, "val") in (None, "continue")
            yield "" if goes_on else self._flat(cell, depth + 1)
            span = child(properties, "gridSpan")
            columns = attribute(span, "val") or "1" if span is not None else "1"
            for _ in range(min(int(columns), 100) - 1 if columns.isdigit() else 0):
                yield ""

    def _flat(self, element: Element, depth: int = 0) -> str:
        """Everything below an element as one line: paragraphs, nested tables, boxes."""
        if depth > _MAX_DEPTH:
            raise self._source.corrupt("its content is nested too deeply")
        pieces: list[str] = []
        for inner in element:
            name = local_name(inner)
            if name == "p":
                inline = _Inline()
                self._inline(inner, inline, depth)
                pieces += ["".join(inline.pieces), *(self._flat(box, depth + 1) for box in inline.boxes)]
            elif name not in _LEFT_OUT:
                pieces.append(self._flat(inner, depth + 1))
        return clean_line(" ".join(pieces))

    def _embedded(self, element: Element) -> None:
        """Append an embedded HTML or text part (`altChunk`)."""
        relationship = self._relationships.get(attribute(element, "id") or "")
        if relationship is None or not self._package.has(relationship.part):
            return
        try:
            text = decode(self._package.read(relationship.part), markup=True).text
        except NotText:
            return  # an embedded Word or RTF file
        if not relationship.part.lower().endswith(".txt") and (root := html_tree(text)) is not None:
            add_html(self.builder, root)
        else:
            self.builder.add(text)


def _rows(table: Element) -> Iterator[Element]:
    for row in _through_controls(table, "tr"):
        if child(row, "trPr", "del") is None:
            yield row


def _through_controls(parent: Element, name: str) -> Iterator[Element]:
    """Children of that name, also those inside content controls and custom XML."""
    for element in parent:
        if local_name(element) == name:
            yield element
        elif local_name(element) in ("sdt", "sdtContent", "customXml", "ins", "moveTo"):
            yield from _through_controls(element, name)


def _symbol(element: Element) -> str:
    code = attribute(element, "char") or ""
    value = int(code, 16) if re.fullmatch("[0-9A-Fa-f]{1,4}", code) else 0
    return "" if 0xE000 <= value <= 0xF8FF else chr(value)  # a place in a symbol font means nothing without the font
