"""What the styles of a Word document make of a paragraph."""

import re
from dataclasses import dataclass

from stemma.parsing.elements import Element, attribute, child, local_name
from stemma.parsing.ooxml import Package, Relationship


@dataclass(frozen=True, slots=True)
class Style:
    """The role of a paragraph and its place in a list."""

    heading: int = 0
    """Level, 0 for none."""
    is_title: bool = False
    is_code: bool = False
    is_list: bool = False
    num_id: str = ""
    """The list that its paragraphs are counted in, empty for none."""
    list_level: int = 0


def read_styles(package: Package, relationships: dict[str, Relationship]) -> dict[str, Style]:
    """Style id -> what it makes of a paragraph, inheritance resolved."""
    part = next((r.part for r in relationships.values() if r.kind == "styles" and package.has(r.part)), None)
    if part is None:
        return {}
    elements = {attribute(style, "styleId") or "": style for style in package.tree(part) if local_name(style) == "style"}
    return {style_id: _resolved(style_id, elements) for style_id in elements}


def _resolved(style_id: str, elements: dict[str, Element]) -> Style:
    is_list = False
    num_id, list_level = "", 0
    seen: set[str] = set()
    while style_id in elements and style_id not in seen:
        seen.add(style_id)
        style = elements[style_id]
        named, based_on = child(style, "name"), child(style, "basedOn")
        name = (attribute(named, "val") or "" if named is not None else "").lower()
        outline, counted = child(style, "pPr", "outlineLvl"), child(style, "pPr", "numPr")
        level = attribute(outline, "val") if outline is not None else None
        if counted is not None and not num_id:
            number, depth = child(counted, "numId"), child(counted, "ilvl")
            num_id = attribute(number, "val") or "" if number is not None else ""
            stated = attribute(depth, "val") or "" if depth is not None else ""
            list_level = int(stated) if stated.isdigit() and len(stated) < 3 else 0
        if heading := re.fullmatch(r"heading ([1-6])", name):
            return Style(int(heading[1]), num_id=num_id, list_level=list_level)
        if name == "title":
            return Style(is_title=True)
        if level is not None and level.isdigit() and int(level) < 6:
            return Style(int(level) + 1, num_id=num_id, list_level=list_level)
        if name in ("html preformatted", "code", "source code", "macro", "plain text"):
            return Style(is_code=True)
        is_list = is_list or counted is not None or name.startswith("list ")
        style_id = attribute(based_on, "val") or "" if based_on is not None else ""
    return Style(is_list=is_list and "list" in " ".join(seen).lower(), num_id=num_id, list_level=list_level)
