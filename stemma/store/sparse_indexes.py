"""Keyword indexes: one row per engine and recipe; at most one is active, others are being built beside it."""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sql import load_queries
from stemma.store.postgres import Connection

Backend = Literal["tantivy", "elasticsearch"]
IndexState = Literal["building", "active", "retired"]

_QUERIES = "corpus_indexes"


@dataclass(frozen=True)
class SparseIndex:
    """A row of sparse_indexes."""

    sparse_index_id: int
    name: str
    """Of the engine's folder or index; never used before, so that what another database left behind is not taken for its own."""
    backend: Backend
    state: IndexState

    def folder(self, home: Path) -> Path:
        """Where an embedded engine keeps it."""
        return home / "bm25" / self.name


def ensure_sparse_index(connection: Connection, *, backend: Backend, fingerprint: str) -> SparseIndex:
    """The index of this recipe, its row made if it is new: active if none is, else building; a retired one is building again.

    Any number of processes may call this at once. The engine makes its files or index at the first write.
    """
    if (found := _of_recipe(connection, fingerprint)) and found.state != "retired":
        return found
    with connection.transaction():
        active = connection.execute("SELECT active_sparse_index FROM corpus_state FOR UPDATE").fetchone()
        state: IndexState = "active" if active == (None,) else "building"
        row = connection.execute(
            load_queries(_QUERIES)["keep_sparse_index"], [backend, f"stemma_bm25_{secrets.token_hex(4)}", fingerprint, state]
        ).fetchone()
        assert row is not None
        index = SparseIndex(*row)
        if index.state == "active":
            connection.execute("UPDATE corpus_state SET active_sparse_index = %s", [index.sparse_index_id])
    return index


def active_sparse_index(connection: Connection) -> SparseIndex | None:
    """The index that searches read; None before the first ingest."""
    return _index(connection.execute(load_queries(_QUERIES)["active_sparse_index"]).fetchone())


def open_sparse_indexes(connection: Connection) -> list[SparseIndex]:
    """The indexes that every new publication needs entries in: the active one, then those being built."""
    return [SparseIndex(*row) for row in connection.execute(load_queries(_QUERIES)["open_sparse_indexes"])]


def _of_recipe(connection: Connection, fingerprint: str) -> SparseIndex | None:
    return _index(connection.execute(load_queries(_QUERIES)["sparse_index_of_recipe"], [fingerprint]).fetchone())


def _index(row: tuple[Any, ...] | None) -> SparseIndex | None:
    return SparseIndex(*row) if row else None
