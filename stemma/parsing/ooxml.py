"""Office Open XML packages: main part, relationships and properties, transitional and strict alike."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from stemma.parsing.elements import Element, attribute, local_name
from stemma.parsing.zipped import ZippedParts, part_picture


@dataclass(frozen=True, slots=True)
class Relationship:
    """What a part points to."""

    kind: str
    """The last word of its type's address, such as `slide` or `officeDocument`."""
    part: str
    """Name of the part in the package; for external targets empty: nothing outside the file is ever read."""


class Package(ZippedParts):
    """An open Office file. Everything it raises for unsound bytes is CorruptDocument."""

    def main_part(self) -> str:
        """The name of the document, presentation or workbook part."""
        for relationship in self.relationships("").values():
            if relationship.kind == "officeDocument":
                return relationship.part
        raise self._source.corrupt("the package names no main document")

    def relationships(self, part: str) -> dict[str, Relationship]:
        """What a part points to, by id; empty when it points to nothing. The package itself is the part `""`."""
        folder, name = posixpath.split(part)
        path = posixpath.join(folder, "_rels", f"{name}.rels")
        if not self.has(path):
            return {}
        found: dict[str, Relationship] = {}
        for element in self.tree(path):
            external = element.get("TargetMode") == "External"
            target = unquote(element.get("Target", ""))
            resolved = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            found[element.get("Id", "")] = Relationship(element.get("Type", "").rsplit("/", 1)[-1], "" if external else resolved)
        return found

    def core_properties(self) -> dict[str, str]:
        """`title`, `author`, `subject`, `keywords` as far as the package states them."""
        names = {"title": "title", "creator": "author", "subject": "subject", "keywords": "keywords"}
        for relationship in self.relationships("").values():
            if relationship.kind == "core-properties" and self.has(relationship.part):
                properties = {names.get(local_name(element)): (element.text or "").strip() for element in self.tree(relationship.part)}
                return {name: value for name, value in properties.items() if name and value}
        return {}


def embedded_picture(shape: Element, package: Package, relationships: Mapping[str, Relationship]) -> str | None:
    """The place of the picture that a shape shows; None when it shows none, or one outside the file. What stands in its text shows its own."""
    blips = (element for element in shape.iter() if local_name(element) == "blip")
    blip = next((blip for blip in blips if not any(local_name(above) == "txbxContent" for above in blip.iterancestors())), None)
    relationship = relationships.get(attribute(blip, "embed") or "") if blip is not None else None
    return part_picture(relationship.part) if relationship is not None and package.has(relationship.part) else None
