"""Wishes: what a person wants done again, recorded for the reconciler, which claims and launches it."""

from collections.abc import Sequence
from datetime import datetime

from sql import load_queries
from stemma.library.looks import request_look
from stemma.store.postgres import Connection


def request_ingest(connection: Connection, *, paths: Sequence[str] | None, force: bool, now: datetime) -> int:
    """Ask for a look at the library now; with `force`, wish the stage `documents` of the sources under the paths (None: all).

    Args:
        paths: source paths of files or folders; a folder stands for its subtree.
    Returns:
        The number of sources that were wished for; 0 without `force`.
    """
    request_look(connection, now=now)
    if not force:
        return 0
    parameters = {"paths": None if paths is None else list(paths), "now": now}
    return connection.execute(load_queries("reconcile")["wish_documents"], parameters).rowcount
