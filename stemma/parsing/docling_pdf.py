"""PDF through docling: its model-free pipeline, or the one with layout and table models from a local artifacts folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stemma.errors import LayoutModelsUnavailable
from stemma.parsing.document import BlockKind
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.layout import Line, paragraphs
from stemma.parsing.pdf import open_pdf, stated_facts
from stemma.parsing.tables import markdown_table

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
    layout = source.options.pdf_pipeline == "docling_layout"
    document = _converted(source, _layout_option(source) if layout else _native_option())
    builder = DraftBuilder(source)
    without_text: list[int] = []
    for number in sorted(document.pages):
        builder.start_page(number)
        before = builder.length
        if layout:
            _add_items(builder, document, number)
        else:
            for paragraph in paragraphs(list(_lines(document, number))):
                builder.add(paragraph.text)
        if builder.length == before:
            without_text.append(number)
    return builder.finish(
        title=title,
        metadata={**facts, "n_pages": len(document.pages), "pages_without_text": without_text, "pipeline": source.options.pdf_pipeline},
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


def _converted(source: Source, option: "PdfFormatOption") -> "DoclingDocument":
    from docling.datamodel.base_models import ConversionStatus, InputFormat
    from docling.document_converter import DocumentConverter

    copy = source.path.with_name(f"{source.path.name}.pdf")  # docling decides by the name
    copy.symlink_to(source.path.name)
    try:
        result = DocumentConverter(allowed_formats=[InputFormat.PDF], format_options={InputFormat.PDF: option}).convert(
            copy, raises_on_error=False
        )
    except FileNotFoundError as error:
        raise LayoutModelsUnavailable(source.source_path, "the folder of models lacks one that the layout pipeline needs") from error
    finally:
        copy.unlink()
    if result.status not in (ConversionStatus.SUCCESS, ConversionStatus.PARTIAL_SUCCESS):
        raise source.corrupt("docling cannot convert it")
    return result.document


def _lines(document: "DoclingDocument", page: int) -> Iterator[Line]:
    """The page's items as lines, with y downwards."""
    height = document.pages[page].size.height
    for item in document.texts:
        if item.prov and item.prov[0].page_no == page:
            box = item.prov[0].bbox.to_top_left_origin(page_height=height)
            yield Line(item.text, box.l, box.r, box.t, box.b)


def _add_items(builder: DraftBuilder, document: "DoclingDocument", page: int) -> None:
    """The page's items in reading order, without running headers and footers."""
    for item, _ in document.iterate_items(page_no=page):
        label = str(getattr(item, "label", ""))
        if label == "table":
            builder.add(_table(item), "table")
        elif label == "picture":
            builder.add_figure(None)
        elif label not in _RUNNING and (text := getattr(item, "text", "")):
            kind = _KINDS.get(label, "paragraph")
            builder.add(text, kind, level=getattr(item, "level", 1) if kind == "heading" else 0)


def _table(item: Any) -> str:
    return markdown_table([[cell.text for cell in row] for row in item.data.grid])
