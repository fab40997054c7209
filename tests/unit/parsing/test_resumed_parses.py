"""A long parse that is ended goes on after the pages that it had finished, and reads what an undisturbed one reads."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import psutil
import pytest
from PIL import Image, ImageDraw, ImageFont

from stemma.errors import DocumentError, WorkerDied
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import FORMATS
from stemma.parsing.parse import parse_file
from stemma.parsing.work_folder import BATCH_PAGES, WorkFolder
from stemma.parsing.workers import ParseJob, ParserPool

WORDS = ("HARBOUR", "LANTERN", "COMPASS", "ANCHOR")


def scanned(path: Path) -> Path:
    """A file of four pages without a text layer, a word each."""
    pages = [Image.new("RGB", (600, 200), "white") for _ in WORDS]
    for page, word in zip(pages, WORDS, strict=True):
        ImageDraw.Draw(page).text((60, 60), word, fill="black", font=ImageFont.load_default(size=60))
    pages[0].save(path, save_all=True, append_images=pages[1:], resolution=100)
    return path


def written(path: Path, n_pages: int) -> Path:
    """A PDF whose pages have a text layer."""
    import ctypes

    import pypdfium2

    pdf = pypdfium2.PdfDocument.new()
    font = pypdfium2.raw.FPDFText_LoadStandardFont(pdf, b"Helvetica")
    for number in range(1, n_pages + 1):
        page = pdf.new_page(300, 300)
        text = pypdfium2.raw.FPDFPageObj_CreateTextObj(pdf, font, 12)
        content = f"words of page {number}\0".encode("utf-16-le")
        pypdfium2.raw.FPDFText_SetText(text, ctypes.cast(content, pypdfium2.raw.FPDF_WIDESTRING))
        pypdfium2.raw.FPDFPageObj_Transform(text, 1, 0, 0, 1, 40, 200)
        pypdfium2.raw.FPDFPage_InsertObject(page, text)
        page.gen_content()
    pdf.save(path)
    return path


def parse(path: Path, work_folder: Path | None, **options) -> ParsedDocument:
    """In this process."""
    return parse_file(path, source_path=path.name, format=FORMATS["pdf"], options=ParsingOptions(**options), work_folder=work_folder)


def parsed(path: Path, work_folder: Path | None, *, timeout_s: float = 240) -> ParsedDocument | DocumentError:
    """By a worker."""
    format = FORMATS["pdf" if path.suffix == ".pdf" else "image"]
    with ParserPool(timeout_s=timeout_s, memory_bytes=4_000_000_000) as pool:
        [(_, answer)] = pool.parse([ParseJob(path, path.name, format, work_folder=work_folder)])
    return answer


def kill_at_the_second_batch(folder: Path) -> None:
    """Kill this process's worker as soon as it has finished two batches."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline and len(list(folder.glob("*.json"))) < 2:
        threading.Event().wait(0.01)
    for child in psutil.Process().children():
        if "stemma.parsing.worker" in child.cmdline():
            os.kill(child.pid, signal.SIGKILL)


def replace_words(folder: Path, before: str, after: str) -> None:
    """Change what was kept: a text that no parser could read from the file shows that it was not read again."""
    batches = sorted(folder.glob("*.json"))
    changed = [batch for batch in batches if before in batch.read_text()]
    assert len(changed) == 1
    changed[0].write_text(changed[0].read_text().replace(before, after))


@pytest.mark.parametrize("name", ["scan.pdf", "scan.tiff"])
def test_a_killed_parse_goes_on_after_its_last_finished_page(tmp_path, name):
    path, folder = scanned(tmp_path / name), tmp_path / "work"
    killer = threading.Thread(target=kill_at_the_second_batch, args=(folder,))
    killer.start()
    error = parsed(path, folder)
    killer.join()
    assert isinstance(error, WorkerDied) and error.retryable
    replace_words(folder, WORDS[0], "BARNACLE")
    resumed = parsed(path, folder)
    assert isinstance(resumed, ParsedDocument)
    assert resumed.text.split() == ["BARNACLE", *WORDS[1:]]
    assert (resumed.ocr_pages, len(resumed.pages), resumed.warning) == ((1, 2, 3, 4), 4, None)


@pytest.mark.parametrize("pipeline", ["pdfium", "docling_native"])
def test_pages_of_text_are_kept_by_the_batch_and_give_the_same_document(tmp_path, pipeline):
    path, folder = written(tmp_path / "long.pdf", 2 * BATCH_PAGES + 5), tmp_path / "work"
    whole = parse(path, None, pdf_pipeline=pipeline)
    assert parse(path, folder, pdf_pipeline=pipeline) == whole
    texts = [whole.text[page.char_start : page.char_end] for page in whole.pages]
    assert texts == [f"words of page {number}" for number in range(1, 2 * BATCH_PAGES + 6)]
    (folder / f"{BATCH_PAGES:06}.json").unlink()  # what follows a gap is read again
    replace_words(folder, "words of page 7", "kept of page 7")
    assert parse(path, folder, pdf_pipeline=pipeline).text == whole.text.replace("words of page 7", "kept of page 7")


@pytest.mark.parametrize("damage", ["", "[{", '[{"colour": 1}]', "17", '{"lines": 3}'])
def test_a_damaged_work_folder_costs_nothing_but_the_time(tmp_path, damage):
    path, folder = written(tmp_path / "long.pdf", BATCH_PAGES + 1), tmp_path / "work"
    whole = parse(path, folder)
    (folder / "000000.json").write_text(damage)
    assert parse(path, folder) == whole


def test_a_folder_that_cannot_be_written_does_not_cost_the_document(tmp_path):
    (tmp_path / "file").touch()
    assert parse(written(tmp_path / "long.pdf", BATCH_PAGES), tmp_path / "file" / "work").text


def test_a_parse_that_ends_without_a_finished_page_is_not_worth_a_retry(tmp_path):
    error = parsed(scanned(tmp_path / "scan.pdf"), tmp_path / "work", timeout_s=0.2)
    assert isinstance(error, DocumentError) and error.code == "parse_timeout" and not error.retryable


def test_a_verdict_on_equal_bytes_stays_what_it_is_under_another_name():
    error = WorkerDied("a.pdf", "it crashed")
    error.retryable = True
    assert (error.of("b.pdf").source_path, error.of("b.pdf").detail, error.of("b.pdf").retryable) == ("b.pdf", "it crashed", True)
    assert not WorkerDied("c.pdf", "it crashed").retryable


def test_batches_are_read_as_far_as_they_follow_each_other(tmp_path):
    work = WorkFolder(tmp_path / "work")
    for first, batch in ((0, ["a", "b"]), (2, ["c"]), (5, ["f"])):
        work.keep(batch, first=first)
    work.keep([], first=3)
    assert work.finished(str) == ["a", "b", "c"]
    assert work.n_batches() == 3
    assert json.loads((tmp_path / "work" / "000002.json").read_text()) == ["c"]
    assert WorkFolder().finished(str) == [] and WorkFolder().n_batches() == 0
