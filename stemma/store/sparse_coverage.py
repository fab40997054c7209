"""Which keyword indexes hold the entries of which publications, and whose entries may go."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from sql import load_queries
from stemma.settings import Settings
from stemma.store.locks import giving_way
from stemma.store.made_outside_runs import note_made_outside_runs
from stemma.store.postgres import Connection
from stemma.store.sparse_indexes import SparseIndex

_QUERIES = "sparse_coverage"


def covered_publications(connection: Connection, index: SparseIndex, publication_ids: Collection[int]) -> set[int]:
    """Those of the publications whose entries the index holds."""
    parameters = {"sparse_index_id": index.sparse_index_id, "publication_ids": list(publication_ids)}
    return {publication_id for (publication_id,) in connection.execute(load_queries(_QUERIES)["covered_publications"], parameters)}


def n_uncovered(connection: Connection, index: SparseIndex) -> int:
    """How many live publications with chunks have no entries in the index."""
    row = connection.execute(load_queries(_QUERIES)["n_uncovered"], {"sparse_index_id": index.sparse_index_id}).fetchone()
    return row[0] if row else 0


def uncovered_publications(connection: Connection, index: SparseIndex, *, after: int, limit: int) -> list[tuple[int, int]]:
    """The next live publications above a number without entries in the index: (publication_id, number of chunks), ascending."""
    parameters = {"sparse_index_id": index.sparse_index_id, "after": after, "limit": limit}
    return connection.execute(load_queries(_QUERIES)["uncovered_publications"], parameters).fetchall()


def recorded_entries(connection: Connection, index: SparseIndex) -> dict[int, int]:
    """publication_id -> number of entries that the index must hold, of what is live."""
    return dict(connection.execute(load_queries(_QUERIES)["recorded_entries"], {"sparse_index_id": index.sparse_index_id}).fetchall())


def record_coverage(connection: Connection, index: SparseIndex, n_entries: Mapping[int, int], *, now: datetime) -> None:
    """The index holds publication_id -> number of entries, committed. What was retired while they were written is retired once more."""
    publication_ids = list(n_entries)
    coverage = {"sparse_index_id": index.sparse_index_id, "publication_ids": publication_ids, "n_entries": list(n_entries.values())}
    connection.execute(load_queries(_QUERIES)["record_coverage"], coverage)
    connection.execute(load_queries(_QUERIES)["retire_again"], {"publication_ids": publication_ids, "now": now})


def note_entries(connection: Connection, index: SparseIndex, fingerprint: str, *, now: datetime) -> int:
    """Record that the entries of what is live are those of this index; returns the documents for which that was news.

    The connection is in autocommit.
    """
    parameters = {"sparse_index_id": index.sparse_index_id, "fingerprint": fingerprint, "now": now}

    def note() -> int:
        n_documents = connection.execute(load_queries(_QUERIES)["note_entries"], parameters).rowcount
        if n_documents:
            note_made_outside_runs(connection, now=now)
        return n_documents

    return giving_way(connection, note)


def publications_to_retire(connection: Connection, settings: Settings, *, now: datetime, limit: int = 1_000) -> list[int]:
    """Publications whose keyword entries may go: superseded or abandoned RETIRE_AFTER_S ago or longer."""
    parameters = {"before": now - timedelta(seconds=settings.retire_after_s), "limit": limit}
    rows = connection.execute(load_queries(_QUERIES)["publications_to_retire"], parameters)
    return [publication_id for (publication_id,) in rows]


def mark_retired(connection: Connection, publication_ids: Sequence[int]) -> None:
    """Record that their keyword entries are gone."""
    connection.execute(load_queries(_QUERIES)["mark_retired"], {"publication_ids": list(publication_ids)})
