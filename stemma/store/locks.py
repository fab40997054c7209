"""Advisory locks: one key per thing that only one process may do at a time, and the one order in which several are taken.

Order everywhere: `share_corpus`, then `lock_sources`. Whoever keeps to it cannot deadlock.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeVar

import psycopg

from stemma.store.postgres import Connection

Result = TypeVar("Result")

WALK_LOCK = 0x53_54_45_4D_4D_41_00_02  # "STEMMA", 2; 1 is the migrations runner's
TANTIVY_WRITER_LOCK = 0x53_54_45_4D_4D_41_00_03
FIGURES_LOCK = 0x53_54_45_4D_4D_41_00_04
EMBEDDING_INDEX_LOCK = 0x53_54_45_4D_4D_41_00_05  # held by whoever fills, builds, switches or drops indexes of vectors
SPARSE_INDEX_LOCK = 0x53_54_45_4D_4D_41_00_06  # the same for keyword indexes
EXPORT_LOCK = 0x53_54_45_4D_4D_41_00_07
RESTORE_LOCK = 0x53_54_45_4D_4D_41_00_08

SOURCES_PER_TRANSACTION = 500
"""Most sources locked at once: PostgreSQL's default lock table holds 6,400 entries for all connections together."""

_PATIENCE = "SET LOCAL lock_timeout = '500ms'"  # PostgreSQL looks for a deadlock after a second (deadlock_timeout)
_TRIES = 20

_LOCK_IN_ORDER = """
    WITH wanted AS MATERIALIZED (SELECT key FROM unnest(%s::bigint[]) WITH ORDINALITY AS wanted (key, position) ORDER BY position)
    SELECT count(pg_advisory_xact_lock(key)::text) FROM wanted
"""


def source_lock_key(source_id: uuid.UUID) -> int:
    """The signed 64-bit key of a source's lock."""
    return _key(b"source", source_id)


def batch_lock_key(batch_id: uuid.UUID) -> int:
    """The signed 64-bit key of the session lock that a run holds on its batch for as long as it lives."""
    return _key(b"batch", batch_id)


def lock_sources(connection: Connection, source_ids: Iterable[uuid.UUID]) -> None:
    """Lock these sources until the transaction ends, ascending by source_id; at most SOURCES_PER_TRANSACTION of them.

    Raises psycopg's LockNotAvailable when one is not granted within the connection's lock timeout.
    """
    ascending = sorted(set(source_ids))
    if len(ascending) > SOURCES_PER_TRANSACTION:
        raise ValueError(f"{len(ascending)} sources in one transaction, at most {SOURCES_PER_TRANSACTION}")
    connection.execute(_LOCK_IN_ORDER, [[source_lock_key(source_id) for source_id in ascending]])


def portions(source_ids: Sequence[uuid.UUID]) -> Iterator[list[uuid.UUID]]:
    """The sources in their order, as many at once as one transaction may lock."""
    return (list(source_ids[start : start + SOURCES_PER_TRANSACTION]) for start in range(0, len(source_ids), SOURCES_PER_TRANSACTION))


def share_corpus(connection: Connection) -> None:
    """Keep the active indexes and the epoch as they are until the transaction ends."""
    connection.execute("SELECT FROM corpus_state FOR SHARE")


def lock_corpus_and_sources(connection: Connection, source_ids: Sequence[uuid.UUID]) -> None:
    """Keep these sources, however many, from being published, deleted or renamed by others until the transaction ends.

    More than the lock table is meant to hold are held through the corpus itself, which everyone else shares. Raises as `lock_sources`.
    """
    if len(source_ids) > SOURCES_PER_TRANSACTION:
        connection.execute("SELECT FROM corpus_state FOR UPDATE")
    else:
        share_corpus(connection)
        lock_sources(connection, source_ids)


def try_session_lock(connection: Connection, key: int) -> bool:
    """Take a lock that outlives transactions, unless another session holds it; `release_session_lock` or the session's end frees it."""
    return connection.execute("SELECT pg_try_advisory_lock(%s)", [key]).fetchone() == (True,)


def release_session_lock(connection: Connection, key: int) -> None:
    """Free a lock taken by `try_session_lock`."""
    connection.execute("SELECT pg_advisory_unlock(%s)", [key])


def giving_way(connection: Connection, work: Callable[[], Result]) -> Result:
    """Run a large statement in a transaction of its own that gives way: it waits for no row longer than half a second, then starts again.

    In a deadlock with another statement over many rows, this one is therefore always the one that loses, and loses nothing.
    `work` must be repeatable; the connection is in autocommit. Raises LockNotAvailable after twenty tries.
    """
    for attempt in range(_TRIES):
        try:
            with connection.transaction():
                connection.execute(_PATIENCE)
                return work()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if attempt == _TRIES - 1:
                raise
    raise AssertionError("the last try returns or raises")


def _key(kind: bytes, identity: uuid.UUID) -> int:
    return int.from_bytes(blake2b(identity.bytes, digest_size=8, person=kind).digest(), signed=True)
