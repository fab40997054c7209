"""Pages per second and memory of PDF readers side by side: `python -m evals.bench.parsing FILE_OR_FOLDER...` (`make bench-parsing`)."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from evals.bench.report import Spread, machine_facts, markdown_rows, save
from stemma.parsing.memory import forget_peak, peak_bytes

METHOD = """
Each reader runs in a process of its own, imports and a first small file before the clock starts, and reads the same PDFs one after the
other, as often as there are repetitions; readers take turns, so that a busy machine is busy for all. Every page's text is asked for, in
the form the reader gives: stemma paragraphs, headings and offsets by pdfium; docling its document by NativePdfPipeline, without models;
pypdf `extract_text`. Nothing is recognised from pixels. Compared are the files that every reader reads with the same number of pages.
Pages per second is all pages over the sum of times, per repetition; memory is the peak resident size while one document was read
(VmHWM, reset before each), libraries included.
"""
READERS = ("stemma", "docling", "pypdf")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "library"

Reader = Callable[[Path], int]


def stemma_reader() -> Reader:
    """Stemma's default pipeline: file -> number of pages."""
    from stemma.parsing.draft import ParsingOptions
    from stemma.parsing.formats import FORMATS
    from stemma.parsing.parse import parse_file

    options = ParsingOptions(ocr_engine="none")
    return lambda path: len(parse_file(path, source_path=path.name, format=FORMATS["pdf"], options=options).pages)


def docling_reader() -> Reader:
    """docling without models."""
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.pipeline_options import NativePdfPipelineOptions
    from docling.document_converter import DocumentConverter, PdfFormatOption
    from docling.pipeline.native_pdf_pipeline import NativePdfPipeline

    option = PdfFormatOption(pipeline_cls=NativePdfPipeline, pipeline_options=NativePdfPipelineOptions())
    converter = DocumentConverter(allowed_formats=[InputFormat.PDF], format_options={InputFormat.PDF: option})

    def read(path: Path) -> int:
        document = converter.convert(path).document
        document.export_to_text()
        return len(document.pages)

    return read


def pypdf_reader() -> Reader:
    """pypdf."""
    from pypdf import PdfReader

    def read(path: Path) -> int:
        pages = PdfReader(path).pages
        for page in pages:
            page.extract_text()
        return len(pages)

    return read


def read_all(reader: str, paths: Sequence[Path]) -> dict[str, dict[str, float]]:
    """Path -> pages, seconds and bytes, of the files that the reader reads; in this process."""
    read = {"stemma": stemma_reader, "docling": docling_reader, "pypdf": pypdf_reader}[reader]()
    read(next(iter(sorted(EXAMPLES.rglob("*.pdf")))))
    found: dict[str, dict[str, float]] = {}
    for path in paths:
        forget_peak()
        started = time.perf_counter()
        try:
            n_pages = read(path)
        except Exception as error:  # whatever another library raises means that it does not read the file
            sys.stderr.write(f"{reader}: {path.name}: {type(error).__name__}\n")
            continue
        found[str(path)] = {"pages": n_pages, "seconds": time.perf_counter() - started, "bytes": peak_bytes() or 0}
    return found


def compare(paths: Sequence[Path], *, repetitions: int) -> dict[str, Any]:
    """What each reader needed for the files that all of them read, per repetition and per document."""
    runs: dict[str, list[dict[str, dict[str, float]]]] = {reader: [] for reader in READERS}
    for _ in range(repetitions):
        for reader in READERS:
            arguments = [sys.executable, "-m", "evals.bench.parsing", "--reader", reader, *map(str, paths)]
            done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, check=True)
            runs[reader].append(json.loads(done.stdout.splitlines()[-1]))
    every = [run for reader in READERS for run in runs[reader]]
    shared = [str(path) for path in paths if len({run.get(str(path), {}).get("pages") for run in every}) == 1 and str(path) in every[0]]
    n_pages = sum(every[0][path]["pages"] for path in shared)
    return {
        "documents": len(shared),
        "pages": n_pages,
        "left_out": sorted(Path(path).name for path in map(str, paths) if path not in shared),
        "readers": {
            reader: {
                "pages_per_s": [n_pages / sum(run[path]["seconds"] for path in shared) for run in runs[reader]],
                "largest_peak_mb": [max(run[path]["bytes"] for path in shared) / 1e6 for run in runs[reader]],
                "per_document": {
                    Path(path).name: {
                        "pages": every[0][path]["pages"],
                        "seconds": [round(run[path]["seconds"], 4) for run in runs[reader]],
                        "peak_mb": [round(run[path]["bytes"] / 1e6, 1) for run in runs[reader]],
                    }
                    for path in shared
                },
            }
            for reader in READERS
        },
    }


def table(measured: dict[str, Any]) -> str:
    """A row per reader; the ratio is Stemma's median over the reader's."""
    speeds = {reader: Spread(tuple(measured["readers"][reader]["pages_per_s"])) for reader in READERS}
    rows = [
        (
            reader,
            speeds[reader],
            f"{speeds['stemma'].median / speeds[reader].median:.2f}",
            Spread(tuple(measured["readers"][reader]["largest_peak_mb"])),
        )
        for reader in READERS
    ]
    return markdown_rows(("reader", "pages/s, median (range)", "stemma : reader", "largest peak of a document, MB"), rows)


def main() -> None:
    """Measure, print the table, and keep everything in evals/results/parsing.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="*", default=[EXAMPLES], help="PDFs, or folders of them; default: the examples")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--reader", choices=READERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    paths = sorted(file for path in arguments.paths for file in (path.rglob("*.pdf") if path.is_dir() else [path]))
    if arguments.reader:
        sys.stdout.write(json.dumps(read_all(arguments.reader, paths)) + "\n")
        return
    machine = machine_facts("stemma", "pypdfium2", "docling-slim", "pypdf")
    measured = compare(paths, repetitions=arguments.repetitions)
    path = save("parsing", method=METHOD, machine=machine, measured=measured)
    heading = f"{measured['pages']} pages of {measured['documents']} PDFs, {arguments.repetitions} repetitions, on {machine['cpu']}"
    sys.stdout.write(f"{METHOD}\n{heading}\n\n{table(measured)}\n{path}\n")


if __name__ == "__main__":
    main()
