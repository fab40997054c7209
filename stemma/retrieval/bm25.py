"""The keyword arm: entries of the active keyword index that are live rows of the snapshot."""

from collections.abc import Callable

import polars as pl

from stemma.lexical.index import HIT_SCHEMA, LexicalIndex, Scope
from stemma.retrieval.scope import as_parameters, scoped
from stemma.store.postgres import Connection

GROWTH = 4  # each further look into the index asks for this many times as much


def bm25_ranking(
    connection: Connection,
    query: str,
    *,
    index: LexicalIndex,
    depth: int,
    scope: Scope,
    operators: bool = False,
    check: Callable[[], None] = lambda: None,
) -> pl.DataFrame:
    """The first `depth` live chunks in scope by the engine's relevance: HIT_SCHEMA, ties by chunk_id.

    The index also holds entries of versions that are not yet or no longer live. They are dropped, and the index is asked for more
    until there are `depth` live ones or it has no more: always from the top, so that a commit between two looks can neither hide an
    entry nor show it twice.

    Args:
        operators: whether the query is in the query language; else no character of it is an operator.
        check: called before each look; raises to end the search.
    """
    asked = depth + depth // 2
    while True:
        check()
        entries = index.search(query, k=asked, scope=scope, operators=operators)
        live = _live(connection, entries, scope)
        if live.height >= depth or entries.height < asked:
            # Ranks within a score are ours, not the order in which the engine happens to hold its segments.
            return live.sort("score", "chunk_id", descending=[True, False]).head(depth)
        asked *= GROWTH


def tsvector_ranking(connection: Connection, query: str, *, depth: int, scope: Scope, operators: bool = False) -> pl.DataFrame:
    """The first `depth` live chunks in scope that share a stem with the query, by ts_rank: HIT_SCHEMA. Needs PostgreSQL alone.

    With `operators` it asks as PostgreSQL's web search does, whose quotes and minus are those of the query language.
    """
    found = connection.execute(
        scoped("matching_text"), {"query": query, "operators": operators, "depth": depth, **as_parameters(scope)}, prepare=False
    ).fetchall()
    return pl.DataFrame(found, schema=HIT_SCHEMA, orient="row")


def _live(connection: Connection, entries: pl.DataFrame, scope: Scope) -> pl.DataFrame:
    parameters = {
        "chunk_ids": entries["chunk_id"].to_list(),
        "publication_ids": entries["publication_id"].to_list(),
        "scores": entries["score"].to_list(),
        **as_parameters(scope),
    }
    return pl.DataFrame(connection.execute(scoped("live_entries"), parameters, prepare=False).fetchall(), schema=HIT_SCHEMA, orient="row")
