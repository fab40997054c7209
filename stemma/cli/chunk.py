"""`stemma chunk`: what one file is cut into, without any store: for choosing a strategy and a size."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stemma.cli.console import ExitCode, command, note, print_json, table
from stemma.cli.parse import parsed, print_failure

if TYPE_CHECKING:
    import polars as pl

    from stemma.chunking.semantic import Embed
    from stemma.settings import Settings

EXCERPT_CHARS = 80


@command
def chunk(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Any file; it need not lie in the library.", show_default=False)],
    *,
    strategy: Annotated[
        Literal["recursive_character", "markdown_aware", "sentence", "page", "token_based", "docling_hybrid", "semantic"] | None,
        typer.Option(help="How to cut; default: CHUNKING_STRATEGY.", show_default=False),
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Longest chunk, in the strategy's unit; default: CHUNK_SIZE.", show_default=False)
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(help="How far a chunk may reach back; default: CHUNK_OVERLAP, at most an eighth of --size.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object with every chunk in full.")] = False,
) -> None:
    """Print the chunks that a file is cut into, each with its exact place.

    The file is parsed and cut as an ingest would do it, with the settings of the environment. Nothing is stored, and nothing
    needs to run. The sizes of token_based, docling_hybrid and semantic are tokens, those of the others characters; semantic
    loads the embedding model.

    Exits with 1 when the file cannot be read.

    \b
    Examples:
      stemma chunk report.pdf
      stemma chunk report.pdf --strategy page
      stemma chunk guide.md --strategy docling_hybrid --size 200 --overlap 0
      stemma chunk guide.md --json | jq -r '.chunks[] | [.char_start, .char_end, .n_tokens] | @tsv'
    """
    from stemma.chunking.chunk import chunk_document
    from stemma.chunking.strategies import UNITS, check_sizes
    from stemma.chunking.tokenizer import minilm_tokenizer
    from stemma.errors import DocumentError
    from stemma.settings import load_settings

    settings = load_settings()
    recipe: dict[str, Any] = {
        "strategy": strategy or settings.chunking_strategy,
        "size": settings.chunk_size if size is None else size,
        "overlap": overlap if overlap is not None else settings.chunk_overlap if size is None else min(settings.chunk_overlap, size // 8),
    }
    check_sizes(size=recipe["size"], overlap=recipe["overlap"])
    document = parsed(file, settings)
    if isinstance(document, DocumentError):
        print_failure(document, as_json=as_json)
        raise typer.Exit(ExitCode.PROBLEMS)
    embed = _embed(settings) if recipe["strategy"] == "semantic" else None
    chunks = chunk_document(document, **recipe, tokenizer=minilm_tokenizer(), embed=embed)
    unit = UNITS[recipe["strategy"]]
    if as_json:
        print_json({"source_path": file.name, **recipe, "unit": unit, "chunks": chunks.to_dicts()})
        return
    note(f"{file.name}: {chunks.height} chunks by {recipe['strategy']}, size {recipe['size']} {unit}, overlap {recipe['overlap']}")
    _print_chunks(chunks)


def _embed(settings: "Settings") -> "Embed":
    from stemma.embedding.models import open_embedder

    return open_embedder(settings.embedding_model, batch_size=settings.embedding_batch_size).embed_passages


def _print_chunks(chunks: "pl.DataFrame") -> None:
    with table("#", "chars", "lines", "page", "tokens", "type", "section", "text") as add:
        for row in chunks.iter_rows(named=True):
            add(
                row["chunk_index"],
                f"{row['char_start']}-{row['char_end']}",
                f"{row['start_line']}-{row['end_line']}",
                None if row["page_start"] is None else f"{row['page_start']}-{row['page_end']}",
                row["n_tokens"],
                row["chunk_type"],
                " > ".join([*row["section_path"], *([row["table_header"]] if row["table_header"] else [])]),
                " ".join(row["content"].split())[:EXCERPT_CHARS],
            )
