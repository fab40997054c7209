"""Text from pixels, by rapidocr with the models in its wheel: one warm engine per process."""

import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from stemma.parsing.layout import Line

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_OCR_PIXELS = 16_000_000  # an A4 page at 400 dpi; more costs memory and finds nothing more
UPRIGHT_SCORE = 0.8  # mean score below which a page may be on its head; clean pages have 0.95 and more
MIN_SCORE = 0.5  # the engine's own measure, 0 to 1


def recognise(image: "Image") -> list[Line]:
    """The lines of text in an image, top to bottom; coordinates in pixels. Larger images are scaled down first."""
    import numpy as np

    factor = max(1, int((image.width * image.height / MAX_OCR_PIXELS) ** 0.5 + 0.999))
    if factor > 1:
        image = image.reduce(factor)
    pixels = np.asarray(image.convert("RGB"))[:, :, ::-1]  # the engine's models read BGR
    lines, score = _read(pixels)
    words = [line for line in lines if len(line.text) > 3]
    # Standing boxes mean a page on its side, low scores one on its head; of the other ways round the likeliest wins.
    if sum(line.height > 1.5 * (line.right - line.left) for line in words) * 2 > len(words):
        return max((_read(np.rot90(pixels, quarters)) for quarters in (3, 1)), key=lambda reading: reading[1])[0]
    if len(words) > 1 and score < UPRIGHT_SCORE * len(lines):
        turned, turned_score = _read(np.rot90(pixels, 2))
        return turned if turned_score > score else lines
    return lines


def _read(pixels: Any) -> tuple[list[Line], float]:
    """The lines and the sum of their scores. Boxes are (n, 4, 2): the corners of quadrilaterals.

    The engine's classifier of lines on their head is off: it turned sound lines into rubbish (1 of 33 on a clean page).
    """
    found = _engine()(pixels, use_cls=False)
    if found.boxes is None or found.txts is None:
        return [], 0.0
    lines: list[Line] = []
    for box, text in zip(found.boxes, found.txts, strict=True):
        xs, ys = [float(x) for x in box[:, 0]], [float(y) for y in box[:, 1]]
        lines.append(Line(text, min(xs), max(xs), min(ys), max(ys)))
    return lines, float(sum(found.scores))


@lru_cache(maxsize=1)
def _engine() -> Any:
    from rapidocr import RapidOCR

    engine = RapidOCR(params={"Global.log_level": "error", "Global.text_score": MIN_SCORE})
    logging.getLogger("RapidOCR").setLevel(logging.ERROR)  # an image without text is no warning
    return engine
