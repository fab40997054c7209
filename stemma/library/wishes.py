"""Wishes: what a person wants done again, recorded for the reconciler, which claims and launches it."""

from collections.abc import Sequence
from datetime import datetime

from sql import load_queries
from stemma.library.looks import request_look
from stemma.store.postgres import Connection


def request_ingest(connection: Connection, *, paths: Sequence[str] | None, force: bool, now: datetime) -> int:
    """Ask for a look at the library now; with `force`, wish the stage `documents` of the sources under the paths (None: all).

    What was deleted with its file kept comes back if a path names it or a folder above it, and in no other way.

    Args:
        paths: source paths of files or folders; a folder stands for its subtree, "" for the library.
    Returns:
        The number of sources that were wished for; without `force`, of those that come back.
    """
    queries = load_queries("reconcile")
    request_look(connection, now=now)
    n_wished = connection.execute(queries["wish_excluded"], {"paths": [path for path in paths or () if path], "now": now}).rowcount
    if force:
        parameters = {"paths": None if paths is None else list(paths), "now": now}
        n_wished += connection.execute(queries["wish_documents"], parameters).rowcount
    return n_wished
