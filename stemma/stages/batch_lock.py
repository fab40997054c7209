"""The lock that says a run is alive: held on its batches for as long as its process and its connection live."""

from uuid import UUID

import psycopg

from stemma.store.locks import batch_lock_key, try_session_lock
from stemma.store.postgres import Connection, configure


class BatchLock:
    """Session locks on a connection of their own; the reconciler takes a free one as the sign of a dead run."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._held: set[UUID] = set()

    def hold(self, run_id: str) -> None:
        """Hold the locks of every batch that the run has open; after a lost connection they are taken again."""
        connection = self._live_connection()
        rows = connection.execute("SELECT DISTINCT batch_id FROM attempts WHERE run_id = %s AND finished_at IS NULL", [run_id]).fetchall()
        for (batch_id,) in rows:
            if batch_id not in self._held and try_session_lock(connection, batch_lock_key(batch_id)):
                self._held.add(batch_id)

    def _live_connection(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            try:
                self._connection.execute("SELECT 1")
                return self._connection
            except psycopg.OperationalError:
                self._connection.close()
        self._held.clear()
        connection: Connection = psycopg.connect(self._url, application_name="stemma run", connect_timeout=5)
        configure(connection)
        connection.autocommit = True
        self._connection = connection
        return connection

    def release(self) -> None:
        """Let go of everything."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._held.clear()
