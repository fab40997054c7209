"""Staging: the rows of a bundle in temporary tables, beside the corpus and seen by nobody, while they are proved."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from psycopg import sql

from sql import load_queries
from stemma.bundles.contents import Bundled, Contents
from stemma.bundles.records import BundledChunk, BundledDocument, BundledSource
from stemma.library.paths import DEFAULT_WORKSPACE, absolute_source, partition_key, workspace_key
from stemma.store.postgres import Connection
from stemma.store.publications import compressed

CHUNKS_AT_ONCE = 2_000
TEXT_AT_ONCE = 20_000_000  # characters

_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # PostgreSQL's documentation, "COPY", binary format
_COPY_END = (-1).to_bytes(2, "big", signed=True)

_DOCUMENT = (
    "position", "doc_id", "source_id", "source_path", "source", "file_name", "file_type", "document_type", "content_hash", "title", "text",
    "blocks", "pages", "document_metadata", "parser", "parser_version", "chunker", "extraction", "used_ocr", "ocr_pages", "warning_code",
    "n_chars", "n_pages", "n_chunks", "parsing_fingerprint", "chunking_fingerprint", "contextualizing_fingerprint", "document_output_hash",
    "output_hash", "run_id", "file_created_at", "file_modified_at", "ingested_at", "language", "published_at", "first_original_index",
)  # fmt: skip
_CHUNK = (
    "position", "chunk_index", "chunk_id", "doc_id", "original_index", "content", "context", "contextualized_content", "char_start",
    "char_end", "start_line", "end_line", "page_start", "page_end", "section_path", "chunk_type", "n_tokens", "text_hash", "input_hash",
    "metadata", "created_at",
)  # fmt: skip
_SOURCE = (
    "source_id", "kind", "source_path", "partition_key", "workspace", "disk_path", "file_type", "hashed_at", "content_hash", "excluded_hash",
    "warning_code", "dedup_key", "file_created_at", "file_modified_at", "created_at", "updated_at", "container_id", "file_id", "member_path",
    "media_type", "member_hash", "listed_output",
)  # fmt: skip
_STAGE = ("source_id", "stage", "input_version", "fingerprint", "output_hash", "result_key", "run_id", "updated_at")
_ASSET = ("position", "asset_index", "kind", "page", "char_start", "char_end", "caption", "picture")
_FIGURE = ("content_hash", "picture", "revision", "sha256", "mime_type", "width", "height", "made_at")


class Staging:
    """The temporary tables of one connection, in autocommit."""

    def __init__(self, connection: Connection, library: Path) -> None:
        self._connection = connection
        self._library = library
        connection.execute(load_queries("restoring")["create_staging"])

    def fill_catalogue(self, contents: Contents) -> None:
        """Workspaces, sources, runs and figures. Raises BundleInvalid."""
        self._copy("restored_workspaces", ("key", "name", "created_at"), ((w.key, w.name, w.created_at) for w in contents.workspaces()))
        self._copy("restored_sources", _SOURCE, map(_source, contents.sources()))
        self._copy(
            "restored_runs",
            ("run_id", "settings", "fingerprints", "epoch", "created_at"),
            ((run.run_id, _json(run.settings), _json(run.fingerprints), run.epoch, run.created_at) for run in contents.runs()),
        )
        self._copy("restored_figures", _FIGURE, (tuple(getattr(figure, name) for name in _FIGURE) for figure in contents.figures()))

    def add(self, documents: Sequence[tuple[int, Bundled]]) -> None:
        """Documents, each with a position of its own, with their chunks and vectors."""
        self._copy("restored_documents", _DOCUMENT, (self._document(position, bundled) for position, bundled in documents))
        stages = (
            (bundled.document.source_id, *(getattr(stage, name) for name in _STAGE[1:]))
            for _, bundled in documents
            for stage in bundled.document.stages
        )
        self._copy("restored_stages", _STAGE, stages)
        assets = (
            (position, *(getattr(asset, name) for name in _ASSET[1:]))
            for position, bundled in documents
            for asset in bundled.document.assets
        )
        self._copy("restored_assets", _ASSET, assets)
        self._copy("restored_chunks", _CHUNK, (self._chunk(at, each.document, chunk) for at, each in documents for chunk in each.chunks))
        self._copy_vectors(documents)

    def add_history(self, contents: Contents) -> None:
        """Conversations, if they were taken along. Raises BundleInvalid."""
        self._copy("restored_history", ("member", "line"), contents.history())

    def index(self) -> None:
        """Everything is staged."""
        self._connection.execute(load_queries("restoring")["index_staging"])

    def _copy(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns)))
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def _copy_vectors(self, documents: Sequence[tuple[int, Bundled]]) -> None:
        with self._connection.cursor() as cursor, cursor.copy("COPY restored_vectors FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(_COPY_HEADER)
            for position, bundled in documents:
                if bundled.chunks:
                    copy.write(vector_rows(position, bundled.vectors, len(bundled.chunks)))
            copy.write(_COPY_END)

    def _document(self, position: int, bundled: Bundled) -> tuple[Any, ...]:
        document = bundled.document
        values = {name: getattr(document, name) for name in _DOCUMENT if name in BundledDocument.model_fields} | {
            "position": position,
            "source": self._absolute(document),
            "blocks": compressed([block.model_dump() for block in document.blocks]),
            "pages": compressed([page.model_dump() for page in document.pages]),
            "document_metadata": _json(document.document_metadata),
            "first_original_index": bundled.chunks[0].original_index if bundled.chunks else 0,
        }
        return tuple(values[name] for name in _DOCUMENT)

    def _chunk(self, position: int, document: BundledDocument, chunk: BundledChunk) -> tuple[Any, ...]:
        record = chunk.metadata.model_copy(update={"source": self._absolute(document)})
        values = {name: getattr(chunk, name) for name in _CHUNK[1:]} | {
            "position": position,
            "metadata": _json(record.model_dump(mode="json")),
        }
        return tuple(values[name] for name in _CHUNK)

    def _absolute(self, document: BundledDocument) -> str:
        """Where the document lies on this machine; one from outside of any library keeps where it lay."""
        if document.disk_path is None:
            return document.source
        return absolute_source(self._library, bytes.fromhex(document.disk_path), document.source_path)


def vector_rows(position: int, vectors: bytes, n_rows: int) -> bytes:
    """Rows (position, chunk_index, vector) in the binary format of COPY, from little-endian float32: bit by bit the same numbers."""
    matrix = np.frombuffer(vectors, dtype="<f4").reshape(n_rows, -1)
    dimension = matrix.shape[1]
    rows = np.zeros(
        n_rows,
        dtype=[("columns", ">i2"), ("size_a", ">i4"), ("position", ">i8"), ("size_b", ">i4"), ("chunk_index", ">i4"), ("size_c", ">i4"),
               ("dimension", ">i2"), ("unused", ">i2"), ("numbers", ">f4", (dimension,))],
    )  # fmt: skip
    rows["columns"], rows["size_a"], rows["size_b"], rows["size_c"] = 3, 8, 4, 4 + 4 * dimension
    rows["position"], rows["chunk_index"], rows["dimension"], rows["numbers"] = position, np.arange(n_rows), dimension, matrix
    return rows.tobytes()


def _source(source: BundledSource) -> tuple[Any, ...]:
    within = source.source_path.split("//")[0]
    values = {name: getattr(source, name) for name in _SOURCE if name in BundledSource.model_fields} | {
        "partition_key": partition_key(source.source_path),
        "workspace": DEFAULT_WORKSPACE if source.source_path.startswith("/") else workspace_key(within),
        "disk_path": None if source.disk_path is None else bytes.fromhex(source.disk_path),
    }
    return tuple(values[name] for name in _SOURCE)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
