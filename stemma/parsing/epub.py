"""EPUB: the chapters in the order of the book's spine, each read as a page of HTML."""

import posixpath
from functools import partial
from urllib.parse import unquote

from stemma.errors import EncryptedDocument
from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.elements import Element, attribute, local_name
from stemma.parsing.encoding import NotText, decode
from stemma.parsing.html import add_html, html_tree
from stemma.parsing.zipped import ZippedParts, part_picture

_CHAPTERS = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})
_PROPERTIES = {"title": "title", "creator": "author", "subject": "keywords", "language": "language", "publisher": "publisher"}


def parse_epub(source: Source) -> Draft:
    """Text of every chapter that the spine names; the table of contents (`<nav>`) is left out, as in HTML.

    Raises:
        EncryptedDocument: the chapters are protected (DRM).
        CorruptDocument: the container, its package file or all of its chapters cannot be read.
    """
    builder = DraftBuilder(source)
    with ZippedParts(source) as parts:
        package = _package_part(source, parts)
        root = parts.tree(package)
        chapters = _spine(root, posixpath.dirname(package))
        protected = _protected(parts)
        if chapters and protected.issuperset(chapters):
            raise EncryptedDocument(source.source_path, "the book's chapters are protected")
        missing: list[str] = []
        for chapter in chapters:
            if not parts.has(chapter) or chapter in protected:
                missing.append(posixpath.basename(chapter))
                continue
            try:
                text = decode(parts.read(chapter), markup=True).text
            except NotText:
                missing.append(posixpath.basename(chapter))
                continue
            if (tree := html_tree(text)) is not None:
                add_html(builder, tree, picture_at=partial(_picture, parts, posixpath.dirname(chapter)))
    if chapters and len(missing) == len(chapters):
        raise source.corrupt("none of its chapters can be read")
    properties = _properties(root)
    return builder.finish(title=stated_title(properties.pop("title", None)), metadata={"unreadable_parts": missing, **properties})


def _package_part(source: Source, parts: ZippedParts) -> str:
    for element in parts.tree("META-INF/container.xml").iter():
        if local_name(element) == "rootfile" and (path := attribute(element, "full-path")):
            return path
    raise source.corrupt("its container names no package file")


def _spine(root: Element, folder: str) -> list[str]:
    """The parts with chapters, in reading order, without repetition."""
    parts = {
        element.get("id", ""): posixpath.normpath(posixpath.join(folder, unquote(element.get("href", ""))))
        for element in root.iter()
        if local_name(element) == "item" and element.get("media-type", "") in _CHAPTERS
    }
    references = (element.get("idref", "") for element in root.iter() if local_name(element) == "itemref")
    return list(dict.fromkeys(parts[reference] for reference in references if reference in parts))


def _protected(parts: ZippedParts) -> set[str]:
    """The parts that are encrypted; fonts often are, in books that are free to read."""
    if not parts.has("META-INF/encryption.xml"):
        return set()
    references = (element for element in parts.tree("META-INF/encryption.xml").iter() if local_name(element) == "CipherReference")
    return {posixpath.normpath(unquote(reference.get("URI", ""))) for reference in references}


def _picture(parts: ZippedParts, folder: str, address: str) -> str | None:
    part = posixpath.normpath(posixpath.join(folder, unquote(address)))
    return part_picture(part) if address and parts.has(part) else None


def _properties(root: Element) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for element in root.iter():
        name, value = _PROPERTIES.get(local_name(element)), clean_line(element.text or "")
        if name and value and "purl.org/dc" in str(element.tag):
            found.setdefault(name, []).append(value)
    return {name: values[0] if name == "title" else ", ".join(dict.fromkeys(values)) for name, values in found.items()}
