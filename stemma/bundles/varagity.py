"""Bundles of the older system (`varagity-backup` 1), rewritten as one of ours before anything is restored.

They hold chunks and vectors and no text. The text of a document is then its chunks one below the other, so that every offset is exact; what
overlapped stands in it twice. They name no recipe, so all of it is stale: where the files are at hand, the next runs read them.
"""

import json
import re
import sqlite3
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, cast
from uuid import UUID, uuid5

import structlog
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from stemma.bundles.archive import Archive, BundleWriter, gathered
from stemma.bundles.errors import BundleInvalid
from stemma.bundles.manifest import CHUNKS, DOCUMENTS, FIGURES, RUNS, SOURCES, STEMMA, VECTORS, VERSION, WORKSPACES
from stemma.bundles.records import Sha256, Text, parse
from stemma.chunking.tokenizer import minilm_tokenizer
from stemma.library.paths import document_id, file_type, source_name
from stemma.parsing.document import ParsedDocument
from stemma.stages.situated import reader_hash
from stemma.store.chunk_record import ChunkRecord, chunk_id

PARSER = "varagity"
_NAMESPACE = UUID("6f7a1f6e-3a0b-5d52-9c1e-0c1c4a1f9b10")  # so that restoring the same bundle twice gives the same sources

log = structlog.get_logger()


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    doc_id: str = Field(pattern=r"^[0-9a-f]{16}$")
    source: Text = Field(min_length=1)
    file_type: Text = ""
    content_hash: Sha256
    n_chunks: int = Field(ge=0)
    ingested_at: AwareDatetime
    relative_path: Text | None


class _Metadata(BaseModel):
    """The fields of the older record that ours has; later ones may be absent."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    page: int | None = None
    heading_path: Text | None = None
    chunk_size: int = 0
    chunk_overlap: int = 0
    chunking_strategy: Text = ""
    embedding_model: Text = ""
    n_tokens: int | None = Field(default=None, ge=0)
    extraction: str = Field(default="text", pattern="^(text|ocr|ocr_fallback)$")
    file_created_at: AwareDatetime | None = None
    file_modified_at: AwareDatetime | None = None


class _Chunk(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    chunk_id: Text
    doc_id: str
    original_index: int = Field(ge=0, lt=2**62)
    chunk_index: int = Field(ge=0, lt=2**31)
    content: Text = Field(min_length=1)
    context: Text | None
    contextualized_content: Text
    metadata: _Metadata
    created_at: AwareDatetime


@dataclass(frozen=True)
class _Placed:
    """A document that is taken over."""

    row: _Document
    source_path: str
    """Below the library, or absolute for a document from outside of it."""
    first: int | None
    """None: its numbers are those of another document too, and it gets new ones."""


@contextmanager
def rewritten(archive: Archive, home: Path) -> Generator[IO[bytes]]:
    """The bundle in our own format, in a nameless file that ends with the block. Raises BundleInvalid."""
    folder = home / "spool"
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=folder) as scratch,
        closing(sqlite3.connect(Path(scratch) / "rows")) as rows,
        tempfile.TemporaryFile(dir=folder) as matrix,
        tempfile.TemporaryFile(dir=folder) as target,
    ):
        _collect(archive, rows)
        for piece in archive.pieces(VECTORS):
            matrix.write(piece)
        with BundleWriter(cast("IO[bytes]", target)) as writer:
            _write(archive, rows, cast("IO[bytes]", matrix), writer)
        target.seek(0)
        yield cast("IO[bytes]", target)


def _collect(archive: Archive, rows: sqlite3.Connection) -> None:
    """Documents and chunks by their keys, so that they can be read in any order whatever their number."""
    rows.executescript(
        """
        CREATE TABLE documents (doc_id TEXT PRIMARY KEY, line BLOB);
        CREATE TABLE chunks (doc_id TEXT, chunk_index INTEGER, original_index INTEGER, position INTEGER, line BLOB,
                             PRIMARY KEY (doc_id, chunk_index));
        """
    )
    n_documents = n_chunks = 0
    try:
        for n_documents, line in enumerate(archive.lines(DOCUMENTS), start=1):
            document = parse(_Document, line, f"{DOCUMENTS} line {n_documents}")
            rows.execute("INSERT INTO documents VALUES (?, ?)", (document.doc_id, line))
        for n_chunks, line in enumerate(archive.lines(CHUNKS), start=1):
            chunk = parse(_Chunk, line, f"{CHUNKS} line {n_chunks}")
            if chunk.chunk_id != chunk_id(chunk.doc_id, chunk.chunk_index):
                raise BundleInvalid(f"{CHUNKS} line {n_chunks}, chunk_id", "it is not that of its document and index")
            rows.execute(
                "INSERT INTO chunks VALUES (?, ?, ?, ?, ?)", (chunk.doc_id, chunk.chunk_index, chunk.original_index, n_chunks - 1, line)
            )
    except sqlite3.IntegrityError:
        raise BundleInvalid(f"line {n_chunks or n_documents} of {CHUNKS if n_chunks else DOCUMENTS}", "a row is there twice") from None
    counts = archive.manifest.counts
    if (n_documents, n_chunks) != (counts.documents, counts.chunks):
        raise BundleInvalid(
            "counts", f"{counts.documents} documents and {counts.chunks} chunks are recorded, {n_documents} and {n_chunks} are there"
        )
    orphan = rows.execute("SELECT doc_id FROM chunks WHERE doc_id NOT IN (SELECT doc_id FROM documents) ORDER BY doc_id LIMIT 1").fetchone()
    if orphan:
        raise BundleInvalid(CHUNKS, f"no document has the doc_id {orphan[0][:40]!r}")


def _write(archive: Archive, rows: sqlite3.Connection, matrix: IO[bytes], writer: BundleWriter) -> None:
    placed = list(_placed(rows))
    (highest,) = rows.execute("SELECT coalesce(max(original_index), -1) FROM chunks").fetchone()
    model, n_bytes = archive.manifest.embedding_model, archive.manifest.embedding_dim * 4
    n_chunks = 0

    def documents() -> Iterator[bytes]:
        nonlocal n_chunks
        for document in placed:
            chunks = list(_chunks_of(rows, document.row.doc_id))
            n_chunks += len(chunks)
            yield _line(_document_row(document, [chunk for _, chunk in chunks]))

    def chunks() -> Iterator[bytes]:
        following = highest + 1
        for document in placed:
            found = [chunk for _, chunk in _chunks_of(rows, document.row.doc_id)]
            yield from map(_line, _chunk_rows(document, found, following if document.first is None else None, model))
            following += len(found) if document.first is None else 0

    def vectors() -> Iterator[bytes]:
        for document in placed:
            for position, _ in _chunks_of(rows, document.row.doc_id):
                matrix.seek(position * n_bytes)
                yield matrix.read(n_bytes)

    writer.member(WORKSPACES, iter(()))
    writer.member(SOURCES, gathered(_line(_source_row(document)) for document in placed))
    writer.member(RUNS, iter(()))
    writer.member(FIGURES, iter(()))
    writer.member(DOCUMENTS, gathered(documents()))
    writer.member(CHUNKS, gathered(chunks()))
    writer.member(VECTORS, vectors(), packed=False)
    ours = archive.manifest.model_dump(mode="json", exclude={"schema_version"}) | {
        "format": STEMMA,
        "version": VERSION,
        "stale": True,
        "counts": {"documents": len(placed), "chunks": n_chunks, "sources": len(placed)},
        "members": [member.model_dump() for member in writer.members],
    }
    writer.finish(_line(ours))


def _placed(rows: sqlite3.Connection) -> Iterator[_Placed]:
    """The documents in the order of their chunks' numbers, those that need new ones last; of several versions of one path the latest.

    The older system kept a version that an edit had replaced, and two runs at once could give a number twice.
    """
    ordered = rows.execute(
        """
        SELECT d.line, min(c.original_index), max(c.original_index), coalesce(min(c.original_index - c.before), 1), count(c.doc_id)
          FROM documents AS d
          LEFT JOIN (SELECT doc_id, original_index, lag(original_index) OVER (PARTITION BY doc_id ORDER BY chunk_index) AS before
                       FROM chunks) AS c USING (doc_id)
         GROUP BY d.doc_id ORDER BY min(c.original_index), d.doc_id
        """
    )
    latest: dict[str, tuple[_Document, int | None, int | None, bool]] = {}
    n_replaced = 0
    for line, first, last, step, n_chunks in ordered:
        document = _Document.model_validate_json(line)
        if document.n_chunks != n_chunks:
            raise BundleInvalid(CHUNKS, f"{n_chunks} chunks of {document.doc_id}, {document.n_chunks} are stated")
        path = _path(document)
        n_replaced += path in latest
        if path not in latest or document.ingested_at >= latest[path][0].ingested_at:
            latest.pop(path, None)
            latest[path] = document, first, last, step > 0
    if n_replaced:
        log.warning("versions that a later one replaced are left out", documents=n_replaced)
    highest, renumbered = -1, list[_Placed]()
    for path, (document, first, last, rising) in sorted(
        latest.items(), key=lambda item: (item[1][1] is not None, item[1][1] or 0, item[0])
    ):
        if first is None:
            yield _Placed(document, path, 0)
        elif last is not None and rising and first > highest:
            highest = last
            yield _Placed(document, path, first)
        else:
            renumbered.append(_Placed(document, path, None))
    yield from renumbered


def _path(document: _Document) -> str:
    """Where the document lies in a library; its absolute path if it came from outside of one."""
    relative = document.relative_path
    if relative is None:
        return "/" + re.sub("/+", "/", document.source).removeprefix("/")
    parts = relative.split("/")
    if "\\" in relative or any(part in ("", ".", "..") for part in parts):
        raise BundleInvalid("relative_path", f"{relative[:100]!r} leads out of the library")
    if document.doc_id != document_id(relative, document.content_hash):
        raise BundleInvalid("doc_id", f"{document.doc_id} is not that of {relative[:100]!r} and its bytes")
    return "/".join(source_name(part.encode()) for part in parts)


def _chunks_of(rows: sqlite3.Connection, doc_id: str) -> Iterator[tuple[int, _Chunk]]:
    """(row of the matrix, chunk), by index. Raises BundleInvalid when one is missing between others."""
    found = rows.execute("SELECT position, chunk_index, line FROM chunks WHERE doc_id = ? ORDER BY chunk_index", (doc_id,))
    for expected, (position, index, line) in enumerate(found):
        if index != expected:
            raise BundleInvalid(CHUNKS, f"chunk {expected} of {doc_id} is missing")
        yield position, _Chunk.model_validate_json(line)


def _doc_id(document: _Placed) -> str:
    """Its own, unless the path has another spelling here."""
    if document.row.relative_path in (None, document.source_path):
        return document.row.doc_id
    return document_id(document.source_path, document.row.content_hash)


def _source_row(document: _Placed) -> dict[str, Any]:
    row, moment = document.row, document.row.ingested_at.isoformat()
    return {
        "source_id": str(uuid5(_NAMESPACE, document.source_path)), "kind": "file", "source_path": document.source_path,
        "disk_path": None if row.relative_path is None else row.relative_path.encode().hex(), "file_type": file_type(document.source_path),
        "hashed_at": moment, "hashed_size": None, "content_hash": row.content_hash, "excluded_hash": None, "status": "ready",
        "warning_code": None, "dedup_key": None, "file_created_at": None, "file_modified_at": None, "created_at": moment, "updated_at": moment,
    }  # fmt: skip


def _document_row(document: _Placed, chunks: list[_Chunk]) -> dict[str, Any]:
    row = document.row
    text = _text(chunks)
    first = chunks[0].metadata if chunks else _Metadata()
    parsed = ParsedDocument(text, PARSER, "1", extraction=cast("Any", first.extraction))
    contexts_output = sha256(f"varagity {row.doc_id}".encode()).hexdigest()
    output = reader_hash(document.source_path, row.content_hash, parsed.output_hash, contexts_output)
    inputs = {
        "documents": (row.content_hash, parsed.output_hash), "chunks": (parsed.output_hash, contexts_output),
        "contextualized_chunks": (contexts_output, contexts_output), "embeddings": (contexts_output, contexts_output),
        "bm25_index": (contexts_output, contexts_output), "corpus": (output, output),
    }  # fmt: skip
    moment = row.ingested_at.isoformat()
    file_name = document.source_path.rsplit("/", 1)[-1]
    return {
        "doc_id": _doc_id(document), "source_id": str(uuid5(_NAMESPACE, document.source_path)), "source_path": document.source_path,
        "disk_path": None if row.relative_path is None else row.relative_path.encode().hex(), "source": row.source, "file_name": file_name,
        "file_type": file_type(document.source_path), "document_type": "FILE", "content_hash": row.content_hash, "title": file_name[:500],
        "document_metadata": {}, "parser": PARSER, "parser_version": "1", "chunker": first.chunking_strategy, "extraction": first.extraction,
        "used_ocr": first.extraction != "text", "ocr_pages": [], "warning_code": None, "n_chars": len(text), "n_pages": 0,
        "n_chunks": len(chunks), "parsing_fingerprint": "", "chunking_fingerprint": "", "contextualizing_fingerprint": "",
        "document_output_hash": parsed.output_hash, "output_hash": output, "run_id": PARSER,
        "file_created_at": _iso(first.file_created_at), "file_modified_at": _iso(first.file_modified_at), "ingested_at": moment,
        "published_at": moment,
        "stages": [
            {"stage": stage, "input_version": given, "fingerprint": "", "output_hash": made, "result_key": "", "run_id": PARSER, "updated_at": moment}
            for stage, (given, made) in inputs.items()
        ],
        "assets": [], "text": text, "blocks": [], "pages": [],
    }  # fmt: skip


def _chunk_rows(document: _Placed, chunks: list[_Chunk], renumbered_from: int | None, model: str) -> Iterable[dict[str, Any]]:
    row, start, line = document.row, 0, 1
    doc_id = _doc_id(document)
    counted = minilm_tokenizer().count([chunk.content for chunk in chunks])
    for chunk, n_tokens in zip(chunks, counted, strict=True):
        metadata = chunk.metadata
        section_path = metadata.heading_path.split(" > ") if metadata.heading_path else []
        end_line = line + chunk.content.count("\n")
        columns: dict[str, Any] = {
            "chunk_id": chunk_id(doc_id, chunk.chunk_index), "doc_id": doc_id,
            "original_index": chunk.original_index if renumbered_from is None else renumbered_from + chunk.chunk_index,
            "chunk_index": chunk.chunk_index, "content": chunk.content, "context": chunk.context,
            "contextualized_content": chunk.contextualized_content, "char_start": start, "char_end": start + len(chunk.content),
            "start_line": line, "end_line": end_line, "page_start": metadata.page, "page_end": metadata.page, "section_path": section_path,
            "chunk_type": "prose", "text_hash": sha256(chunk.content.encode()).hexdigest(), "created_at": chunk.created_at.isoformat(),
            "n_tokens": metadata.n_tokens if metadata.n_tokens is not None else n_tokens,
        }  # fmt: skip
        record = columns | {
            "source": row.source, "source_path": document.source_path, "file_name": document.source_path.rsplit("/", 1)[-1],
            "file_type": file_type(document.source_path), "page": metadata.page, "heading_path": metadata.heading_path,
            "chunk_size": metadata.chunk_size, "chunk_overlap": metadata.chunk_overlap, "chunking_strategy": metadata.chunking_strategy,
            "embedding_model": metadata.embedding_model or model, "token_counter": "cl100k" if metadata.n_tokens is not None else "minilm",
            "content_hash": row.content_hash, "extraction": metadata.extraction, "file_created_at": _iso(metadata.file_created_at),
            "file_modified_at": _iso(metadata.file_modified_at),
        }  # fmt: skip
        ChunkRecord.model_validate(record)
        yield columns | {"input_hash": sha256(chunk.contextualized_content.encode()).hexdigest(), "metadata": record}
        start += len(chunk.content) + len(_BETWEEN)
        line = end_line + _BETWEEN.count("\n")


_BETWEEN = "\n\n"


def _text(chunks: list[_Chunk]) -> str:
    return _BETWEEN.join(chunk.content for chunk in chunks)


def _iso(moment: Any) -> str | None:
    return None if moment is None else moment.isoformat()


def _line(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()
