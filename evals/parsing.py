"""What becomes of every file of a test collection: `python -m evals.parsing FOLDER` rewrites the table in docs/formats.md.

The folder holds `manifest.csv` with the columns `file` and `groundtruth`: a Markdown file beside it that says what the text
should be, or `needle: a; b`, words that must be found.
"""

import argparse
import csv
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from stemma.errors import DocumentError, UnsupportedFormat
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import HEAD_BYTES, require_format
from stemma.parsing.workers import ParseJob, ParserPool

PAGE = Path(__file__).resolve().parent.parent / "docs" / "formats.md"
BEGIN, END = "<!-- outcomes: made by `python -m evals.parsing`, checked by a test -->\n", "<!-- end of outcomes -->\n"

Result = ParsedDocument | DocumentError


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the table; every field as it is shown."""

    file: str
    outcome: str
    """`ready`, `ready` with a warning, or the code of the failure."""
    parser: str
    extraction: str
    pages: str
    tables: str
    recall: str
    """Share of the ground truth's words that the text has, or of its needles as `2/2`."""
    precision: str
    """Share of the text's words that the ground truth has."""


def word_counts(text: str) -> Counter[str]:
    """How often each word occurs: runs of letters, digits and `_`, after NFKC and without case."""
    return Counter(re.findall(r"\w+", unicodedata.normalize("NFKC", text).lower()))


def recall_and_precision(truth: str, text: str) -> tuple[float, float]:
    """The shares of the truth's words in the text, and of the text's words in the truth; each word counts as often as it occurs."""
    wanted, found = word_counts(truth), word_counts(text)
    shared = (wanted & found).total()
    return shared / max(wanted.total(), 1), shared / max(found.total(), 1)


def shown_text(markdown: str) -> str:
    """What a reader of the ground truth sees: no comments, pictures, targets of links or escapes."""
    text = re.sub(r"<!--.*?-->", "", markdown, flags=re.DOTALL)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    for _ in range(3):  # links in links
        text = re.sub(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?:[^()]|\([^()]*\))*\)", r"\1", text)
    return re.sub(r"\\([_*])", r"\1", text)


def parse_all(folder: Path, names: Iterable[str], *, options: ParsingOptions, pool: ParserPool) -> Iterator[tuple[str, Result]]:
    """Every file with its document or its error, as a run would parse it; those that no parser reads come first."""
    jobs: list[ParseJob] = []
    for name in names:
        path = folder / name
        try:
            with path.open("rb") as file:
                format = require_format(file.read(HEAD_BYTES), path.suffix[1:], source_path=name)
        except UnsupportedFormat as error:
            yield name, error
            continue
        jobs.append(ParseJob(path, name, format, options))
    for job, result in pool.parse(jobs):
        yield job.source_path, result


def outcomes(folder: Path, *, options: ParsingOptions, pool: ParserPool) -> list[Outcome]:
    """A row per file of the manifest, by name."""
    with (folder / "manifest.csv").open(newline="", encoding="utf-8") as file:
        truths = {row["file"]: row["groundtruth"] for row in csv.DictReader(file)}
    return sorted(
        (outcome(folder, name, result, truths[name]) for name, result in parse_all(folder, truths, options=options, pool=pool)),
        key=lambda row: row.file,
    )


def outcome(folder: Path, name: str, result: Result, truth: str) -> Outcome:
    """The row of one file."""
    if isinstance(result, DocumentError):
        return Outcome(name, result.code, "", "", "", "", "", "")
    recall = precision = ""
    if truth.startswith("needle:"):
        needles = [needle.strip().removesuffix("(OCR)").strip() for needle in truth.removeprefix("needle:").split(";")]
        recall = f"{sum(needle in result.text for needle in needles)}/{len(needles)}"
    elif truth:
        shares = recall_and_precision(shown_text((folder / truth).read_text("utf-8")), result.text)
        recall, precision = (f"{share:.2f}" for share in shares)
    n_tables = sum(asset.kind == "table" for asset in result.assets)
    return Outcome(
        file=name,
        outcome=f"ready, {result.warning}" if result.warning else "ready",
        parser=result.parser,
        extraction=result.extraction,
        pages=str(len(result.pages) or ""),
        tables=str(n_tables or ""),
        recall=recall,
        precision=precision,
    )


def table(rows: Sequence[Outcome]) -> str:
    """The rows as a Markdown table."""
    header = [field.name for field in fields(Outcome)]
    lines = [header, ["---"] * len(header), *([f"`{row.file}`", *astuple(row)[1:]] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def rows_of(page: str) -> list[Outcome]:
    """The rows that a page holds between its marks, as `table` wrote them."""
    lines = page.split(BEGIN)[1].split(END, maxsplit=1)[0].strip().split("\n")[2:]
    cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [Outcome(name.strip("`"), *rest) for name, *rest in cells]


def main() -> None:
    """Parse every file, recognising pictures too, and rewrite the table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    with ParserPool(timeout_s=300, memory_bytes=2_000_000_000) as pool:
        rows = outcomes(folder, options=ParsingOptions(), pool=pool)
    page = PAGE.read_text("utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n" + table(rows) + "\n" + END + after, "utf-8")
    sys.stdout.write(f"{len(rows)} files, {sum(not row.parser for row in rows)} without text for a stated reason\n")


if __name__ == "__main__":
    main()
