"""Elements of XML documents, looked at by their local names: files of one kind differ in namespaces and in nothing else we read."""

from importlib import import_module
from typing import Any

etree: Any = import_module("lxml.etree")  # ships no types

Element = Any
"""An lxml element."""


def local_name(element: Element) -> str:
    """The element's name without its namespace; empty for entities and the like."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str) -> str | None:
    """The attribute of that local name, whatever its namespace."""
    if (value := element.get(name)) is not None:
        return value
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == name), None)


def child(element: Element | None, *path: str) -> Element | None:
    """The first descendant along a path of local names; None when a step is missing."""
    for name in path:
        if element is None:
            return None
        element = next((inner for inner in element if local_name(inner) == name), None)
    return element


def is_on(element: Element | None) -> bool:
    """Whether a toggle such as `<w:vanish/>` is present and not switched off."""
    return element is not None and attribute(element, "val") not in ("0", "false", "off", "none")
