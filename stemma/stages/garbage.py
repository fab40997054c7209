"""Garbage: what the lake and the vector cache hold above their limits and nobody stands on, and what no row knows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import structlog

from sql import load_queries
from stemma.failpoints import reach
from stemma.settings import Settings
from stemma.store.forgotten_results import sweep_forgotten
from stemma.store.lake import Lake, StoredObject
from stemma.store.postgres import Pool

OBJECTS_AT_ONCE = 500
VECTOR_OVERHEAD_BYTES = 200
"""Of a cached vector's row beside the numbers themselves: header, hashes, times and its place in the key's index."""

Part = TypeVar("Part")

log = structlog.get_logger()


@dataclass(frozen=True)
class Reclaimed:
    """What was removed."""

    n_evicted: int
    """Objects of the lake that were removed because it is above LAKE_MAX_BYTES."""
    n_orphaned: int
    """Objects that no result named: what an interrupted write left."""
    n_vectors: int
    """Cached vectors, removed because the cache is above EMBEDDING_CACHE_MAX_BYTES."""
    n_bytes: int
    """Of the objects exactly, of the vectors by estimate."""
    n_forgotten: int = 0
    """Results of deleted documents, removed whatever the limit."""

    @property
    def message(self) -> str:
        """One sentence for a person."""
        if not (self.n_bytes or self.n_forgotten):
            return "nothing to throw away"
        return f"{self.n_evicted} objects above the limit, {self.n_orphaned} orphans, {self.n_forgotten} results of deleted documents and {self.n_vectors} vectors removed: {self.n_bytes} bytes"


def collect_garbage(pool: Pool, lake: Lake, settings: Settings, *, now: datetime) -> Reclaimed:
    """Remove what deleted documents left and orphans, and then the least recently used of what nobody stands on, until the limits are kept.

    Never removed: results that the present state of a source was made from or that were used since the oldest open attempt was
    claimed, and vectors of published chunks in any index. Raises LakeUnavailable.
    """
    swept = sweep_forgotten(pool, lake)
    with pool.connection() as connection:
        before = connection.execute(load_queries("garbage")["evictable_before"], {"now": now}).fetchall()[0][0]
    objects = list(lake.objects())
    orphaned = list(_orphaned(pool, objects, before))
    _remove(lake, orphaned)
    reach("garbage.orphans_removed")
    gone = {stored.name for stored in orphaned}
    evicted = list(_evicted(pool, lake, [stored for stored in objects if stored.name not in gone], settings.lake_max_bytes, before))
    n_vectors, vector_bytes = _evict_vectors(pool, settings.embedding_cache_max_bytes, before)
    n_bytes = swept.n_bytes + sum(stored.size for stored in orphaned + evicted) + vector_bytes
    reclaimed = Reclaimed(len(evicted), len(orphaned), n_vectors, n_bytes, swept.n_results)
    log.info("garbage collected", evicted=len(evicted), orphaned=len(orphaned), forgotten=swept.n_results, vectors=n_vectors, bytes=n_bytes)
    return reclaimed


def _orphaned(pool: Pool, objects: list[StoredObject], before: datetime) -> Iterator[StoredObject]:
    """Objects that no result names, older than anything that a run under way may be about to record."""
    old = [stored for stored in objects if stored.modified_at < before]
    for some in _portions(old):
        with pool.connection() as connection:
            rows = connection.execute(load_queries("garbage")["objects_with_results"], {"objects": [stored.name for stored in some]})
            named = {name for (name,) in rows}
        yield from (stored for stored in some if stored.name not in named)


def _evicted(pool: Pool, lake: Lake, objects: list[StoredObject], max_bytes: int, before: datetime) -> Iterator[StoredObject]:
    excess = sum(stored.size for stored in objects) - max_bytes
    if excess <= 0:
        return
    by_name = {stored.name: stored for stored in objects}
    with pool.connection() as connection:
        candidates = [name for (name,) in connection.execute(load_queries("garbage")["evictable_objects"], {"before": before})]
    for some in _portions([name for name in candidates if name in by_name]):
        chosen: list[str] = []
        for name in some:
            if excess <= 0:
                break
            chosen.append(name)
            excess -= by_name[name].size
        if not chosen:
            return
        with pool.connection() as connection:
            connection.execute(load_queries("garbage")["forget_objects"], {"objects": chosen, "before": before})
            kept = {name for (name,) in connection.execute(load_queries("garbage")["objects_with_results"], {"objects": chosen})}
        reach("garbage.results_forgotten")
        freed = [by_name[name] for name in chosen if name not in kept]
        _remove(lake, freed)
        yield from freed


def _portions(items: list[Part]) -> Iterator[list[Part]]:
    return (items[start : start + OBJECTS_AT_ONCE] for start in range(0, len(items), OBJECTS_AT_ONCE))


def _remove(lake: Lake, objects: list[StoredObject]) -> None:
    for stored in objects:
        lake.remove(stored.name)


def _evict_vectors(pool: Pool, max_bytes: int, before: datetime) -> tuple[int, int]:
    queries = load_queries("garbage")
    with pool.connection() as connection:
        cached = connection.execute(queries["cached_vectors"]).fetchall()
    row_bytes = {spec_hash: 4 * dimension + VECTOR_OVERHEAD_BYTES for spec_hash, _, dimension, _ in cached}
    excess = sum(n * row_bytes[spec_hash] for spec_hash, n, _, _ in cached) - max_bytes
    n_vectors = freed = 0
    for spec_hash, _, _, prefix in cached:
        if excess <= freed:
            break
        limit = -(-(excess - freed) // row_bytes[spec_hash])
        with pool.connection() as connection:
            parameters = {"spec_hash": spec_hash, "prefix": prefix, "before": before, "limit": limit}
            n = connection.execute(queries["evict_vectors"], parameters).rowcount
        n_vectors, freed = n_vectors + n, freed + n * row_bytes[spec_hash]
    return n_vectors, freed
