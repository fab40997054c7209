"""Publishing: one transaction turns a finished document into what readers see, or finds that it is out of date."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import polars as pl
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from sql import load_queries
from stemma.errors import EmbeddingMissing
from stemma.parsing.document import ParsedDocument
from stemma.settings import Fingerprints, Settings
from stemma.store.chunk_record import ChunkRecord
from stemma.store.embedding_indexes import EmbeddingIndex
from stemma.store.locks import lock_sources
from stemma.store.postgres import Connection

Decision = Literal["published", "unchanged", "abandoned"]

_CHUNK_COLUMNS = (
    "publication_id", "chunk_index", "chunk_id", "doc_id", "original_index", "content", "context", "contextualized_content", "char_start",
    "char_end", "start_line", "end_line", "page_start", "page_end", "section_path", "chunk_type", "n_tokens", "text_hash", "input_hash",
    "metadata", "created_at",
)  # fmt: skip
TITLE_CHARS = 500


@dataclass(frozen=True)
class FinishedDocument:
    """A document with everything that its publication writes."""

    publication_id: int
    source_id: str
    source_path: str
    source: str
    """Absolute path, as provenance."""
    doc_id: str
    content_hash: str
    document: ParsedDocument
    chunks: pl.DataFrame
    """CHUNK_SCHEMA joined with CONTEXT_SCHEMA by chunk_index, in order."""
    first_original_index: int
    document_output_hash: str
    output_hash: str
    """Of everything that a reader sees: path, bytes, document and contextualized chunks. It is also what the `corpus` row of
    stage_state was made from, so that an edit, a rename and a move all publish."""
    file_created_at: datetime | None
    file_modified_at: datetime | None

    @property
    def file_name(self) -> str:
        """The last component of the path."""
        return self.source_path.rsplit("/", 1)[-1]

    @property
    def title(self) -> str:
        """The title its content states, or the file's name; cut to what the column holds."""
        return (self.document.title or self.file_name)[:TITLE_CHARS]


@dataclass(frozen=True)
class Recipe:
    """How the documents of a run are made."""

    run_id: str
    epoch: int
    settings: Settings
    wanted: Fingerprints


def reserve_original_indexes(connection: Connection, n: int) -> int:
    """The first of a block of `n` numbers that no chunk ever had; the connection must not be inside a transaction it may roll back."""
    row = connection.execute(load_queries("publications")["reserve_original_indexes"], {"n": n}).fetchone()
    assert row is not None
    connection.commit()
    return row[0]


def publish_document(
    connection: Connection, finished: FinishedDocument, recipe: Recipe, indexes: Sequence[EmbeddingIndex], *, now: datetime
) -> Decision:
    """Publish the document in one transaction, or decide that it may not be.

    Locks, in this order everywhere: corpus_state FOR SHARE, then the source. `abandoned`: the attempt is closed, the source
    is gone, deleted or moved, a newer publication was decided, the epoch is another, the active keyword index was switched,
    or another source's live version still holds the doc_id; the next walk finds what is stale. `unchanged`: the live
    version is equal and only its recipe columns were updated.

    Raises EmbeddingMissing when a chunk has no vector for the active index; nothing is written then.
    """
    queries = load_queries("publications")
    with connection.transaction():
        with connection.cursor(row_factory=dict_row) as cursor:
            state = cursor.execute(queries["lock_corpus_state"]).fetchone()
            assert state is not None
            lock_sources(connection, [UUID(finished.source_id)])
            parameters = _parameters(finished, recipe, now=now) | {"active_sparse_index": state["active_sparse_index"]}
            facts = cursor.execute(queries["publication_facts"], parameters).fetchone()
        if facts is None or not facts["attempt_open"]:
            connection.execute(queries["abandon_publication"], parameters)
            return "abandoned"
        equal = facts["live_doc_id"] == finished.doc_id and facts["live_output_hash"] == finished.output_hash
        out_of_date = (
            not facts["claimable"]
            or facts["source_path"] != finished.source_path
            or finished.publication_id <= facts["last_publication_id"]
            or state["epoch"] != recipe.epoch
            or facts["doc_id_taken"]
        )
        if out_of_date or not (equal or facts["sparse_covered"] or finished.chunks.is_empty()):
            _close_abandoned(connection, parameters)
            return "abandoned"
        # Attempts, publications, sources: everyone who closes attempts writes in this order.
        connection.execute(queries["close_attempt"], parameters)
        if equal:
            parameters["live_publication_id"] = facts["live_publication_id"]
            connection.execute(queries["update_recipe"], parameters)
            connection.execute(queries["abandon_publication"], parameters)
            _add_vectors(connection, finished, indexes, state["active_embedding_index"], facts["live_publication_id"])
        else:
            connection.execute(queries["supersede"], parameters)
            connection.execute(queries["insert_document"], parameters)
            _insert_assets(connection, finished)
            _insert_chunks(connection, finished, recipe, indexes, state["active_embedding_index"], now=now)
            _add_vectors(connection, finished, indexes, state["active_embedding_index"], finished.publication_id)
            connection.execute(queries["go_live"], parameters)
        connection.execute(queries["record_corpus"], parameters)
        connection.execute(queries["settle_source"], parameters)
    return "unchanged" if equal else "published"


def _parameters(finished: FinishedDocument, recipe: Recipe, *, now: datetime) -> dict[str, Any]:
    document = finished.document
    return {
        "publication_id": finished.publication_id,
        "source_id": finished.source_id,
        "doc_id": finished.doc_id,
        "run_id": recipe.run_id,
        "source": finished.source,
        "file_name": finished.file_name,
        "content_hash": finished.content_hash,
        "title": finished.title,
        "text": document.text,
        "blocks": compressed([asdict(block) for block in document.blocks]),
        "pages": compressed([asdict(page) for page in document.pages]),
        "metadata": Jsonb(dict(document.metadata)),
        "parser": document.parser,
        "parser_version": document.parser_version,
        "chunker": recipe.settings.chunking_strategy,
        "extraction": document.extraction,
        "used_ocr": document.used_ocr,
        "ocr_pages": list(document.ocr_pages),
        "warning_code": document.warning,
        "n_chars": len(document.text),
        "n_pages": len(document.pages),
        "n_chunks": finished.chunks.height,
        "parsing": recipe.wanted.parsing,
        "chunking": recipe.wanted.chunking,
        "contextualizing": recipe.wanted.contextualizing,
        "document_output_hash": finished.document_output_hash,
        "output_hash": finished.output_hash,
        "now": now,
    }


def compressed(value: Any) -> bytes:
    """The value as zlib-compressed JSON, as `documents.blocks` and `documents.pages` hold it."""
    return zlib.compress(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def decompressed(data: bytes) -> Any:
    """What `compressed` was given."""
    return json.loads(zlib.decompress(data))


def _close_abandoned(connection: Connection, parameters: dict[str, Any]) -> None:
    connection.execute(
        load_queries("claims")["release_attempts"], parameters | {"source_ids": [parameters["source_id"]], "state": "abandoned"}
    )


def _insert_assets(connection: Connection, finished: FinishedDocument) -> None:
    if not finished.document.assets:
        return
    with connection.cursor() as cursor:
        cursor.executemany(
            """
            INSERT INTO document_assets (publication_id, asset_index, kind, page, char_start, char_end, caption)
            VALUES (%s, %s, %s, %s, %s, %s, %s)
            """,
            [
                (finished.publication_id, index, asset.kind, asset.page, asset.char_start, asset.char_end, asset.caption)
                for index, asset in enumerate(finished.document.assets)
            ],
        )


def _insert_chunks(
    connection: Connection,
    finished: FinishedDocument,
    recipe: Recipe,
    indexes: Sequence[EmbeddingIndex],
    active: int | None,
    *,
    now: datetime,
) -> None:
    spec = next((index.spec for index in indexes if index.embedding_index_id == active), None)
    copy = sql.SQL("COPY chunks ({}) FROM STDIN").format(sql.SQL(", ").join(map(sql.Identifier, _CHUNK_COLUMNS)))
    with connection.cursor() as cursor, cursor.copy(copy) as rows:
        for row in finished.chunks.iter_rows(named=True):
            chunk = _chunk_record(row, finished, recipe, spec.model if spec else "", now=now)
            values = chunk.model_dump() | {
                "publication_id": finished.publication_id,
                "input_hash": spec.input_hash(chunk.contextualized_content) if spec else chunk.text_hash,
                "metadata": Jsonb(chunk.model_dump(mode="json")),
            }
            rows.write_row([values[column] for column in _CHUNK_COLUMNS])


def _chunk_record(row: dict[str, Any], finished: FinishedDocument, recipe: Recipe, model: str, *, now: datetime) -> ChunkRecord:
    settings = recipe.settings
    return ChunkRecord(
        doc_id=finished.doc_id,
        chunk_id=f"{finished.doc_id}::{row['chunk_index']}",
        original_index=finished.first_original_index + row["chunk_index"],
        source=finished.source,
        source_path=finished.source_path,
        file_name=finished.file_name,
        file_type=finished.file_name.rsplit(".", 1)[-1].lower() if "." in finished.file_name.lstrip(".") else "",
        page=row["page_start"],
        heading_path=" > ".join(row["section_path"]) or None,
        chunk_size=settings.chunk_size,
        chunk_overlap=settings.chunk_overlap,
        chunking_strategy=settings.chunking_strategy,
        embedding_model=model,
        token_counter=settings.chunk_tokenizer,
        content_hash=finished.content_hash,
        created_at=now,
        file_created_at=finished.file_created_at,
        file_modified_at=finished.file_modified_at,
        **row,
    )


def _add_vectors(
    connection: Connection, finished: FinishedDocument, indexes: Sequence[EmbeddingIndex], active: int | None, publication_id: int
) -> None:
    for index in indexes:
        added = connection.execute(
            sql.SQL(
                """
                INSERT INTO {vectors} (publication_id, chunk_index, embedding)
                SELECT c.publication_id, c.chunk_index, e.embedding
                  FROM chunks AS c
                  JOIN embedding_cache AS e
                    ON e.spec_hash = %(spec_hash)s
                   AND e.input_hash = encode(sha256(convert_to(%(prefix)s || c.contextualized_content, 'UTF8')), 'hex')
                 WHERE c.publication_id = %(publication_id)s
                ON CONFLICT (publication_id, chunk_index) DO UPDATE SET embedding = excluded.embedding
                """
            ).format(vectors=sql.Identifier(index.vector_table)),
            {"spec_hash": index.spec.spec_hash, "prefix": index.spec.passage_prefix, "publication_id": publication_id},
        ).rowcount
        if index.embedding_index_id == active and added < finished.chunks.height:
            missing = finished.chunks.height - added
            raise EmbeddingMissing(
                finished.source_path, f"{missing} of {finished.chunks.height} chunks have no vector for {index.spec.model}"
            )


def publications_to_retire(connection: Connection, settings: Settings, *, now: datetime, limit: int = 1_000) -> list[int]:
    """Publications whose keyword entries may go: superseded or abandoned RETIRE_AFTER_S ago or longer."""
    before = now - timedelta(seconds=settings.retire_after_s)
    rows = connection.execute(load_queries("publications")["publications_to_retire"], {"before": before, "limit": limit}).fetchall()
    return [publication_id for (publication_id,) in rows]


def mark_retired(connection: Connection, publication_ids: Sequence[int]) -> None:
    """Record that their keyword entries are gone."""
    connection.execute(load_queries("publications")["mark_retired"], {"publication_ids": list(publication_ids)})
