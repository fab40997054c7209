"""Publishing: one transaction turns a finished document into what readers see, or finds that it is out of date."""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import accumulate
from typing import Any, Literal
from uuid import UUID

import polars as pl
from psycopg import sql
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from sql import load_queries
from stemma.errors import EmbeddingMissing
from stemma.failpoints import reach
from stemma.parsing.document import ParsedDocument
from stemma.parsing.language import language_of
from stemma.settings import Fingerprints, Settings
from stemma.store.chunk_record import ChunkRecord, chunk_id
from stemma.store.embedding_indexes import EmbeddingIndex, open_embedding_indexes
from stemma.store.locks import lock_sources
from stemma.store.postgres import Connection

Decision = Literal["published", "unchanged", "abandoned"]

_CHUNK_COLUMNS = (
    "publication_id", "chunk_index", "chunk_id", "doc_id", "original_index", "content", "context", "contextualized_content", "char_start",
    "char_end", "start_line", "end_line", "page_start", "page_end", "section_path", "chunk_type", "n_tokens", "text_hash", "input_hash",
    "metadata", "created_at",
)  # fmt: skip
TITLE_CHARS = 500

RESTORED_BY = "restore:"
"""Beginning of the run_id of publications that a restore makes."""


@dataclass(frozen=True)
class FinishedDocument:
    """A document with everything that its publication writes."""

    publication_id: int
    source_id: str
    source_path: str
    source: str
    """Absolute path, as provenance."""
    file_type: str
    """Extension in lower case without its dot; "" without one."""
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
    anew: bool = False
    """Publish it even if its output is equal to the live one's."""

    @property
    def file_name(self) -> str:
        """The last component of the path."""
        return self.source_path.rsplit("/", 1)[-1]

    @property
    def title(self) -> str:
        """The title its content states, or the file's name; cut to what the column holds."""
        return (self.document.title or self.file_name)[:TITLE_CHARS]


@dataclass(frozen=True)
class _Facts:
    """What the conditions of publishing ask, read under the locks."""

    attempt_open: bool
    claimable: bool
    source_path: str
    last_publication_id: int
    live_publication_id: int | None
    live_doc_id: str | None
    live_output_hash: str | None
    doc_id_taken: bool
    sparse_covered: bool
    embedded_for: str
    """The embedding indexes, by number, that the run embedded for; "" where that was not recorded."""

    def was_embedded_for(self, active_index: int | None, indexes: Sequence[EmbeddingIndex]) -> bool:
        """Whether the run worked for the index that is active now: it may have been made and switched to meanwhile."""
        if active_index is None:
            return True
        known = active_index in {index.embedding_index_id for index in indexes}
        return known and (not self.embedded_for or str(active_index) in self.embedded_for.split(","))


@dataclass(frozen=True)
class Recipe:
    """How the documents of a run are made."""

    run_id: str
    epoch: int
    settings: Settings
    wanted: Fingerprints


@dataclass(frozen=True)
class LivePublication:
    """What is live of a source."""

    source_id: str
    publication_id: int
    output_hash: str
    first_original_index: int


def live_publications(connection: Connection, source_ids: Sequence[str]) -> dict[str, LivePublication]:
    """source_id -> what is live of it; a source without is missing here."""
    with connection.cursor(row_factory=class_row(LivePublication)) as cursor:
        rows = cursor.execute(load_queries("publications")["live_publications"], {"source_ids": list(source_ids)}).fetchall()
    return {live.source_id: live for live in rows}


def reserve_original_indexes(connection: Connection, n_chunks: Mapping[int, int]) -> dict[int, int]:
    """publication_id -> the first of a block of numbers that no chunk ever had, given the number of chunks; kept with the publication.

    The connection is not inside a transaction that may be rolled back.
    """
    queries = load_queries("publications")
    row = connection.execute(queries["reserve_original_indexes"], {"n": sum(n_chunks.values())}).fetchone()
    assert row is not None, "the first migration inserts the counter"
    connection.commit()
    firsts = dict(zip(n_chunks, accumulate(n_chunks.values(), initial=row[0]), strict=False))
    connection.execute(queries["keep_original_indexes"], {"publication_ids": list(firsts), "firsts": list(firsts.values())})
    return firsts


def abandon_restores(connection: Connection, *, now: datetime) -> None:
    """Abandon what a restore that was ended left pending. Only for the holder of SPARSE_INDEX_LOCK: a restore holds it while it lives."""
    connection.execute(load_queries("restoring")["abandon_restores"], {"prefix": RESTORED_BY, "now": now})


def publish_document(
    connection: Connection, finished: FinishedDocument, recipe: Recipe, indexes: Sequence[EmbeddingIndex], *, now: datetime
) -> Decision:
    """Publish the document in one transaction, or decide that it may not be.

    Locks, in this order everywhere: corpus_state FOR SHARE, then the source. `abandoned`: the attempt is closed, the source
    is gone, deleted or moved, a newer publication was decided, the epoch is another, the active keyword or embedding index was
    switched, or another source's live version still holds the doc_id; the next walk finds what is stale. `unchanged`: the live
    version is equal and only its recipe columns were updated.

    Args:
        indexes: the embedding indexes that were open when the run began to publish; of those, the ones that still are get vectors.

    Raises EmbeddingMissing when a chunk has no vector for the active index; nothing is written then.
    """
    queries = load_queries("publications")
    with connection.transaction():
        epoch, active_index, active_sparse_index = connection.execute(queries["lock_corpus_state"]).fetchall()[0]
        lock_sources(connection, [UUID(finished.source_id)])
        reach("publish.locked")
        still_open = {index.embedding_index_id for index in open_embedding_indexes(connection)}
        indexes = [index for index in indexes if index.embedding_index_id in still_open]
        parameters = _parameters(finished, recipe, now=now) | {"active_sparse_index": active_sparse_index}
        with connection.cursor(row_factory=class_row(_Facts)) as cursor:
            facts = cursor.execute(queries["publication_facts"], parameters).fetchone()
        if facts is None or not facts.attempt_open:
            connection.execute(queries["abandon_publication"], parameters)
            return "abandoned"
        is_live = not finished.anew and (facts.live_doc_id, facts.live_output_hash) == (finished.doc_id, finished.output_hash)
        equal = facts.live_publication_id if is_live else None
        out_of_date = (
            not facts.claimable
            or facts.source_path != finished.source_path
            or finished.publication_id <= facts.last_publication_id
            or epoch != recipe.epoch
            or facts.doc_id_taken
            or not (finished.chunks.is_empty() or facts.was_embedded_for(active_index, indexes))
        )
        if out_of_date or not (is_live or facts.sparse_covered or finished.chunks.is_empty()):
            _close_abandoned(connection, parameters)
            return "abandoned"
        # Attempts, publications, sources: everyone who closes attempts writes in this order.
        connection.execute(queries["close_attempt"], parameters)
        if equal is not None:
            connection.execute(queries["update_recipe"], parameters | {"live_publication_id": equal})
            connection.execute(queries["abandon_publication"], parameters)
            _add_vectors(connection, finished, indexes, active_index, equal)
        else:
            connection.execute(queries["supersede"], parameters)
            connection.execute(queries["insert_document"], parameters)
            _insert_assets(connection, finished)
            _insert_chunks(connection, finished, recipe, indexes, active_index, now=now)
            _add_vectors(connection, finished, indexes, active_index, finished.publication_id)
            connection.execute(queries["go_live"], parameters)
        connection.execute(queries["record_corpus"], parameters)
        connection.execute(queries["settle_source"], parameters)
        reach("publish.before_commit")
    reach("publish.committed")
    return "unchanged" if is_live else "published"


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
        "language": language_of(finished.chunks["content"]),
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
            load_queries("publications")["insert_asset"],
            [
                (finished.publication_id, index, asset.kind, asset.page, asset.char_start, asset.char_end, asset.caption, asset.picture)
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
        chunk_id=chunk_id(finished.doc_id, row["chunk_index"]),
        original_index=finished.first_original_index + row["chunk_index"],
        source=finished.source,
        source_path=finished.source_path,
        file_name=finished.file_name,
        file_type=finished.file_type,
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
            sql.SQL(load_queries("publications")["add_vectors"]).format(vectors=sql.Identifier(index.vector_table)),
            {"spec_hash": index.spec.spec_hash, "prefix": index.spec.passage_prefix, "publication_id": publication_id},
        ).rowcount
        if index.embedding_index_id == active and added < finished.chunks.height:
            missing = finished.chunks.height - added
            raise EmbeddingMissing(
                finished.source_path, f"{missing} of {finished.chunks.height} chunks have no vector for {index.spec.model}"
            )
