"""XML of any vocabulary, and SVG: the text of the elements; attributes, comments and processing instructions are left out."""

import re
from collections.abc import Iterator
from dataclasses import replace

from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.code import parse_code
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.elements import Element, etree, local_name
from stemma.parsing.encoding import Decoded
from stemma.parsing.plain import encoding_metadata, read_text

# Elements whose name says nothing about what they hold, in the vocabularies of books, articles and feeds.
_PROSE = frozenset({
    "p", "para", "simpara", "ab", "l", "line", "seg", "s", "item", "li", "entry", "td", "th", "cell", "note", "quote", "text", "div", "description",
    "summary", "content", "abstract", "body", "caption", "tspan", "desc", "span",
})  # fmt: skip
_HEADINGS = frozenset({"title", "head", "heading", "h1", "h2", "h3", "h4", "h5", "h6"})
_HIDDEN = frozenset({"script", "style", "metadata", "defs"})
_DECLARED_ENTITY = re.compile(r"<!DOCTYPE[^>]{0,10000}<!ENTITY", re.IGNORECASE)
_XML_DECLARATION = re.compile(r"^\s*<\?xml[^>]{0,500}\?>")


def parse_xml(source: Source) -> Draft:
    """A line per element that has text of its own, what is marked within it included; neighbours with one parent are one block.

    An element without elements in it is written `name: text`, unless its name is one of prose (`p`, `item`, ...). A `title`
    or `head` is a heading as deep as its parents have one. A file that breaks the rules of XML is read as it stands, with
    the warning `invalid_syntax`.

    Raises:
        CorruptDocument: it declares entities; none is ever expanded, neither from the file nor from elsewhere.
    """
    decoded, text = _undeclared(source)
    if not text:
        return Draft("", empty=True)
    try:
        root = _tree(text)
    except etree.XMLSyntaxError:
        return replace(parse_code(source), invalid_syntax=True)
    builder = DraftBuilder(source)
    titles = list(_add(builder, root))
    return builder.finish(title=stated_title(*titles[:1]), guessed_encoding=decoded.guessed, metadata=encoding_metadata(decoded))


def parse_svg(source: Source) -> Draft:
    """The words of a drawing: its title, its description and its `text` elements, in the order of the file."""
    decoded, text = _undeclared(source)
    if not text:
        return Draft("", empty=True)
    try:
        root = _tree(text)
    except etree.XMLSyntaxError as error:
        raise source.corrupt("it is no sound XML") from error
    builder = DraftBuilder(source)
    title: str | None = None
    for element in _visible(root):
        if local_name(element) in ("text", "title", "desc"):
            line = clean_line(" ".join(element.itertext()))
            builder.add(line)
            title = title or (line if local_name(element) == "title" else None)
    return builder.finish(title=stated_title(title), guessed_encoding=decoded.guessed, metadata=encoding_metadata(decoded))


def _undeclared(source: Source) -> tuple[Decoded, str]:
    """The file as it was decoded, and its text without the XML declaration, "" when it is blank. Raises CorruptDocument for declared entities."""
    decoded = read_text(source, markup=True)
    text = _XML_DECLARATION.sub("", decoded.text)
    if not text.strip():
        return decoded, ""
    if _DECLARED_ENTITY.search(text[:100_000]):
        raise source.corrupt("it declares entities, which are not expanded")
    return decoded, text


def _tree(text: str) -> Element:
    """The root. libxml2's own limits on depth and size stay on; recovery is off."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True, encoding="utf-8"
    )
    return etree.fromstring(text.strip().encode(), parser)


def _visible(root: Element) -> Iterator[Element]:
    """Every element outside of scripts, styles and the like."""
    walk = etree.iterwalk(root, events=("start",))
    for _, element in walk:
        if local_name(element) in _HIDDEN:
            walk.skip_subtree()
        else:
            yield element


def _add(builder: DraftBuilder, root: Element) -> Iterator[str]:
    """Append the text of the tree. Yields the headings."""
    walk = etree.iterwalk(root, events=("start",))
    last_parent: Element | None = None
    titled: dict[Element, bool] = {}  # whether an element has a heading; rows without one are looked through once
    for _, element in walk:
        name = local_name(element)
        if name in _HIDDEN:
            walk.skip_subtree()
            continue
        if not _has_own_text(element):
            continue
        walk.skip_subtree()
        line = clean_line("".join(element.itertext()))
        parent = element.getparent()
        if name in _HEADINGS and len(line) <= 300:
            builder.add(line, "heading", level=_level(element, titled))
            yield line
            last_parent = None
        elif len(element) or name.lower() in _PROSE or name in _HEADINGS:
            builder.add(line)
            last_parent = None
        else:
            builder.add(f"{name}: {line}", continues=last_parent is not None and parent is last_parent)
            last_parent = parent


def _has_own_text(element: Element) -> bool:
    return bool((element.text or "").strip()) or any((inner.tail or "").strip() for inner in element)


def _level(element: Element, titled: dict[Element, bool]) -> int:
    """How many elements around a heading have one of their own, its parent included; at most 6."""
    level = 0
    for ancestor in element.iterancestors():
        if ancestor not in titled:
            titled[ancestor] = any(local_name(child) in _HEADINGS for child in ancestor)
        level += titled[ancestor]
    return min(6, max(1, level))
