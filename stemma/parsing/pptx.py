"""Presentations: one page per slide, hidden slides included; speaker notes follow their slide."""

from collections.abc import Iterator

from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.drawingml import add_chart, text_lines, text_runs
from stemma.parsing.elements import Element, attribute, child, local_name
from stemma.parsing.ooxml import Package, embedded_picture
from stemma.parsing.tables import markdown_table

_MAX_DEPTH = 100  # of groups in groups
_FURNITURE = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})  # placeholders for date, footer, number: no content of the slide


def parse_pptx(source: Source) -> Draft:
    """Titles, text, tables and chart data of every slide in order; notes below the line `Notes:`.

    A blank slide keeps its number and is listed in `pages_without_text`; comments and slide masters are left out.
    """
    with Package(source) as package:
        main = package.main_part()
        slides = package.relationships(main)
        listed = child(package.tree(main), "sldIdLst")
        properties = package.core_properties()
        builder = DraftBuilder(source)
        first_title: str | None = None
        without_text: list[int] = []
        hidden: list[int] = []
        for number, entry in enumerate(listed if listed is not None else (), 1):
            builder.start_page(number)
            slide = slides.get(_relationship_id(entry))
            before = builder.length
            if slide is not None and package.has(slide.part):
                tree = package.tree(slide.part)
                title = _Slide(source, package, slide.part, builder).add(tree)
                first_title = first_title or (title if number == 1 else None)
                if attribute(tree, "show") in ("0", "false"):
                    hidden.append(number)
            if builder.length == before:
                without_text.append(number)
    return builder.finish(
        title=stated_title(properties.get("title"), first_title),
        metadata={
            "pages_without_text": without_text,
            "hidden_slides": hidden,
            **{name: value for name, value in properties.items() if name != "title"},
        },
    )


def _relationship_id(entry: Element) -> str:
    """`r:id`, beside which the entry has an `id` of its own."""
    return next((value for key, value in entry.attrib.items() if key.endswith("}id")), "")


class _Slide:
    def __init__(self, source: Source, package: Package, part: str, builder: DraftBuilder) -> None:
        self._source, self._package, self._builder = source, package, builder
        self._relationships = package.relationships(part)

    def add(self, tree: Element) -> str | None:
        """Append the slide and its notes; returns its title."""
        shapes = list(self._shapes(child(tree, "cSld", "spTree")))
        titles = [shape for shape in shapes if _placeholder(shape) in ("title", "ctrTitle")]
        for shape in titles:
            self._builder.add(clean_line(" ".join(text_lines(shape))), "heading", level=1)
        for shape in shapes:
            if shape not in titles and _placeholder(shape) not in _FURNITURE:
                self._shape(shape)
        for relationship in self._relationships.values():
            if relationship.kind == "notesSlide" and self._package.has(relationship.part):
                self._notes(self._package.tree(relationship.part))
        return clean_line(" ".join(text_lines(titles[0]))) if titles else None

    def _shapes(self, tree: Element | None, depth: int = 0) -> Iterator[Element]:
        """Shapes, pictures and frames in the order of drawing, those of groups included."""
        if depth > _MAX_DEPTH:
            raise self._source.corrupt("its shapes are nested too deeply")
        for element in tree if tree is not None else ():
            match local_name(element):
                case "sp" | "graphicFrame" | "pic" | "cxnSp":
                    yield element
                case "grpSp" | "AlternateContent" | "Choice":
                    yield from self._shapes(element, depth + 1)
                case _:
                    pass

    def _shape(self, shape: Element) -> None:
        described = next((inner for inner in shape.iter() if local_name(inner) == "cNvPr"), None)
        if local_name(shape) == "pic":
            caption = attribute(described, "descr") if described is not None else None
            self._builder.add_figure(caption, picture=embedded_picture(shape, self._package, self._relationships))
        if local_name(shape) != "graphicFrame":
            self._builder.add("\n".join(text_lines(shape)))
            return
        data = child(shape, "graphic", "graphicData")
        for element in data if data is not None else ():
            if local_name(element) == "tbl":
                self._builder.add(markdown_table(_table_rows(element)), "table")
            elif local_name(element) == "chart":
                self._chart(element)
            elif local_name(element) == "relIds":
                self._diagram(element)

    def _chart(self, reference: Element) -> None:
        relationship = self._relationships.get(_relationship_id(reference))
        if relationship is not None and self._package.has(relationship.part):
            add_chart(self._builder, self._package.tree(relationship.part))

    def _diagram(self, reference: Element) -> None:
        """The texts of a SmartArt diagram."""
        part = next((self._relationships[value].part for value in reference.attrib.values() if value in self._relationships), "")
        if self._package.has(part):
            texts = [clean_line(" ".join(text_runs(point))) for point in self._package.tree(part).iter() if local_name(point) == "pt"]
            self._builder.add("\n".join(filter(None, texts)))

    def _notes(self, tree: Element) -> None:
        shapes = [shape for shape in self._shapes(child(tree, "cSld", "spTree")) if _placeholder(shape) not in _FURNITURE]
        text = "\n".join(line for shape in shapes for line in text_lines(shape))
        if text.strip():
            self._builder.add(f"Notes:\n{text}")


def _placeholder(shape: Element) -> str | None:
    for properties in shape:
        if (placeholder := child(properties, "nvPr", "ph")) is not None:
            return attribute(placeholder, "type") or "body"
    return None


def _table_rows(table: Element) -> list[list[str]]:
    rows = [row for row in table if local_name(row) == "tr"]
    return [[clean_line(" ".join(text_lines(cell))) for cell in row if local_name(cell) == "tc"] for row in rows]
