"""OpenDocument text and presentations: paragraphs, headings, lists, tables and notes, as they read with all changes accepted."""

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, field

from stemma.errors import EncryptedDocument
from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.elements import Element, attribute, child, local_name
from stemma.parsing.tables import markdown_table
from stemma.parsing.zipped import ZippedParts, part_picture

# Deleted text lives in tracked-changes; forms, scripts and numbering of pages are no content.
_LEFT_OUT = frozenset({"tracked-changes", "annotation", "annotation-end", "ruby-text", "forms", "hidden-text", "desc", "notes"})
_PLACEHOLDERS = frozenset({"date-time", "footer", "header", "page-number"})
_PROPERTIES = {"title": "title", "initial-creator": "author", "creator": "author", "subject": "subject", "keyword": "keywords"}
_MAX_DEPTH = 200


def parse_odt(source: Source) -> Draft:
    """Body of a text document; footnotes and endnotes follow at the end as `[^n]: ...`.

    Deleted text, comments, hidden sections and characters, headers and footers are left out. Text boxes stand after the
    paragraph that anchors them.
    """
    with OpenDocument(source) as document:
        reader = _Reader(source, document)
        reader.blocks(document.body("text"))
        reader.notes()
        properties = document.properties()
    title = stated_title(properties.pop("title", None), reader.title)
    return reader.builder.finish(title=title, metadata=properties)


def parse_odp(source: Source) -> Draft:
    """Slides as pages, hidden ones included and named in the metadata; a slide's title is a heading, its notes follow below `Notes:`."""
    hidden: list[int] = []
    without_text: list[int] = []
    with OpenDocument(source) as document:
        reader = _Reader(source, document)
        slides = [slide for slide in document.body("presentation") if local_name(slide) == "page"]
        for number, slide in enumerate(slides, 1):
            reader.builder.start_page(number)
            if attribute(slide, "style-name") in document.hidden_styles:
                hidden.append(number)
            before = reader.builder.length
            reader.slide(slide)
            if reader.builder.length == before:
                without_text.append(number)
        reader.builder.end_page()
        reader.notes()
        properties = document.properties()
    return reader.builder.finish(
        title=stated_title(properties.pop("title", None), reader.title),
        metadata={"hidden_slides": hidden, "pages_without_text": without_text, **properties},
    )


class OpenDocument(ZippedParts):
    """An open OpenDocument file."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        if self.has("META-INF/manifest.xml"):
            encrypted = any(local_name(element) == "encryption-data" for element in self.tree("META-INF/manifest.xml").iter())
            if encrypted:
                raise EncryptedDocument(source.source_path, "the OpenDocument file is protected by a password")
        self._content = self.tree("content.xml")
        self.styles = _styles(self._content)
        if self.has("styles.xml"):
            self.styles = _styles(self.tree("styles.xml")) | self.styles
        self.hidden_styles = frozenset(name for name, style in self.styles.items() if _hides(style))

    def body(self, kind: str) -> Element:
        """The element `office:text`, `office:presentation` or `office:spreadsheet`."""
        if (body := child(self._content, "body", kind)) is None:
            raise self._source.corrupt(f"it holds no {kind}")
        return body

    def properties(self) -> dict[str, str]:
        """`title`, `author`, `subject`, `keywords` as far as the file states them."""
        if not self.has("meta.xml"):
            return {}
        found: dict[str, list[str]] = {}
        meta = child(self.tree("meta.xml"), "meta")
        for element in meta if meta is not None else ():
            name, value = _PROPERTIES.get(local_name(element)), clean_line(element.text or "")
            if name and value and value not in found.setdefault(name, []):
                found[name].append(value)
        return {name: ", ".join(values) for name, values in found.items()}


def _styles(root: Element) -> dict[str, Element]:
    """Name -> style or list style."""
    styles = (element for group in root if "styles" in local_name(group) for element in group)
    return {attribute(style, "name") or "": style for style in styles if local_name(style) in ("style", "list-style")}


def _hides(style: Element) -> bool:
    """Whether what bears the style is not shown: characters, a sheet, a slide."""
    hiding = {
        ("text-properties", "display"): "none",
        ("table-properties", "display"): "false",
        ("drawing-page-properties", "visibility"): "hidden",
    }
    return any(
        attribute(properties, name) == value
        for properties in style
        for (kind, name), value in hiding.items()
        if local_name(properties) == kind
    )


@dataclass(slots=True)
class _Inline:
    """The text of one paragraph while it is gathered, and the frames anchored in it."""

    pieces: list[str] = field(default_factory=list[str])
    frames: list[Element] = field(default_factory=list[Element])


class _Reader:
    def __init__(self, source: Source, document: OpenDocument) -> None:
        self.builder = DraftBuilder(source)
        self.title: str | None = None
        self._source, self._document = source, document
        self._notes: list[str] = []

    def blocks(self, parent: Element, depth: int = 0) -> None:
        """Append what an element holds: paragraphs, lists, tables, sections and shapes."""
        self._check(depth)
        for element in parent:
            match local_name(element):
                case "h":
                    level = attribute(element, "outline-level") or "1"
                    self._paragraph(element, depth, heading=min(int(level), 6) if level.isdigit() else 1)
                case "p":
                    self._paragraph(element, depth)
                case "list":
                    self._list(element, depth)
                case "table":
                    self.builder.add(markdown_table(list(self._rows(element, depth))), "table")
                case "frame":
                    self._frame(element, depth)
                case "section" if attribute(element, "display") == "none":
                    pass
                case name if name not in _LEFT_OUT:
                    self.blocks(element, depth + 1)
                case _:
                    pass

    def slide(self, slide: Element) -> None:
        """Append a slide's shapes in the file's order, its title before them, its notes behind."""
        shapes = [shape for shape in slide if attribute(shape, "class") not in _PLACEHOLDERS]
        titles = [shape for shape in shapes if attribute(shape, "class") == "title"]
        for shape in titles:
            if text := self._flat(shape):
                self.builder.add(text, "heading", level=1)
                self.title = self.title or stated_title(text)
        for shape in shapes:
            if shape not in titles:
                self.blocks([shape], 1)
        if (notes := child(slide, "notes")) is not None:
            lines = [self._flat(shape) for shape in notes if attribute(shape, "class") == "notes"]
            if text := "\n".join(line for line in lines if line):
                self.builder.add(f"Notes:\n{text}")

    def notes(self) -> None:
        """Append the footnotes and endnotes in the order of their marks."""
        for number, note in enumerate(self._notes, 1):
            self.builder.add(f"[^{number}]: {note}")

    def _paragraph(self, paragraph: Element, depth: int, *, heading: int = 0) -> None:
        style = attribute(paragraph, "style-name") or ""
        inline = _Inline()
        self._inline(paragraph, inline, depth)
        text = "".join(inline.pieces)
        is_title = self._style_name(style) in ("Title", "Subtitle")
        if heading or is_title:
            self.builder.add(clean_line(text), "heading", level=heading or 1)
            if self.title is None and (is_title or heading == 1):
                self.title = stated_title(text)
        elif self._style_name(style).startswith(("Preformatted", "Source")):
            self.builder.add(text, "code", continues=True)
        else:
            self.builder.add(text)
        for frame in inline.frames:
            self._frame(frame, depth + 1)

    def _style_name(self, style: str) -> str:
        """The named style that an automatic style refines."""
        automatic = self._document.styles.get(style)
        return (attribute(automatic, "parent-style-name") if automatic is not None else None) or style

    def _frame(self, frame: Element, depth: int) -> None:
        self._check(depth)
        caption = next((clean_line(part.text or "") for part in frame if local_name(part) in ("desc", "title") and part.text), None)
        picture = self._picture(frame)
        if (caption or picture) and child(frame, "text-box") is None and child(frame, "table") is None:
            self.builder.add_figure(caption, picture=picture)
        for part in frame:
            if local_name(part) in ("text-box", "table"):
                self.blocks([part] if local_name(part) == "table" else part, depth + 1)

    def _picture(self, frame: Element) -> str | None:
        """The place of a frame's picture; of several pictures of one frame the first is the best."""
        image = child(frame, "image")
        part = posixpath.normpath((attribute(image, "href") or "").lstrip("/")) if image is not None else ""
        return part_picture(part) if self._document.has(part) else None

    def _list(self, element: Element, depth: int, level: int = 0, style: str = "") -> None:
        self._check(depth)
        style = attribute(element, "style-name") or style
        number = self._first_number(style, level)
        for position, entry in enumerate(entry for entry in element if local_name(entry) in ("list-item", "list-header")):
            marker = "- " if number is None else f"{number + position}. "
            for part in entry:
                if local_name(part) == "list":
                    self._list(part, depth + 1, level + 1, style)
                elif local_name(part) == "h":
                    self.blocks([part], depth + 1)  # headings that are numbered are items of a list
                elif text := self._flat([part], depth + 1):
                    indent = "  " * min(level, 9)
                    self.builder.add(indent + marker + text, "list", continues=True)
                    marker = " " * len(marker)

    def _first_number(self, style: str, level: int) -> int | None:
        """Where a numbered list begins; None for bullets and for lists whose style says nothing."""
        for definition in self._document.styles.get(style, ()):
            if attribute(definition, "level") == str(level + 1) and local_name(definition) == "list-level-style-number":
                start = attribute(definition, "start-value") or "1"
                return (int(start) if start.isdigit() else 1) if attribute(definition, "num-format") else None
        return None

    def _inline(self, parent: Element, inline: _Inline, depth: int) -> None:
        self._check(depth)
        inline.pieces.append(_unbroken(parent.text))
        for element in parent:
            match local_name(element):
                case "s":
                    count = attribute(element, "c") or "1"
                    inline.pieces.append(" " * (min(int(count), 1_000) if count.isdigit() else 1))
                case "tab":
                    inline.pieces.append("\t")
                case "line-break":
                    inline.pieces.append("\n")
                case "frame" | "custom-shape" | "g":
                    inline.frames.append(element)
                case "note":
                    if (body := child(element, "note-body")) is not None:
                        self._notes.append(self._flat(body, depth + 1))
                        inline.pieces.append(f"[^{len(self._notes)}]")
                case "span" if attribute(element, "style-name") in self._document.hidden_styles:
                    pass
                case name if name and name not in _LEFT_OUT:
                    self._inline(element, inline, depth + 1)
                case _:
                    pass
            inline.pieces.append(_unbroken(element.tail))

    def _rows(self, table: Element, depth: int) -> Iterator[list[str]]:
        for element in table:
            match local_name(element):
                case "table-row":
                    yield [self._flat(cell, depth + 1) for cell in element if local_name(cell) in ("table-cell", "covered-table-cell")]
                case "table-header-rows" | "table-rows" | "table-row-group":
                    yield from self._rows(element, depth)
                case _:
                    pass

    def _flat(self, parent: Element, depth: int = 0) -> str:
        """Everything below an element as one line: paragraphs, lists, nested tables."""
        self._check(depth)
        pieces: list[str] = []
        for element in parent:
            name = local_name(element)
            if name in ("p", "h"):
                inline = _Inline()
                self._inline(element, inline, depth)
                pieces += ["".join(inline.pieces), *(self._flat(frame, depth + 1) for frame in inline.frames)]
            elif name not in _LEFT_OUT:
                pieces.append(self._flat(element, depth + 1))
        return clean_line(" ".join(pieces))

    def _check(self, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise self._source.corrupt("its content is nested too deeply")


def _unbroken(text: str | None) -> str:
    """The text without the line ends and runs of blanks that only lay out the file: OpenDocument has elements for those that count."""
    if not text:
        return ""
    line = clean_line(text)
    return (" " if text[0].isspace() else "") + line + (" " if line and text[-1].isspace() else "")
