"""Facts of what is published, as frames: what the expectations of each layer are held against. Nothing here judges."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl
from psycopg import sql
from psycopg.rows import dict_row

from sql import load_queries
from stemma.chunking.graphemes import next_visible
from stemma.chunking.markdown_aware import HARD_LIMIT
from stemma.chunking.strategies import UNITS
from stemma.lexical.index import LexicalIndex
from stemma.store.embedding_indexes import EmbeddingIndex
from stemma.store.postgres import Connection

PUBLICATIONS_PER_READ = 100
"""Texts are read this many at once, so that memory does not grow with the corpus."""
BEGINNING_CHARS = 2_000
"""What is kept of each text, to tell its language."""

DOCUMENT_FACTS = pl.Schema(
    {"partition_key": pl.String, "n_chars": pl.Int64, "n_read": pl.Int64, "n_chunks": pl.Int64, "is_searchable": pl.Boolean, "beginning": pl.String}
)  # fmt: skip
CHUNK_FACTS = pl.Schema(
    {"partition_key": pl.String, "chunk_index": pl.Int64, "position": pl.Int64, "is_exact": pl.Boolean, "is_blank": pl.Boolean,
     "measure": pl.Int64, "limit": pl.Int64, "n_tokens": pl.Int64, "is_composed": pl.Boolean, "context_chars": pl.Int64}
)  # fmt: skip
VECTOR_FACTS = pl.Schema({"partition_key": pl.String, "chunk_index": pl.Int64, "dimension": pl.Int64, "norm": pl.Float64})
ENTRY_FACTS = pl.Schema({"partition_key": pl.String, "n_chunks": pl.Int64, "n_recorded": pl.Int64, "n_entries": pl.Int64})
PUBLICATION_FACTS = pl.Schema(
    {"partition_key": pl.String, "doc_id": pl.String, "n_chunks": pl.Int64, "state": pl.String, "same_path": pl.Boolean,
     "named_by_its_bytes": pl.Boolean, "n_stored": pl.Int64}
)  # fmt: skip
ORPHANS = pl.Schema({"partition_key": pl.String, "orphan": pl.String})
STATUSES = pl.Schema({"partition_key": pl.String, "status": pl.String, "error_code": pl.String})


def published(connection: Connection, partitions: Sequence[str] | None = None) -> dict[str, int]:
    """Partition key -> live publication, of those among `partitions` that have one; None: of the whole corpus."""
    rows = connection.execute(
        load_queries("published_facts")["published_by"], {"partitions": None if partitions is None else list(partitions)}
    )
    return dict(rows.fetchall())  # fmt: skip


def text_facts(connection: Connection, publication_ids: Sequence[int]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """DOCUMENT_FACTS, a row per document, and CHUNK_FACTS, a row per chunk: every chunk is cut out of its text once more.

    `measure` counts characters or tokens, as the strategy that cut the chunk does, and `limit` is the most that it may be.
    """
    documents: list[tuple[Any, ...]] = []
    chunks: list[tuple[Any, ...]] = []
    for some in _portions(publication_ids):
        of_publication: dict[int, list[dict[str, Any]]] = {}
        for chunk in _rows(connection, "chunk_texts", some):
            of_publication.setdefault(chunk["publication_id"], []).append(chunk)
        for row in _rows(connection, "texts", some):
            text, key = row["text"], row["partition_key"]
            is_searchable = row["n_chunks"] > 0 or next_visible(text, 0, len(text)) is None
            documents.append((key, row["n_chars"], len(text), row["n_chunks"], is_searchable, text[:BEGINNING_CHARS]))
            chunks += [
                _chunk_facts(key, position, text, chunk) for position, chunk in enumerate(of_publication.get(row["publication_id"], []))
            ]
    return pl.DataFrame(documents, schema=DOCUMENT_FACTS, orient="row"), pl.DataFrame(chunks, schema=CHUNK_FACTS, orient="row")


def vector_facts(connection: Connection, publication_ids: Sequence[int], index: EmbeddingIndex) -> pl.DataFrame:
    """VECTOR_FACTS: a row per chunk; dimension and norm are null where it has no vector in the index."""
    query = sql.SQL(load_queries("published_facts")["vectors"]).format(vectors=sql.Identifier(index.vector_table))
    return _frame(connection, query, publication_ids, VECTOR_FACTS)


def entry_facts(connection: Connection, publication_ids: Sequence[int], engine: LexicalIndex) -> pl.DataFrame:
    """ENTRY_FACTS: a row per document; what was recorded of the keyword index in use, and what it holds."""
    held = engine.publications()
    rows = [
        (row["partition_key"], row["n_chunks"], row["n_recorded"], held.get(row["publication_id"], 0))
        for row in _rows(connection, "coverage", publication_ids)
    ]
    return pl.DataFrame(rows, schema=ENTRY_FACTS, orient="row")


def publication_facts(connection: Connection, publication_ids: Sequence[int]) -> pl.DataFrame:
    """PUBLICATION_FACTS: a row per document."""
    return _frame(connection, load_queries("published_facts")["publications"], publication_ids, PUBLICATION_FACTS)


def orphans(connection: Connection) -> pl.DataFrame:
    """ORPHANS of the whole corpus; empty when all is well."""
    return pl.DataFrame(connection.execute(load_queries("published_facts")["orphans"]).fetchall(), schema=ORPHANS, orient="row")


def statuses(connection: Connection) -> pl.DataFrame:
    """STATUSES: a row per source."""
    return pl.DataFrame(connection.execute(load_queries("published_facts")["statuses"]).fetchall(), schema=STATUSES, orient="row")


def _chunk_facts(partition_key: str, position: int, text: str, chunk: dict[str, Any]) -> tuple[Any, ...]:
    content, context = chunk["content"], chunk["context"]
    in_tokens = UNITS.get(chunk["strategy"]) == "tokens"
    # A single character is never cut, whatever it measures.
    measure = 1 if len(content) == 1 else chunk["n_tokens"] if in_tokens else len(content)
    size = chunk["size"]
    limit = None if size is None else size * (HARD_LIMIT if chunk["strategy"] == "markdown_aware" else 1)
    return (
        partition_key,
        chunk["chunk_index"],
        position,
        text[chunk["char_start"] : chunk["char_end"]] == content,
        next_visible(content, 0, len(content)) is None,
        measure,
        limit,
        chunk["n_tokens"],
        chunk["contextualized_content"] == (content if context is None else f"{context}\n\n{content}"),
        None if context is None else len(context.strip()),
    )


def _portions(publication_ids: Sequence[int]) -> Iterator[list[int]]:
    """The ids in portions of PUBLICATIONS_PER_READ."""
    for start in range(0, len(publication_ids), PUBLICATIONS_PER_READ):
        yield list(publication_ids[start : start + PUBLICATIONS_PER_READ])


def _rows(connection: Connection, name: str, publication_ids: Sequence[int]) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(load_queries("published_facts")[name], {"publication_ids": list(publication_ids)}).fetchall()


def _frame(connection: Connection, query: Any, publication_ids: Sequence[int], schema: pl.Schema) -> pl.DataFrame:
    rows = connection.execute(query, {"publication_ids": list(publication_ids)}).fetchall()
    return pl.DataFrame(rows, schema=schema, orient="row")
