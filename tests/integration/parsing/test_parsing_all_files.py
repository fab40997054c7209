"""Every shared input through the pool, as a run would parse it: promises that hold for every format."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from stemma.errors import WARNINGS, DocumentError, UnsupportedFormat
from stemma.parsing.cleaning import is_visible
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import HEAD_BYTES, require_format
from stemma.parsing.workers import ParseJob, ParserPool

Result = ParsedDocument | DocumentError
FAILING = {
    "archive/t_test-zip-of-zip.zip": "unsupported",
    "archive/t_testZipEntryNameCharsetShiftSJIS.zip": "unsupported",
    "docx/t_testWORD_protected_passtika.docx": "encrypted",
    "generated/archive/duplicate_members.zip": "unsupported",
    "generated/archive/nested_3_levels.zip": "unsupported",
    "generated/docx/truncated.docx": "corrupt",
    "generated/image/text_named.png": "corrupt",
    "generated/odt/truncated.odt": "corrupt",
    "generated/pdf/header_only.pdf": "corrupt",
    "generated/pdf/html_named.pdf": "corrupt",
    "generated/pdf/truncated.pdf": "corrupt",
    "generated/xlsx/truncated.xlsx": "corrupt",
    "odt/t_testODTnotaZipFile.odt": "corrupt",
    "pdf/p_saslprep-r6.pdf": "encrypted",
    "pdf/t_testUnicodePassword.pdf": "encrypted",
    "pdf/u_password.pdf": "encrypted",
}


PEAK_BYTES = 350_000_000  # of a worker at any shared file, libraries included, without recognition; with it 1.3 GB
SLOWEST_S = 60


def parse_all(folder: Path, options: ParsingOptions, pool: ParserPool, peaks: dict[str, int] | None = None) -> dict[str, Result]:
    results: dict[str, Result] = {}
    jobs: list[ParseJob] = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        with path.open("rb") as file:
            try:
                format = require_format(file.read(HEAD_BYTES), path.suffix[1:], source_path=name)
            except UnsupportedFormat as error:
                results[name] = error
                continue
        jobs.append(ParseJob(path, name, format, options))
    for job, result in pool.parse(jobs):
        assert job.source_path not in results
        results[job.source_path] = result
        if peaks is not None and pool.last_peak_bytes is not None:
            peaks[job.source_path] = pool.last_peak_bytes
    assert len(results) == sum(path.is_file() for path in folder.rglob("*"))
    return results


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    with ParserPool(timeout_s=120, memory_bytes=1_500_000_000) as pool:
        yield pool


@pytest.fixture(scope="module")
def peaks() -> dict[str, int]:
    """File -> most memory of the worker that parsed it."""
    return {}


@pytest.fixture(scope="module")
def results(shared: Path, peaks: dict[str, int]) -> dict[str, Result]:
    """Everything but the text in pixels, which costs seconds per page."""
    with ParserPool(timeout_s=SLOWEST_S, memory_bytes=500_000_000) as pool:
        return parse_all(shared / "files", ParsingOptions(ocr_engine="none"), pool, peaks)


@pytest.fixture(scope="module")
def documents(results: dict[str, Result]) -> dict[str, ParsedDocument]:
    return {name: result for name, result in results.items() if isinstance(result, ParsedDocument)}


def test_exactly_the_bad_files_fail_each_with_its_code(results):
    assert {name: result.code for name, result in results.items() if isinstance(result, DocumentError)} == FAILING


def test_every_file_is_parsed_in_bounded_memory(results, peaks):
    if not peaks:
        pytest.skip("needs a kernel that counts the peak of a process (Linux)")
    parsed = {name for name, result in results.items() if not isinstance(result, UnsupportedFormat)}
    assert peaks.keys() == parsed
    assert {name: peak for name, peak in peaks.items() if peak > PEAK_BYTES} == {}


def test_every_case_is_parsed_in_bounded_time_and_memory(shared):
    peaks: dict[str, int] = {}
    with ParserPool(timeout_s=SLOWEST_S, memory_bytes=500_000_000) as pool:
        results = parse_all(shared / "cases", ParsingOptions(ocr_engine="none"), pool, peaks)
    ended = {"parse_timeout", "parse_memory", "worker_died"}
    assert {name: result.code for name, result in results.items() if isinstance(result, DocumentError) and result.code in ended} == {}
    assert {name: peak for name, peak in peaks.items() if peak > PEAK_BYTES} == {}


def test_blocks_and_assets_lie_in_the_text_in_order(documents):
    for name, document in documents.items():
        reached = 0
        for block in document.blocks:
            assert reached <= block.char_start < block.char_end <= len(document.text), name
            assert is_visible(document.text[block.char_start : block.char_end]), name
            assert (block.level > 0) == (block.kind == "heading"), name
            reached = block.char_end
        assert all(0 <= asset.char_start <= asset.char_end <= len(document.text) for asset in document.assets), name


def test_pages_are_numbered_from_one_and_do_not_overlap(documents):
    for name, document in documents.items():
        assert [page.number for page in document.pages] == list(range(1, len(document.pages) + 1)), name
        reached = 0
        for page in document.pages:
            assert reached <= page.char_start <= page.char_end <= len(document.text), name
            reached = page.char_end


def test_every_block_of_a_paged_document_lies_on_a_page(documents):
    for name, document in documents.items():
        if document.pages:
            covered = "".join(document.text[page.char_start : page.char_end] for page in document.pages)
            assert "".join(covered.split()) == "".join(document.text.split()), name


def test_texts_can_be_stored_and_come_back_equal(documents):
    for name, document in documents.items():
        assert not set("\0\r") & set(document.text), name
        document.text.encode("utf-8")
        assert ParsedDocument.from_json(document.to_json()) == document, name


def test_a_document_without_visible_text_says_so(documents):
    for name, document in documents.items():
        assert (document.warning in ("empty", "no_text")) == (not is_visible(document.text)), name
        assert document.warning is None or document.warning in WARNINGS
        assert is_visible(document.text) or document.text == ""


def test_every_needle_of_the_manifest_is_found(documents, shared):
    missing: list[tuple[str, str]] = []
    with (shared / "files/manifest.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            needles = (row["groundtruth"] or "").removeprefix("needle:").split(";") if "needle:" in (row["groundtruth"] or "") else []
            document = documents.get(row["file"])
            if document is not None:
                missing += [
                    (row["file"], needle) for needle in map(str.strip, needles) if "(OCR)" not in needle and needle not in document.text
                ]
    assert missing == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("files/generated/image/exif_rotated.jpg", ("ocr", ["EXIFWORD"])),
        ("files/image/t_testTIFF_multipage.tif", ("ocr", ["Page 1", "Page 2"])),
        ("cases/11-no-text-reported-as-success/scanned_two_pages.pdf", ("ocr_fallback", ["SCANWORD1", "SCANWORD2"])),
        ("cases/11-no-text-reported-as-success/mixed_text_and_scan.pdf", ("ocr_fallback", ["needle-mixed", "MIXEDSCAN"])),
    ],
)
def test_pixels_are_read(pool, shared, tmp_path, name, expected):
    (tmp_path / Path(name).name).write_bytes((shared / name).read_bytes())
    (document,) = parse_all(tmp_path, ParsingOptions(), pool).values()
    assert isinstance(document, ParsedDocument)
    assert (document.extraction, [word for word in expected[1] if word in document.text]) == expected
    assert document.used_ocr


def test_ocr_stops_at_its_page_limit_and_lists_the_rest(pool, shared, tmp_path):
    (tmp_path / "scan.pdf").write_bytes((shared / "cases/11-no-text-reported-as-success/scanned_two_pages.pdf").read_bytes())
    (document,) = parse_all(tmp_path, ParsingOptions(ocr_max_pages=1), pool).values()
    assert isinstance(document, ParsedDocument)
    assert (document.ocr_pages, document.warning, document.metadata["pages_without_text"]) == ((1,), "partly_no_text", [2])


def test_an_image_of_ninety_megapixels_stays_within_the_limit(pool, shared, tmp_path):
    (tmp_path / "large.png").write_bytes((shared / "files/generated/image/large_dimensions.png").read_bytes())
    (document,) = parse_all(tmp_path, ParsingOptions(), pool).values()
    assert isinstance(document, ParsedDocument) and document.warning == "no_text"


def test_an_image_of_four_hundred_megapixels_is_refused(pool, tmp_path):
    from PIL import Image

    Image.new("1", (20_000, 20_000)).save(tmp_path / "huge.png")
    (error,) = parse_all(tmp_path, ParsingOptions(), pool).values()
    assert isinstance(error, DocumentError) and error.code == "too_large"


def test_a_large_photo_is_turned_as_its_camera_says(pool, tmp_path):
    from PIL import Image, ImageDraw, ImageFont

    photo = Image.new("RGB", (6_000, 3_000), "white")
    ImageDraw.Draw(photo).text((500, 1_200), "UPRIGHT WORDS", fill="black", font=ImageFont.load_default(size=500))
    exif = Image.Exif()
    exif[0x0112] = 6
    photo.rotate(90, expand=True).save(tmp_path / "photo.jpg", exif=exif)
    (document,) = parse_all(tmp_path, ParsingOptions(), pool).values()
    assert isinstance(document, ParsedDocument) and "UPRIGHT WORDS" in document.text
