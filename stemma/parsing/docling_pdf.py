"""PDF through docling: its model-free pipeline, or the one with layout and table models from a local artifacts folder."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stemma.errors import LayoutModelsUnavailable
from stemma.parsing.cleaning import is_visible
from stemma.parsing.document import BlockKind
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.layout import Line, paragraphs
from stemma.parsing.pdf import open_pdf, stated_facts
from stemma.parsing.tables import markdown_table
from stemma.parsing.work_folder import BATCH_PAGES

if TYPE_CHECKING:
    from docling.document_converter import PdfFormatOption
    from docling_core.types.doc.document import DoclingDocument

_KINDS: dict[str, BlockKind] = {
    "section_header": "heading",
    "title": "heading",
    "code": "code",
    "formula": "formula",
    "list_item": "list",
    "caption": "caption",
}
_RUNNING = frozenset({"page_header", "page_footer"})


@dataclass(frozen=True, slots=True)
class _Item:
    kind: BlockKind | Literal["figure"]
    text: str
    level: int = 0


@dataclass(frozen=True, slots=True)
class _Page:
    items: list[_Item]

    @classmethod
    def of(cls, record: dict[str, Any]) -> "_Page":
        """The page that `asdict` turned into a record."""
        return cls([_Item(**item) for item in record["items"]])


def parse_pdf_by_docling(source: Source) -> Draft:
    """Text and pages of a PDF and, with models, headings and tables.

    `docling_native` gives a line per item, merged to paragraphs as pdfium's lines are; `docling_layout` gives paragraphs,
    headings, tables (as Markdown) and reading order as its models see them. Neither recognises scanned pages.

    Raises:
        EncryptedDocument: it needs a password.
        CorruptDocument: pdfium cannot open it, or docling cannot convert it.
        LayoutModelsUnavailable: the models are missing.
    """
    with open_pdf(source) as opened:
        title, facts = stated_facts(opened)
        n_pages = len(opened)
    pages = source.work.finished(_Page.of)
    layout = source.options.pdf_pipeline == "docling_layout"
    with _Converter(source, _layout_option(source) if layout else _native_option()) as converter:
        while len(pages) < n_pages:
            first = len(pages)
            numbers = range(first + 1, min(first + BATCH_PAGES, n_pages) + 1)
            document = converter.converted(numbers)
            pages += [_Page(list(_items(document, number) if layout else _native_items(document, number))) for number in numbers]
            source.work.keep([asdict(page) for page in pages[first:]], first=first)
    builder = DraftBuilder(source)
    for number, page in enumerate(pages, 1):
        builder.start_page(number)
        for item in page.items:
            if item.kind == "figure":
                builder.add_figure(None)
            else:
                builder.add(item.text, item.kind, level=item.level)
    without_text = [number for number, page in enumerate(pages, 1) if not any(is_visible(item.text) for item in page.items)]
    return builder.finish(
        title=title,
        metadata={**facts, "n_pages": n_pages, "pages_without_text": without_text, "pipeline": source.options.pdf_pipeline},
    )


def _native_option() -> "PdfFormatOption":
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.document_converter import PdfFormatOption
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

    return PdfFormatOption(pipeline_cls=NativePdfPipeline, pipeline_options=NativePdfPipelineOptions())


def _layout_option(source: Source) -> "PdfFormatOption":
    from docling.datamodel.pipeline_options import PdfPipelineOptions
    from docling.document_converter import PdfFormatOption
    from docling.pipeline.standard_pdf_pipeline import StandardPdfPipeline

    folder = Path(source.options.docling_artifacts or "")
    if not source.options.docling_artifacts or not folder.is_dir():
        raise LayoutModelsUnavailable(source.source_path, "PDF_PIPELINE is `docling_layout`, and there is no folder of its models")
    options = PdfPipelineOptions(artifacts_path=folder, do_ocr=False, do_table_structure=True)
    return PdfFormatOption(pipeline_cls=StandardPdfPipeline, pipeline_options=options)


class _Converter:
    """docling, opened once for all batches of a document: its models load at the first."""

    def __init__(self, source: Source, option: "PdfFormatOption") -> None:
        from docling.datamodel.base_models import InputFormat
        from docling.document_converter import DocumentConverter

        self._source = source
        self._copy = source.path.with_name(f"{source.path.name}.pdf")  # docling decides by the name
        self._docling = DocumentConverter(allowed_formats=[InputFormat.PDF], format_options={InputFormat.PDF: option})

    def __enter__(self) -> "_Converter":
        self._copy.unlink(missing_ok=True)  # a parse that was killed leaves it
        self._copy.symlink_to(self._source.path.name)
        return self

    def __exit__(self, *_: object) -> None:
        self._copy.unlink()

    def converted(self, numbers: range) -> "DoclingDocument":
        """What docling makes of these pages."""
        from docling.datamodel.base_models import ConversionStatus

        try:
            result = self._docling.convert(self._copy, raises_on_error=False, page_range=(numbers[0], numbers[-1]))
        except FileNotFoundError as error:
            detail = "the folder of models lacks one that the layout pipeline needs"
            raise LayoutModelsUnavailable(self._source.source_path, detail) from error
        if result.status not in (ConversionStatus.SUCCESS, ConversionStatus.PARTIAL_SUCCESS):
            raise self._source.corrupt("docling cannot convert it")
        return result.document


def _native_items(document: "DoclingDocument", page: int) -> Iterator[_Item]:
    """The page's lines, merged to paragraphs."""
    if page in document.pages:
        for paragraph in paragraphs(list(_lines(document, page))):
            yield _Item("paragraph", paragraph.text)


def _lines(document: "DoclingDocument", page: int) -> Iterator[Line]:
    """The page's items as lines, with y downwards."""
    height = document.pages[page].size.height
    for item in document.texts:
        if item.prov and item.prov[0].page_no == page:
            box = item.prov[0].bbox.to_top_left_origin(page_height=height)
            yield Line(item.text, box.l, box.r, box.t, box.b)


def _items(document: "DoclingDocument", page: int) -> Iterator[_Item]:
    """The page's items in reading order, without running headers and footers."""
    for item, _ in document.iterate_items(page_no=page):
        label = str(getattr(item, "label", ""))
        if label == "table":
            yield _Item("table", _table(item))
        elif label == "picture":
            yield _Item("figure", "")
        elif label not in _RUNNING and (text := getattr(item, "text", "")):
            kind = _KINDS.get(label, "paragraph")
            yield _Item(kind, text, getattr(item, "level", 1) if kind == "heading" else 0)


def _table(item: Any) -> str:
    return markdown_table([[cell.text for cell in row] for row in item.data.grid])
