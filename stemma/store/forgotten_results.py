"""Results of deleted documents: found by nobody from the deletion on, then taken out of the lake, also out of objects that hold others' too.

A forgotten result keeps its row, under a key that no work has, until its bytes are gone: whoever sweeps next goes on there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sql import load_queries
from stemma.failpoints import reach
from stemma.store.lake import Lake, MissingObject
from stemma.store.postgres import Connection, Pool

_QUERIES = "forgotten_results"


@dataclass(frozen=True)
class Swept:
    """What was taken out of the lake."""

    n_results: int = 0
    n_bytes: int = 0
    """By which the lake became smaller."""


def forget_results(connection: Connection, source_ids: Sequence[UUID], *, now: datetime) -> int:
    """Forget what these sources stand on and no other source does, in the caller's transaction; returns the number of results."""
    return connection.execute(load_queries(_QUERIES)["forget_results"], {"source_ids": list(source_ids), "now": now}).rowcount


def sweep_forgotten(pool: Pool, lake: Lake, *, limit: int = 200) -> Swept:
    """Take the forgotten results of at most so many objects out of the lake. May be repeated and killed anywhere.

    An object that holds other results too is written again without them; whoever had its old name and comes too late makes its result
    again, as with any object that is lost. Raises LakeUnavailable.
    """
    queries = load_queries(_QUERIES)
    with pool.connection() as connection:
        concerned = connection.execute(queries["objects_to_sweep"], {"limit": limit}).fetchall()
    n_results = n_bytes = 0
    for name, kept, forgotten in concerned:
        before = lake.size(name)
        new = _without_forgotten(lake, name, kept) if kept else None
        after = lake.size(new) if new else 0
        reach("forgotten.rewritten")
        with pool.connection() as connection, connection.transaction():
            moved = connection.execute(queries["move_results"], {"object": name, "new": new, "forgotten": forgotten}).rowcount if new else 0
            connection.execute(queries["drop_forgotten"], {"object": name, "forgotten": forgotten})
        if new and not moved:  # another process swept it first
            lake.remove(new)
        reach("forgotten.dropped")
        lake.remove(name)
        n_results, n_bytes = n_results + len(forgotten), n_bytes + before - after
    return Swept(n_results, n_bytes)


def _without_forgotten(lake: Lake, name: str, kept: Sequence[str]) -> str | None:
    """The name of a new object with the rows of these keys; None: the old one is lost."""
    try:
        return lake.write(name.partition("/")[0], lake.read(name, kept))
    except MissingObject:
        return None
