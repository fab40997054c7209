"""One at a time: who fills, builds, switches or drops indexes holds their lock for as long as its process lives."""

from collections.abc import Generator
from contextlib import contextmanager

from stemma.errors import Unavailable
from stemma.store.locks import try_session_lock
from stemma.store.postgres import Connection, connect


class IndexesBusy(Unavailable):
    """Another process is at work on the indexes."""

    code, remedy = "indexes_busy", "Wait until it is done; `stemma status` shows how far it is."


@contextmanager
def alone(url: str, lock: int) -> Generator[Connection]:
    """A connection in autocommit, of its own, that holds the lock until the block or the process ends. Raises IndexesBusy."""
    with connect(url) as connection:
        connection.autocommit = True
        if not try_session_lock(connection, lock):
            raise IndexesBusy("another process is at work on these indexes")
        yield connection
