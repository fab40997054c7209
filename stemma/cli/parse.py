"""`stemma parse`: what one file becomes as text, without any store: for trying a file, and for reporting one that reads badly."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import ExitCode, command, note, print_json, problem_of, table

if TYPE_CHECKING:
    from stemma.errors import DocumentError
    from stemma.parsing.document import ParsedDocument
    from stemma.settings import Settings


@command
def parse(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Any file; it need not lie in the library.", show_default=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: text, blocks, pages, assets, metadata, timings.")] = False,
    blocks: Annotated[bool, typer.Option("--blocks", help="Print the blocks with their spans instead of the text.")] = False,
) -> None:
    """Print the text that Stemma reads from a file.

    The file is parsed as an ingest would parse it: in a process of its own with the limits on time and memory, with the
    settings of the environment. Nothing is stored, and nothing needs to run. The text goes to standard output, what else is
    known to standard error.

    Exits with 1 when the file cannot be read; docs/errors.md lists the codes.

    \b
    Examples:
      stemma parse report.pdf
      stemma parse report.pdf --blocks
      stemma parse report.pdf --json | jq '.pages[] | [.number, .char_start, .char_end]'
    """
    from stemma.errors import DocumentError
    from stemma.settings import load_settings

    started = time.monotonic()
    result = parsed(file, load_settings())
    elapsed_s = time.monotonic() - started
    if isinstance(result, DocumentError):
        print_failure(result, as_json=as_json)
        raise typer.Exit(ExitCode.PROBLEMS)
    if as_json:
        print_json({"source_path": file.name, **asdict(result), "output_hash": result.output_hash, "elapsed_s": round(elapsed_s, 3)})
        return
    note(_summary(file, result, elapsed_s))
    if blocks:
        _print_blocks(result)
    elif result.text:
        print(result.text)


def parsed(file: Path, settings: "Settings") -> "ParsedDocument | DocumentError":
    """The document of a file, or why it has none. The parser runs in a process of its own, so a hostile file ends that one only."""
    from stemma.errors import DocumentError, DocumentTooLarge, UnreadableFile
    from stemma.parsing.draft import ParsingOptions
    from stemma.parsing.formats import HEAD_BYTES, require_format
    from stemma.parsing.workers import ParseJob, ParserPool

    try:
        with file.open("rb") as opened:
            head = opened.read(HEAD_BYTES)
        if file.stat().st_size > settings.max_file_bytes:
            raise DocumentTooLarge(file.name, f"it has more than {settings.max_file_bytes:,} bytes")
        format = require_format(head, file.suffix[1:], source_path=file.name, zip_archives=settings.zip_archives)
    except OSError as error:
        return UnreadableFile(file.name, f"opening it failed ({error.strerror or type(error).__name__})")
    except DocumentError as error:
        return error
    job = ParseJob(file, file.name, format, ParsingOptions.of(settings))
    with ParserPool(timeout_s=settings.parse_timeout_s, memory_bytes=settings.parse_memory_bytes) as pool:
        ((_, result),) = pool.parse([job])
    return result


def print_failure(error: "DocumentError", *, as_json: bool) -> None:
    """Why a file has no text, in one line on standard error."""
    import json

    note(json.dumps(problem_of(error), ensure_ascii=False) if as_json else f"{error.code}: {error}")


def _summary(file: Path, document: "ParsedDocument", elapsed_s: float) -> str:
    facts: dict[str, Any] = {
        "title": document.title,
        "parser": f"{document.parser} {document.parser_version}",
        "warning": document.warning,
        "characters": f"{len(document.text):,}",
        "blocks": len(document.blocks) or None,
        "pages": len(document.pages) or None,
        "tables": sum(asset.kind == "table" for asset in document.assets) or None,
        "figures": sum(asset.kind == "figure" for asset in document.assets) or None,
        "extraction": document.extraction,
        **document.metadata,
        "elapsed": f"{elapsed_s:.2f} s",
    }
    return "\n".join([file.name, *(f"  {name:<10} {value}" for name, value in facts.items() if value is not None)])


def _print_blocks(document: "ParsedDocument") -> None:
    first_line, counted = 1, 0
    with table("kind", "chars", "lines", "page", "text") as add:
        for block in document.blocks:
            first_line += document.text.count("\n", counted, block.char_start)
            counted = block.char_start
            last_line = first_line + document.text.count("\n", block.char_start, block.char_end)
            page = next((page.label or page.number for page in document.pages if page.char_start <= block.char_start < page.char_end), None)
            kind = f"{block.kind} {block.level}" if block.level else block.kind
            beginning = " ".join(document.text[block.char_start : block.char_end].split())[:80]
            add(kind, f"{block.char_start}-{block.char_end}", f"{first_line}-{last_line}", page, beginning)
