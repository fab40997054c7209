"""Which keyword indexes hold the entries of which publications, and whose entries may go."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from sql import load_queries
from stemma.settings import Settings
from stemma.store.postgres import Connection
from stemma.store.sparse_indexes import SparseIndex

_QUERIES = "sparse_coverage"


def covered_publications(connection: Connection, index: SparseIndex, publication_ids: Collection[int]) -> set[int]:
    """Those of the publications whose entries the index holds."""
    parameters = {"sparse_index_id": index.sparse_index_id, "publication_ids": list(publication_ids)}
    return {publication_id for (publication_id,) in connection.execute(load_queries(_QUERIES)["covered_publications"], parameters)}


def record_coverage(connection: Connection, index: SparseIndex, n_entries: Mapping[int, int], *, now: datetime) -> None:
    """The index holds publication_id -> number of entries, committed. What was retired while they were written is retired once more."""
    publication_ids = list(n_entries)
    coverage = {"sparse_index_id": index.sparse_index_id, "publication_ids": publication_ids, "n_entries": list(n_entries.values())}
    connection.execute(load_queries(_QUERIES)["record_coverage"], coverage)
    connection.execute(load_queries(_QUERIES)["retire_again"], {"publication_ids": publication_ids, "now": now})


def publications_to_retire(connection: Connection, settings: Settings, *, now: datetime, limit: int = 1_000) -> list[int]:
    """Publications whose keyword entries may go: superseded or abandoned RETIRE_AFTER_S ago or longer."""
    parameters = {"before": now - timedelta(seconds=settings.retire_after_s), "limit": limit}
    rows = connection.execute(load_queries(_QUERIES)["publications_to_retire"], parameters)
    return [publication_id for (publication_id,) in rows]


def mark_retired(connection: Connection, publication_ids: Sequence[int]) -> None:
    """Record that their keyword entries are gone."""
    connection.execute(load_queries(_QUERIES)["mark_retired"], {"publication_ids": list(publication_ids)})
