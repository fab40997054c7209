"""One view of the corpus for one answer."""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg

from stemma.retrieval.errors import QueryTimeout
from stemma.store.postgres import Connection, Pool, explained


@contextmanager
def snapshot(pool: Pool, *, timeout_s: float) -> Generator[Connection]:
    """A connection inside a REPEATABLE READ, READ ONLY transaction whose snapshot is taken before this returns.

    Raises:
        QueryTimeout: a statement took longer than `timeout_s`.
        StoreUnavailable: PostgreSQL does not answer.
    """
    with explained(), pool.connection() as connection:
        try:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # Compiling a query takes longer than any of ours runs.
            connection.execute(
                "SELECT set_config('statement_timeout', %s, true), set_config('jit', 'off', true)", [f"{max(1, round(timeout_s * 1000))}ms"]
            )
            yield connection
        except psycopg.errors.QueryCanceled as error:
            raise QueryTimeout(f"the search took longer than {timeout_s:g} s") from error
