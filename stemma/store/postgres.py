"""Connections to PostgreSQL: one pool per process, every connection set up in one place."""

from collections.abc import Generator
from contextlib import contextmanager

import psycopg
from pgvector.psycopg import register_vector
from psycopg import sql
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from stemma.errors import Unavailable

LOCK_TIMEOUT_MS = 5_000

Connection = psycopg.Connection[TupleRow]
Pool = ConnectionPool[Connection]


class StoreUnavailable(Unavailable):
    """PostgreSQL does not answer."""

    code, remedy = "store_unavailable", "Check that PostgreSQL runs (`stemma doctor`); the request may be repeated."


class StoreBusy(Unavailable):
    """A lock was not granted within five seconds."""

    code, remedy = "store_busy", "Another operation holds the same document; repeat the request."


def configure(connection: Connection) -> None:
    """Set up a new connection: UTC, a lock timeout of five seconds, and pgvector's types where the extension exists."""
    connection.autocommit = True
    connection.execute(sql.SQL("SET lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT_MS)))
    connection.execute("SET timezone = 'UTC'")
    if connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone():
        register_vector(connection)
    connection.autocommit = False


def open_pool(url: str, *, min_size: int = 0, max_size: int = 8, timeout_s: float = 10.0) -> Pool:
    """A pool that connects at first use and survives restarts of the server. The caller closes it."""
    return ConnectionPool(
        url, min_size=min_size, max_size=max_size, timeout=timeout_s, open=True, configure=configure,
        check=ConnectionPool.check_connection, kwargs={"application_name": "stemma", "connect_timeout": 5},
    )  # fmt: skip


@contextmanager
def connect(url: str) -> Generator[Connection]:
    """One connection outside a pool, set up like those in it. Raises StoreUnavailable."""
    with explained(), psycopg.connect(url, application_name="stemma", connect_timeout=5) as connection:
        configure(connection)
        yield connection


@contextmanager
def autocommitted(pool: Pool) -> Generator[Connection]:
    """A connection of the pool in autocommit: what is done on it stands at once, and session locks outlive its transactions."""
    with pool.connection() as connection:
        connection.autocommit = True
        try:
            yield connection
        finally:
            if not connection.closed:
                connection.autocommit = False


@contextmanager
def explained() -> Generator[None]:
    """Turn a lost server into StoreUnavailable and a lock that was not granted into StoreBusy."""
    try:
        yield
    except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
        raise StoreBusy(str(error).strip()) from error
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout) as error:
        if not _server_is_away(error):
            raise
        raise StoreUnavailable(str(error).strip() or type(error).__name__) from error


_AWAY_CLASSES = ("08", "53", "57", "58")
"""SQLSTATE classes: connection exception, insufficient resources, operator intervention, system error."""


def _server_is_away(error: Exception) -> bool:
    """psycopg files other conditions under OperationalError too (a row over a limit, a state that forbids the command): those are bugs."""
    sqlstate = error.sqlstate if isinstance(error, psycopg.Error) else None
    return sqlstate is None or sqlstate[:2] in _AWAY_CLASSES
