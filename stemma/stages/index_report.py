"""The indexes as a person wants to see them: which one searches read, how far the others are, how their search structures are made."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg.rows import class_row

from sql import load_queries
from stemma.store.embedding_indexes import all_embedding_indexes
from stemma.store.embedding_switch import coverage
from stemma.store.hnsw import hnsw_of
from stemma.store.postgres import Connection


@dataclass(frozen=True)
class EmbeddingIndexReport:
    """An embedding index."""

    embedding_index_id: int
    model: str
    revision: str
    dimension: int
    state: Literal["building", "active", "retired"]
    n_chunks: int
    """Published chunks."""
    n_covered: int
    """Those of them that have a vector in it."""
    hnsw: str | None
    """`m=16, ef_construction=64`; None: no search structure, every search looks at all vectors of its scope."""
    hnsw_whole: bool
    n_bytes: int
    """Of the search structure."""


@dataclass(frozen=True)
class SparseIndexReport:
    """A keyword index."""

    sparse_index_id: int
    backend: str
    name: str
    state: Literal["building", "active", "retired"]
    incomplete_since: datetime | None
    """Since when it is being made again, and full-text search answers in its place."""
    n_documents: int
    """Published documents with chunks."""
    n_covered: int
    """Those of them whose entries it holds."""


@dataclass(frozen=True)
class IndexReport:
    """All indexes; the active ones first."""

    embedding: list[EmbeddingIndexReport]
    sparse: list[SparseIndexReport]


def report_indexes(connection: Connection) -> IndexReport:
    """Every index that was not dropped, with its coverage."""
    embedding: list[EmbeddingIndexReport] = []
    for index in all_embedding_indexes(connection):
        covered = coverage(connection, index)
        built = hnsw_of(connection, index.vector_table)
        embedding.append(
            EmbeddingIndexReport(
                index.embedding_index_id, index.spec.model, index.spec.revision, index.spec.dimension, index.state,
                covered.n_chunks, covered.n_covered,
                f"m={built.hnsw.m}, ef_construction={built.hnsw.ef_construction}" if built else None,
                built is not None and built.whole, built.n_bytes if built else 0,
            )
        )  # fmt: skip
    with connection.cursor(row_factory=class_row(SparseIndexReport)) as cursor:
        sparse = cursor.execute(load_queries("sparse_coverage")["report_sparse_indexes"]).fetchall()
    return IndexReport(embedding, sparse)
