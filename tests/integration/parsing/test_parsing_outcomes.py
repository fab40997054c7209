"""What becomes of every shared file is what docs/formats.md says, and enough of every ground truth is found."""

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from evals.parsing import PAGE, Outcome, outcomes, parse_all, recall_and_precision, rows_of, shown_text
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.workers import ParserPool

# Pages whose text layer is sound, so that it can judge what is recognised from their picture.
PICTURED = {
    "pdf/d_amt_handbook_sample.pdf": 1,
    "pdf/d_code_and_formula.pdf": 1,
    "pdf/k_movie-theater-booking-2024.pdf": 1,
    "pdf/u_multi-column-2p.pdf": 1,
    "pdf/u_copy-protected.pdf": 2,
}


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    with ParserPool(timeout_s=300, memory_bytes=2_000_000_000) as pool:
        yield pool


@pytest.fixture(scope="module")
def stated() -> dict[str, Outcome]:
    return {row.file: row for row in rows_of(PAGE.read_text("utf-8"))}


@pytest.fixture(scope="module")
def found(shared: Path, pool: ParserPool) -> dict[str, Outcome]:
    """Everything but the text in pixels."""
    return {row.file: row for row in outcomes(shared / "files", options=ParsingOptions(ocr_engine="none"), pool=pool)}


def test_every_file_without_pixels_ends_as_the_page_says(stated, found):
    assert set(stated) == set(found)
    assert [row for row in found.values() if not stated[row.file].extraction.startswith("ocr") and row != stated[row.file]] == []


def test_nearly_all_words_of_the_ground_truths_are_found(found):
    recalls = [float(row.recall) for row in found.values() if row.precision]
    assert len(recalls) >= 15
    assert median(recalls) >= 0.97


def test_every_needle_outside_of_pixels_is_found(stated, found):
    needles = {row.file: row.recall for row in found.values() if "/" in row.recall and not stated[row.file].extraction.startswith("ocr")}
    assert len(needles) > 50
    assert {file: recall for file, recall in needles.items() if len(set(recall.split("/"))) != 1} == {}


def test_the_ground_truth_is_read_without_targets_pictures_and_comments():
    assert shown_text("a <!-- image --> ![b](c.png) [d [e](f)](g_(h)) i\\_j").split() == ["a", "d", "e", "i_j"]
    assert recall_and_precision("one two two", "two one three") == (2 / 3, 2 / 3)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_every_file_ends_as_the_page_says(stated, shared, pool):
    rows = outcomes(shared / "files", options=ParsingOptions(), pool=pool)
    assert [row for row in rows if row != stated[row.file]] == []


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_most_words_of_a_page_are_recognised_from_its_picture(shared, pool, tmp_path):
    import pypdfium2

    texts: dict[str, str] = {}
    layers = dict(parse_all(shared / "files", PICTURED, options=ParsingOptions(ocr_engine="none"), pool=pool))
    for name, number in PICTURED.items():
        document = layers[name]
        assert isinstance(document, ParsedDocument)
        page = document.pages[number - 1]
        texts[f"{Path(name).stem}.png"] = document.text[page.char_start : page.char_end]
        with pypdfium2.PdfDocument(shared / "files" / name) as pdf:
            pdf[number - 1].render(scale=200 / 72).to_pil().save(tmp_path / f"{Path(name).stem}.png")
    recalls: dict[str, float] = {}
    for name, result in parse_all(tmp_path, texts, options=ParsingOptions(), pool=pool):
        assert isinstance(result, ParsedDocument)
        recalls[name] = recall_and_precision(texts[name], result.text)[0]
    assert median(recalls.values()) >= 0.85, recalls
