"""Images: one page each (a TIFF may have several), whose text is recognised."""

import warnings
from typing import TYPE_CHECKING

from stemma.errors import DocumentTooLarge
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.layout import paragraphs
from stemma.parsing.ocr import MAX_OCR_PIXELS, recognise

if TYPE_CHECKING:
    from PIL.Image import Image as PillowImage

MAX_PIXELS = 120_000_000  # decoded, three bytes each; a few KB of PNG can claim any number


def parse_image(source: Source) -> Draft:
    """The recognised text of every page of a TIFF, of the first frame of anything else.

    Raises:
        CorruptDocument: no image can be read.
        DocumentTooLarge: a page has more than MAX_PIXELS.
    """
    from PIL import Image, ImageFile, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # our own limit is checked before anything is decoded
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    builder = DraftBuilder(source)
    ocr_pages: list[int] = []
    without_text: list[int] = []
    try:
        with warnings.catch_warnings(), Image.open(source.path) as image:
            warnings.simplefilter("ignore")  # about metadata that is not read here
            n_pages = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
            mime_type = image.get_format_mimetype()
            size = image.size
            finished = source.work.finished(_paragraphs)
            for number in range(1, n_pages + 1):
                builder.start_page(number)
                if number <= len(finished):
                    text = finished[number - 1]
                else:
                    image.seek(number - 1)
                    text = _page_text(source, image) if (wanted := _wants_ocr(source, number)) else []
                    source.work.keep([text] if wanted else [], first=number - 1)
                for paragraph in text:
                    builder.add(paragraph)
                (ocr_pages if text else without_text).append(number)
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
        raise source.corrupt("it is no image that can be read") from error
    return builder.finish(
        extraction="ocr",
        ocr_pages=tuple(ocr_pages),
        metadata={"mime_type": mime_type, "width": size[0], "height": size[1], "pages_without_text": without_text},
    )


def _wants_ocr(source: Source, page: int) -> bool:
    return source.options.ocr_engine != "none" and page <= source.options.ocr_max_pages


def _paragraphs(record: list[str]) -> list[str]:
    """A finished page, as it was kept."""
    return [str(paragraph) for paragraph in record]


def _page_text(source: Source, image: "PillowImage") -> list[str]:
    from PIL import Image, ImageOps

    n_pixels = image.width * image.height
    if n_pixels > MAX_PIXELS:
        raise DocumentTooLarge(source.source_path, f"the image has {n_pixels // 1_000_000} megapixels, over {MAX_PIXELS // 1_000_000}")
    if n_pixels > MAX_OCR_PIXELS:
        image.draft("RGB", (4_000, 4_000))  # JPEG decodes to a smaller size at once
    if image.mode == "1":
        image = image.convert("L")  # black and white cannot be averaged
    factor = max(1, int((image.width * image.height / MAX_OCR_PIXELS) ** 0.5 + 0.999))
    upright = ImageOps.exif_transpose(image.reduce(factor) if factor > 1 and image.mode != "P" else image)
    if "A" in upright.getbands() or "transparency" in upright.info:
        upright = upright.convert("RGBA")
        paper = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(paper, upright)
    return [paragraph.text for paragraph in paragraphs(recognise(upright.convert("RGB")))]
