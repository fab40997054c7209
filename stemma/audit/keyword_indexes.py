"""The keyword indexes against the rows: every published chunk has its entry, and nothing else has one."""

import contextlib
from collections.abc import Callable, Iterator

import polars as pl

from sql import load_queries
from stemma.audit.violations import violations
from stemma.errors import ConfigurationError, Unavailable
from stemma.lexical.index import LexicalIndex
from stemma.store.postgres import Connection, Pool
from stemma.store.sparse_indexes import SparseIndex, active_sparse_index, open_sparse_indexes


def audit_keyword_indexes(connection: Connection, pool: Pool, *, index_of: Callable[[SparseIndex], LexicalIndex]) -> Iterator[pl.DataFrame]:
    """Violations (VIOLATION_SCHEMA) of the keyword indexes that are active or building.

    Entries are read after the caller's snapshot was taken: what is live in it was written before, and is not removed within
    RETIRE_AFTER_S. What the snapshot does not know may be newer, so it is looked up once more, outside of it.
    """
    queries = load_queries("audit")
    active = active_sparse_index(connection)
    rows = connection.execute(queries["publications_by_state"]).fetchall()
    for index in open_sparse_indexes(connection):
        try:
            with contextlib.closing(index_of(index)) as engine:
                n_entries = engine.publications()
        except (Unavailable, ConfigurationError) as error:
            yield violations("keyword_index_unreadable", [(index.name, None, str(error))])
            continue
        known = {publication_id for publication_id, *_ in rows}
        strangers = sorted(n_entries.keys() - known)
        with pool.connection() as later:
            known_now = {row[0] for row in later.execute(queries["publications_by_state"])} if strangers else set[int]()
        yield violations(
            "keyword_entries_orphaned",
            [
                (str(publication_id), None, f"{n_entries[publication_id]} entries of a publication that is gone, in {index.name}")
                for publication_id in strangers
                if publication_id not in known_now
            ],
        )
        if index == active:
            wrong = violations("keyword_entries_missing", _wrong_counts(rows, n_entries))
            yield wrong
            covered = connection.execute(queries["not_covered"], {"sparse_index_id": index.sparse_index_id}).fetchall()
            yield violations("keyword_entries_missing", (row for row in covered if row[0] not in set(wrong["subject"])))


def _wrong_counts(rows: list[tuple[int, str, str, str, int | None]], n_entries: dict[int, int]) -> Iterator[tuple[str, str, str]]:
    for publication_id, source_id, state, subject, n_chunks in rows:
        found = n_entries.get(publication_id, 0)
        if state == "live" and n_chunks is not None and found != n_chunks:
            yield subject, source_id, f"{found} entries for {n_chunks} chunks"
