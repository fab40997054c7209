"""PDF: which of the pipelines reads it is the setting PDF_PIPELINE."""

from stemma.parsing.draft import Draft, Source
from stemma.parsing.pdf import parse_pdf_by_pdfium


def parse_pdf(source: Source) -> Draft:
    """Read a PDF by the pipeline that the options name; docling, which takes seconds to import, only when it is named."""
    if source.options.pdf_pipeline == "pdfium":
        return parse_pdf_by_pdfium(source)
    from stemma.parsing.docling_pdf import parse_pdf_by_docling

    return parse_pdf_by_docling(source)
