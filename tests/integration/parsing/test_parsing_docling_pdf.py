"""PDFs through docling: the pipeline without models for real, the one with models as far as it goes without them."""

from pathlib import Path

import pytest

from stemma.errors import DocumentError
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import FORMATS
from stemma.parsing.workers import ParseJob, ParserPool

PDF = Path(__file__).resolve().parents[3] / "examples/library/observatory/instruments/cameras/ccd-calibration.pdf"


def parsed(path: Path, **options) -> ParsedDocument | DocumentError:
    job = ParseJob(path, path.name, FORMATS["pdf"], ParsingOptions(**options))
    with ParserPool(timeout_s=120, memory_bytes=4_000_000_000) as pool:
        [(_, answer)] = pool.parse([job])
    return answer


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A private copy, as the spool makes it: without an extension."""
    target = tmp_path / "spool-1"
    target.write_bytes(PDF.read_bytes())
    return target


def test_docling_without_models_reads_the_pages_as_paragraphs(copy):
    document = parsed(copy, pdf_pipeline="docling_native")
    assert isinstance(document, ParsedDocument)
    assert [page.number for page in document.pages] == [1, 2, 3, 4]
    second = document.text[document.pages[1].char_start : document.pages[1].char_end]
    assert "the camera is cooled to -15 °C" in " ".join(second.split())
    assert all(document.text[block.char_start : block.char_end].strip() for block in document.blocks)
    assert document.metadata["pipeline"] == "docling_native" and document.title == "Calibrating the CCD camera"


@pytest.mark.parametrize("artifacts", [None, "empty", "nowhere"])
def test_the_layout_pipeline_without_its_models_says_what_is_missing(copy, tmp_path, artifacts):
    (tmp_path / "empty").mkdir()
    error = parsed(copy, pdf_pipeline="docling_layout", docling_artifacts=None if artifacts is None else str(tmp_path / artifacts))
    assert isinstance(error, DocumentError) and error.code == "layout_models_unavailable"


def test_a_pdf_with_a_password_is_encrypted_in_every_pipeline(shared, tmp_path):
    target = tmp_path / "spool-1"
    target.write_bytes((shared / "files/pdf/u_password.pdf").read_bytes())
    error = parsed(target, pdf_pipeline="docling_native")
    assert isinstance(error, DocumentError) and error.code == "encrypted"
