"""`stemma documents` and `stemma show`: every document with its status, and one of them, or one of its chunks, in full."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from stemma.cli.console import ExitCode, command, note, print_json, table

if TYPE_CHECKING:
    from stemma.library.listing import SourceRow, Status
    from stemma.store.postgres import Connection

PAGE_SIZE = 500


@command
def documents(
    *,
    failed: Annotated[bool, typer.Option("--failed", help="Only those that failed, each with its message.")] = False,
    status: Annotated[
        Literal["pending", "processing", "ready", "failed", "cancelled"] | None, typer.Option(help="Only those with it.")
    ] = None,
    workspace: Annotated[str | None, typer.Option(help="Only those of this workspace.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array, as GET /api/documents has them.")] = False,
) -> None:
    """List every document, the failed ones too.

    Exits with 1 when a listed document failed.

    \b
    Examples:
      stemma documents
      stemma documents --failed
      stemma documents --json | jq -r '.[] | [.source_path, .status, .error_code] | @tsv'
    """
    from stemma.cli.postgres import corpus_database
    from stemma.settings import load_settings
    from stemma.store.postgres import connect

    with corpus_database(load_settings()) as url, connect(url) as connection:
        rows = list(_every_source(connection, status="failed" if failed else status, workspace=workspace))
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        _print_rows(rows)
    if any(row.status == "failed" for row in rows):
        raise typer.Exit(ExitCode.PROBLEMS)


@command
def show(
    identifier: Annotated[str, typer.Argument(metavar="DOC_OR_CHUNK_ID", help="A doc_id, source_id, chunk_id, or a path in the library.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show a document, or one of its chunks.

    \b
    Examples:
      stemma show handbook/leave.docx
      stemma show 0f3c9a1b2d4e5f60
      stemma show 0f3c9a1b2d4e5f60::3
      stemma show handbook/leave.docx --json | jq '.chunks | length'
    """
    from stemma.cli.home import served_settings
    from stemma.cli.postgres import corpus_database
    from stemma.library.listing import contained_sources
    from stemma.store.postgres import connect

    settings = served_settings()
    with corpus_database(settings) as url, connect(url) as connection:
        document, separator, number = identifier.rpartition("::")
        if separator and number.isdigit():
            row = find_source(connection, document)
            chunk = _chunk(connection, row, identifier)
            print_json(chunk) if as_json else _print_chunk(row, chunk)
            return
        row = find_source(connection, identifier)
        chunks = _chunks(connection, row)
        contained = contained_sources(connection, row.source_id)
    if as_json:
        print_json(asdict(row) | {"contained": [asdict(member) for member in contained], "chunks": chunks})
        return
    from stemma.orchestrator import partition_url

    _print_document(row, contained, chunks, history=partition_url(settings, row.partition_key))


def find_source(connection: "Connection", identifier: str) -> "SourceRow":
    """The source of a doc_id, a source_id or a path. Raises UnknownDocument or SupersededDocument."""
    from stemma.library.listing import source_of

    by_path = connection.execute("SELECT source_id::text FROM sources WHERE source_path = %s", [identifier]).fetchone()
    return source_of(connection, by_path[0] if by_path else identifier)


def _every_source(connection: "Connection", *, status: "Status | None", workspace: str | None) -> "Iterator[SourceRow]":
    from stemma.library.listing import list_sources

    cursor = None
    while True:
        page, cursor = list_sources(connection, status=status, workspace=workspace, after=cursor, limit=PAGE_SIZE)
        yield from page
        if cursor is None:
            return


def _chunks(connection: "Connection", row: "SourceRow") -> list[dict[str, Any]]:
    from psycopg.rows import dict_row

    from sql import load_queries

    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(load_queries("retrieval")["read_chunks"], {"source_id": row.source_id}).fetchall()


def _chunk(connection: "Connection", row: "SourceRow", chunk_id: str) -> dict[str, Any]:
    from stemma.library.lineage import UnknownChunk

    for chunk in _chunks(connection, row):
        if chunk["chunk_id"] == chunk_id:
            return chunk
    raise UnknownChunk(f"{row.source_path} has no chunk {chunk_id}")


def _print_rows(rows: "list[SourceRow]") -> None:
    if not rows:
        note("No documents.")
        return
    with table("status", "document", "chunks", "id", "what happened") as add:
        for row in rows:
            state = f"{row.status} ({row.stage})" if row.status == "processing" and row.stage else row.status
            state = "deleting" if row.deletion_intent else "deleted, file kept" if row.excluded else state
            happened = _what_failed(row) or row.warning_code
            add(state, row.source_path, row.n_chunks, row.doc_id or row.source_id, happened)


def _what_failed(row: "SourceRow") -> str | None:
    if row.error_code is None:
        return None
    return f"{row.error_code}: {row.error_message}" + (f" ({row.failure})" if row.failure else "")


def _print_document(row: "SourceRow", contained: "list[SourceRow]", chunks: list[dict[str, Any]], *, history: str) -> None:
    facts = {
        "title": row.title, "status": row.status, "error": _what_failed(row),
        "warning": row.warning_code, "lies in": row.container_path, "workspace": row.workspace, "doc_id": row.doc_id, "source_id": row.source_id,
        "sha256": row.content_hash, "parser": row.parser, "pages": row.n_pages or None, "characters": row.n_chars, "chunks": row.n_chunks,
        "ingested": row.ingested_at and row.ingested_at.isoformat(timespec="seconds"), "history": history,
    }  # fmt: skip
    print(row.source_path)
    for name, value in facts.items():
        if value is not None:
            print(f"  {name:<10} {value}")
    if contained:
        print()
        with table("status", "holds", "type", "bytes", "id") as add:
            for member in contained:
                add(
                    member.status, member.source_path, member.media_type or member.file_type, member.size, member.doc_id or member.source_id
                )
    if not chunks:
        return
    print()
    with table("chunk", "lines", "headings", "text") as add:
        for chunk in chunks:
            beginning = " ".join(chunk["content"].split())[:80]
            add(chunk["chunk_id"], f"{chunk['start_line']}-{chunk['end_line']}", " › ".join(chunk["section_path"]), beginning)


def _print_chunk(row: "SourceRow", chunk: dict[str, Any]) -> None:
    print(f"{row.source_path} · {' › '.join(chunk['section_path'])}" if chunk["section_path"] else row.source_path)
    pages = f"pages {chunk['page_start']}-{chunk['page_end']}, " if chunk["page_start"] is not None else ""
    print(f"  {chunk['chunk_id']}, {pages}lines {chunk['start_line']}-{chunk['end_line']}, chars {chunk['char_start']}-{chunk['char_end']}")
    if chunk["context"]:
        print(f"  context: {' '.join(chunk['context'].split())}")
    print()
    print(chunk["content"])
