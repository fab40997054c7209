"""The pictures of a document's figures, taken from the file by the places that its parser noted: no text is read again."""

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stemma.errors import DocumentError
from stemma.parsing.draft import Draft, Source
from stemma.parsing.formats import Format
from stemma.parsing.notebook import notebook_cells, output_picture
from stemma.parsing.zipped import ZippedParts

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

FIGURES = Format("figures", "stemma.parsing.figures:take_pictures", 1, ("pillow",))
"""How a worker takes pictures instead of text; its revision is part of what was made by it."""
MAX_PICTURE_PIXELS = 50_000_000  # decoded; larger ones are not kept
MAX_SIDE = 2_400  # pixels; a larger picture is kept smaller

Finder = Callable[[str], "PillowImage"]


def take_pictures(source: Source) -> Draft:
    """Write the pictures at `source.pictures` into the work folder, each as PNG or JPEG without metadata.

    The result's metadata has `pictures`: a record per place, in order, with `sha256` (its name in the folder), `mime_type`, `width`
    and `height`, all None when there is no picture that can be shown. A pass that was ended goes on after the last one.
    """
    assert source.work.path is not None, "pictures need a folder"
    source.work.path.mkdir(parents=True, exist_ok=True)
    records = source.work.finished(_record)
    with ExitStack() as opened:
        find = partial(_find, {}, source, opened)
        for place in source.pictures[len(records) :]:
            record = _taken(find, place, source.work.path)
            source.work.keep([record], first=len(records))
            records.append(record)
    return Draft("", metadata={"pictures": records})


def _record(record: dict[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("sha256", "mime_type", "width", "height")}


def _taken(find: Finder, place: str, folder: Path) -> dict[str, Any]:
    from PIL import UnidentifiedImageError

    try:
        data, mime_type, size = _shown(find(place))
    except (UnidentifiedImageError, DocumentError, LookupError, ValueError, OSError, SyntaxError, EOFError, RuntimeError):
        return dict.fromkeys(
            ("sha256", "mime_type", "width", "height")
        )  # a drawing of another program's, a damaged part: the document is readable without it
    digest = hashlib.sha256(data).hexdigest()
    (folder / digest).write_bytes(data)
    return {"sha256": digest, "mime_type": mime_type, "width": size[0], "height": size[1]}


def _find(containers: dict[str, Any], source: Source, opened: ExitStack, place: str) -> "PillowImage":
    """The picture at a place; the container that it lies in is opened once."""
    from PIL import Image

    kind, _, address = place.partition(":")
    match kind:
        case "part":
            if kind not in containers:
                containers[kind] = opened.enter_context(ZippedParts(source))
            return Image.open(BytesIO(containers[kind].read(address)))
        case "page":
            from stemma.parsing.pdf import open_pdf, page_picture

            if kind not in containers:
                containers[kind] = opened.enter_context(open_pdf(source))
            number, position = map(int, address.split("/"))
            if containers.get("page number") != number:  # places come page by page
                containers["page number"], containers["open page"] = number, containers[kind][number - 1]
            return page_picture(containers[kind], containers["open page"], position)
        case "output":
            if kind not in containers:
                containers[kind] = notebook_cells(source)
            return Image.open(BytesIO(output_picture(containers[kind], address)))
        case _:
            raise LookupError(place)


def _shown(image: "PillowImage") -> tuple[bytes, str, tuple[int, int]]:
    """The picture upright, as a JPEG where it was one, else as a PNG, and its size in pixels."""
    from PIL import ImageOps

    if image.width * image.height > MAX_PICTURE_PIXELS:
        raise ValueError("too many pixels")
    format = "JPEG" if image.format == "JPEG" else "PNG"
    image.load()
    upright = ImageOps.exif_transpose(image)
    upright = upright.convert("RGB" if format == "JPEG" or not upright.has_transparency_data else "RGBA")
    upright.thumbnail((MAX_SIDE, MAX_SIDE))
    upright.info.clear()
    buffer = BytesIO()
    upright.save(buffer, format)
    return buffer.getvalue(), f"image/{format.lower()}", upright.size
