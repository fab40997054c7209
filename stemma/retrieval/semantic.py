"""The semantic arm: nearest vectors of the active embedding index, by cosine."""

import polars as pl
from psycopg import sql

from stemma.embedding.embedder import Vectors
from stemma.lexical.index import HIT_SCHEMA, Scope
from stemma.retrieval.scope import as_parameters, narrows_documents_down, scoped
from stemma.store.embedding_indexes import EmbeddingIndex
from stemma.store.postgres import Connection

EF_SEARCH_MIN, EF_SEARCH_MAX = 100, 1_000  # the upper one is pgvector's own limit
MAX_SCAN_TUPLES = 100_000  # how far the iterative scan goes before the exact scan takes over


def semantic_ranking(
    connection: Connection, vector: Vectors, *, index: EmbeddingIndex, depth: int, scope: Scope, exact_scan_max_chunks: int
) -> pl.DataFrame:
    """The `depth` chunks in scope that are nearest to the vector (shape (dimension,)): HIT_SCHEMA, score = cosine, ties by chunk_id.

    A scope of at most `exact_scan_max_chunks` chunks is searched exactly. A larger one goes through HNSW with an iterative scan;
    where that ends before `depth` chunks of the scope were found, the exact scan answers, so that a filter never costs hits.
    """
    within = narrows_documents_down(scope)
    only_passages = scoped("only_passages") if within else sql.SQL("")
    parameters = {"vector": vector, "depth": depth, "bound": max(exact_scan_max_chunks + 1, depth), **as_parameters(scope)}

    def rows(name: str) -> list[tuple[str, int, float]]:
        query = scoped(name, vectors=sql.Identifier(index.vector_table), only_passages=only_passages)
        # Never prepared: a generic plan would not know how narrow the scope is.
        return connection.execute(query, parameters, prepare=False).fetchall()

    count = scoped("count_passages_in_scope" if within else "count_in_scope")
    (n_in_scope,) = connection.execute(count, parameters, prepare=False).fetchone() or (0,)
    if n_in_scope <= exact_scan_max_chunks:
        found = rows("nearest_exactly")
    else:
        _set_scan(connection, depth)
        found = rows("nearest_by_hnsw")
        if len(found) < min(depth, n_in_scope):
            found = rows("nearest_exactly")
    return pl.DataFrame(found, schema=HIT_SCHEMA, orient="row")


def _set_scan(connection: Connection, depth: int) -> None:
    """Fit the scan of this transaction to the depth; strict_order, because relaxed_order may swap neighbours."""
    ef_search = min(max(2 * depth, EF_SEARCH_MIN), EF_SEARCH_MAX)
    connection.execute(
        "SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.ef_search', %s, true),"
        " set_config('hnsw.max_scan_tuples', %s, true)",
        [str(ef_search), str(MAX_SCAN_TUPLES)],
    )
