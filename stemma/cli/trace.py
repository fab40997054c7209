"""`stemma trace`: the whole line from a passage to the bytes it came from."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stemma.cli.console import command, print_json

if TYPE_CHECKING:
    from stemma.service.lineage import LinkedLineage

_CHUNK_ID = re.compile(r"[0-9a-f]{16}::[0-9]+")  # a path may hold `::` too
ON_DISK = {
    "same": "the file on disk still has it",
    "changed": "the file on disk has other bytes now",
    "gone": "the file is no longer there",
    "unreadable": "the file on disk cannot be read now",
    "contained": "the bytes were taken out of its container",
}


@command
def trace(
    identifier: Annotated[str, typer.Argument(metavar="CHUNK_OR_DOC_ID", help="A chunk_id, doc_id, source_id, or a path in the library.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, as GET /api/chunks/{chunk_id}/lineage has it.")] = False,
) -> None:
    """Show where a passage comes from.

    The chunk and its place in the text, the version of the document, the file and whether its bytes are still those, the settings and
    models of every stage, the run that made it, and where Dagster and the page show it. Messages cannot be traced: this release keeps none.

    \b
    Examples:
      stemma trace 0f3c9a1b2d4e5f60::3
      stemma trace handbook/leave.docx
      stemma trace 0f3c9a1b2d4e5f60::3 --json | jq -r .file.content_hash
    """
    from stemma.cli.documents import find_source
    from stemma.cli.home import served_settings
    from stemma.cli.postgres import corpus_database
    from stemma.library.lineage import trace as trace_back
    from stemma.service.lineage import with_links
    from stemma.store.postgres import connect

    settings = served_settings()
    with corpus_database(settings) as url, connect(url) as connection:
        chunk_id = identifier if _CHUNK_ID.fullmatch(identifier) else None
        stored = trace_back(connection, chunk_id or str(find_source(connection, identifier).source_id))
    linked = with_links(stored.compared(settings.library), settings)
    print_json(linked.model_dump(mode="json")) if as_json else _print(linked)


def _print(lineage: "LinkedLineage") -> None:
    chunk, document, file = lineage.chunk, lineage.document, lineage.file
    if chunk:
        pages = f"pages {chunk.page_start}-{chunk.page_end}, " if chunk.page_start is not None else ""
        exact = "the text there is the chunk" if chunk.is_exact else "THE TEXT THERE IS NOT THE CHUNK"
        _section(
            f"chunk      {chunk.chunk_id}",
            text=" ".join(chunk.content.split())[:200],
            headings=" › ".join(chunk.section_path) or None,
            span=f"{pages}lines {chunk.start_line}-{chunk.end_line}, chars {chunk.char_start}-{chunk.char_end}: {exact}",
            context=chunk.context and " ".join(chunk.context.split()),
            text_hash=chunk.text_hash,
            input_hash=chunk.input_hash,
        )
    _section(
        f"document   {document.doc_id}",
        title=document.title,
        source_id=document.source_id,
        version=f"publication {document.publication_id}, live since {document.published_at:%Y-%m-%d %H:%M:%S} UTC"
        if document.published_at
        else f"publication {document.publication_id}",
        contents=f"{document.n_chars} characters in {document.n_chunks} chunks",
        warning=document.warning_code,
    )
    if file:
        _section(
            f"file       {file.source_path}",
            lies_in=file.container_path,
            sha256=f"{file.content_hash}: {ON_DISK[file.on_disk]}",
            now=_other_hash(lineage),
        )
    for stage in lineage.recipe:
        settings = ", ".join(f"{name}={value}" for name, value in stage.settings.items())
        _section(f"{stage.stage:<15} {stage.made_by}", settings=settings or None, recipe=stage.fingerprint)
    _section(f"run        {document.run_id}", run=lineage.links.run, history=lineage.links.partition, page=lineage.links.page)


def _other_hash(lineage: "LinkedLineage") -> str | None:
    file = lineage.file
    return file.content_hash_on_disk if file and file.on_disk == "changed" else None


def _section(heading: str, /, **facts: Any) -> None:
    print(heading)
    for name, value in facts.items():
        if value is not None:
            print(f"  {name:<10} {value}")
