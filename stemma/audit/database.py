"""What PostgreSQL alone can prove or refute: documents, chunks, vectors, and what is recorded of them."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from typing import Any

import polars as pl
from psycopg import sql

from sql import load_queries
from stemma.audit.violations import violations
from stemma.chunking.promises import broken_spans
from stemma.embedding.embedder import EmbeddingSpec
from stemma.library.staleness import stale_sources
from stemma.settings import Fingerprints, Settings
from stemma.store.embedding_indexes import VectorWidthMismatch, active_embedding_index, check_width, open_embedding_indexes
from stemma.store.postgres import Connection

_ROW_CHECKS = (
    "live_without_document",
    "document_not_live",
    "chunks_not_dense",
    "chunk_hash_differs",
    "active_index_differs",
    "original_index_reused",
    "status_differs",
    "recorded_corpus_differs",
)
_SETTLED = ("change", "wish")
"""What failed for good or was taken out is no broken promise: its status says so, and nothing follows until its file changes or a person asks."""
DOCUMENTS_AT_ONCE = 20


def audit_database(connection: Connection, settings: Settings, wanted: Fingerprints, *, now: datetime) -> Iterator[pl.DataFrame]:
    """Violations (VIOLATION_SCHEMA) of the rows, one frame per check; inside the caller's snapshot."""
    queries = load_queries("audit")
    for check in _ROW_CHECKS:
        yield violations(check, connection.execute(queries[check]).fetchall())
    yield violations("offsets_differ", _wrong_spans(connection))
    yield from _vectors(connection)
    stale = stale_sources(connection, settings, wanted, now=now).filter(~pl.col("waits_for").is_in(_SETTLED).fill_null(value=False))
    yield violations("stale", stale.select("source_path", "source_id", pl.format("{}: {}", "stage", "reason")).iter_rows())


def _wrong_spans(connection: Connection) -> Iterator[tuple[str, str, str]]:
    """Read document by document: in SQL each span would walk its text from the beginning."""
    with connection.cursor("document_spans") as cursor:
        cursor.itersize = DOCUMENTS_AT_ONCE
        for doc_id, source_id, text, *columns in cursor.execute(load_queries("audit")["document_spans"]):
            if broken := next(broken_spans(text, zip(*columns, strict=True)), None):
                yield doc_id, source_id, broken


def _vectors(connection: Connection) -> Iterator[pl.DataFrame]:
    try:
        check_width(connection)
    except VectorWidthMismatch as error:  # then the comparisons below would fail too
        yield violations("vector_width_differs", [("embedding_indexes", None, str(error))])
        return
    queries = load_queries("audit")
    active = active_embedding_index(connection)
    for index in open_embedding_indexes(connection):
        vectors = sql.Identifier(index.vector_table)
        if index == active:
            missing = sql.SQL(queries["vector_missing"]).format(vectors=vectors)
            yield violations("vector_missing", connection.execute(missing).fetchall())
        differs = sql.SQL(queries["vector_differs"]).format(vectors=vectors)
        yield violations("vector_differs", connection.execute(differs, spec_parameters(index.spec)).fetchall())
        yield violations(
            "cached_vector_damaged", connection.execute(queries["cached_vector_damaged"], spec_parameters(index.spec)).fetchall()
        )


def spec_parameters(spec: EmbeddingSpec) -> dict[str, Any]:
    """What the queries on vectors ask of a spec."""
    return asdict(spec) | {"spec_hash": spec.spec_hash, "prefix": spec.passage_prefix}
