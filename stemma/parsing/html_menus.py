"""Menus of web pages: what calls itself one and holds little but links."""

import re

from stemma.parsing.elements import Element, etree

_MENU_NAMES = frozenset({
    "nav", "navbar", "navigation", "menu", "menubar", "submenu", "breadcrumb", "breadcrumbs", "dropdown", "sidebar", "pagination", "pager", "toolbar",
    "portlet", "navbox",
})  # fmt: skip
_MENU_TAGS = frozenset({"div", "ul", "ol", "aside", "section", "header", "footer", "table", "td", "p", "span"})
MENU_LINK_SHARE = 0.7  # of the characters of what calls itself a menu; below it there is content


def html_menus(root: Element) -> set[Element]:
    """The elements that call themselves a menu, a sidebar or the like and hold little but links."""
    found: set[Element] = set()
    n_chars = n_linked = n_links = depth = 0  # so far, in the order of the source; depth of links
    before: dict[Element, tuple[int, int, int]] = {}
    for event, element in etree.iterwalk(root, events=("start", "end")):
        name = _tag(element)
        if event == "start":
            if name in _MENU_TAGS and _calls_itself_menu(element):
                before[element] = (n_chars, n_linked, n_links)
            depth += name == "a"
            n_links += name == "a"
        else:
            depth -= name == "a"
            if element in before:
                chars, linked, links = before.pop(element)
                if n_links - links > 1 and n_linked - linked >= MENU_LINK_SHARE * (n_chars - chars):
                    found.add(element)
        text = element.text if event == "start" else element.tail
        length = len((text or "").strip())
        n_chars += length
        n_linked += length if depth else 0
    return found


def _tag(element: Element) -> str:
    return element.tag.lower() if isinstance(element.tag, str) else ""


def _calls_itself_menu(element: Element) -> bool:
    return bool(_MENU_NAMES.intersection(re.split(r"[^a-z]+", f"{element.get('class', '')} {element.get('id', '')}"[:500].lower())))
