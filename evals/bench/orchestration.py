"""What Dagster and the stores cost at 10,000 documents: `python -m evals.bench.orchestration` (`make bench-orchestration`)."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evals.bench.report import machine_facts, markdown_rows, save

METHOD = """
Documents are generated: one paragraph of about 600 characters each, a chunk of text that no other has. `scan`: a library of its own is
walked twice in one process, and the tables that staleness is read from are filled by SQL as ingesting leaves them; opens are counted by an
audit hook; processor time is that of the process, PostgreSQL's beside it. `batches`: ticks of the sensor and runs of the job, in one process
with Dagster's storage in PostgreSQL and its events on, so without the start of a process per run; random vectors take the place of the
model there and only there. The ratio to the bare model is of the real one, warm, over the same strings, in turns. Times are of the wall where
they do not say processor; on a busy machine they are what it was busy with.
"""
PARTS = ("scan", "batches")


def measure(folder: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """Every part that was asked for."""
    measured: dict[str, Any] = {}
    if "scan" in arguments.parts:
        from evals.bench.scanning import measure_scan

        for n_files in (arguments.documents, arguments.scanned):
            _said(measured, f"scan_{n_files}", measure_scan(folder / f"scan-{n_files}", n_files))
    if "batches" in arguments.parts:
        from evals.bench.home import opened_home

        with opened_home(folder / "ingested") as instance:
            from evals.bench import batches  # the environment names the home from here on

            _said(measured, "first_ingest", batches.measure_stub(instance, arguments.documents))
            _said(measured, "every_third", batches.measure_every_third(instance, min(1_000, arguments.documents)))
            numbers = range(arguments.documents, arguments.documents + arguments.embedded)
            _said(measured, "beside_bare_model", batches.measure_real(instance, numbers, n_paragraphs=8))
            batches.installation().close()
    return measured


def _said(measured: dict[str, Any], name: str, found: Any) -> None:
    measured[name] = found
    sys.stderr.write(f"{name}: {found}\n")


def table(measured: dict[str, Any]) -> str:
    """A row per figure, by the path to it."""
    return markdown_rows(("figure", "value"), list(_figures(measured)))


def _figures(found: Any, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(found, dict):
        for name, value in found.items():
            yield from _figures(value, f"{path} {name}".strip())
    else:
        yield path, f"{found:,.3g}" if isinstance(found, float) else f"{found:,}" if isinstance(found, int) else found


def main() -> None:
    """Measure, print the table, and keep everything in evals/results/orchestration.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--scanned", type=int, default=100_000, help="files of the larger library that is only scanned")
    parser.add_argument("--embedded", type=int, default=40, help="documents of eight paragraphs that the real model embeds")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    machine = machine_facts("stemma", "dagster", "dagster-postgres", "sentence-transformers", "torch")
    folder = Path(tempfile.mkdtemp(prefix="stemma-bench-"))
    try:
        measured = measure(folder, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    path = save("orchestration", method=METHOD, machine=machine, measured=measured)
    sys.stdout.write(f"{METHOD}\n{arguments.documents} documents on {machine['cpu']}\n\n{table(measured)}\n{path}\n")


if __name__ == "__main__":
    main()
