"""Keyword indexes: rows per engine and recipe; at most one is active, others are being built beside it.

Everything in one is a copy of rows, so none is ever mended: a lost or damaged one is replaced by a new one of the same recipe.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypedDict

from sql import load_queries
from stemma.failpoints import reach
from stemma.store.locks import giving_way
from stemma.store.postgres import Connection

Backend = Literal["tantivy", "elasticsearch"]
IndexState = Literal["building", "active", "retired"]

_QUERIES = "corpus_indexes"


class Recipe(TypedDict):
    """What an index is made by."""

    backend: Backend
    fingerprint: str
    language: str


@dataclass(frozen=True)
class SparseIndex:
    """A row of sparse_indexes."""

    sparse_index_id: int
    name: str
    """Of the engine's folder or index; never used before, so that what another database left behind is not taken for its own."""
    backend: Backend
    state: IndexState
    incomplete: bool = False
    """It took the place of a lost one and does not hold every live document yet: writers write to it, searches do not read it."""
    language: str = "english"
    """Whose stems and stop words it is made with."""

    def folder(self, home: Path) -> Path:
        """Where an embedded engine keeps it."""
        return home / "bm25" / self.name


def ensure_sparse_index(connection: Connection, *, backend: Backend, fingerprint: str, language: str = "english") -> SparseIndex:
    """The index of this recipe, its row made if there is none that takes part: active if none is, else building.

    Any number of processes may call this at once. The engine makes its files or index at the first write.
    """
    if found := _of_recipe(connection, fingerprint):
        return found
    with connection.transaction():
        active = connection.execute("SELECT active_sparse_index FROM corpus_state FOR UPDATE").fetchone()
        if found := _of_recipe(connection, fingerprint):
            return found
        index = _make(connection, backend, fingerprint, language, "active" if active == (None,) else "building")
        if index.state == "active":
            connection.execute("UPDATE corpus_state SET active_sparse_index = %s", [index.sparse_index_id])
    return index


def begin_second_index(connection: Connection, *, backend: Backend, fingerprint: str, language: str = "english") -> SparseIndex:
    """The index of this recipe that is being built beside the active one, made if there is none, though the active one has this recipe too.

    The connection is in autocommit.
    """

    def begin() -> SparseIndex:
        connection.execute(load_queries(_QUERIES)["lock_corpus_alone"])
        building = [index for index in open_sparse_indexes(connection) if index.state == "building"]
        same = [index for index in building if _recipe(connection, index) == fingerprint]
        return same[0] if same else _make(connection, backend, fingerprint, language, "building")

    return giving_way(connection, begin)


def replace_lost_index(connection: Connection, lost: SparseIndex, *, recipe: Recipe | None = None, now: datetime) -> SparseIndex:
    """Put an empty index in the place of one that is lost or damaged, and return it: of this recipe, or else of its own.

    From this moment documents are published into the new one, and full-text search answers until it holds all that is live. If another
    process has replaced it already, that one is returned. The connection is in autocommit.
    """
    queries = load_queries(_QUERIES)

    def exchange() -> SparseIndex:
        connection.execute(queries["lock_corpus_alone"])
        present = {index.sparse_index_id: index for index in open_sparse_indexes(connection)}
        active = active_sparse_index(connection)
        assert active is not None, "an index can only be lost after the first was made"
        if lost.sparse_index_id not in present:
            return active
        if lost.sparse_index_id != active.sparse_index_id:
            connection.execute(queries["retire_sparse_index"], {"sparse_index_id": lost.sparse_index_id, "now": now})
            return active
        own = Recipe(backend=lost.backend, fingerprint=_recipe(connection, lost), language=lost.language)
        made = _make(connection, **(recipe or own), state="building")
        connection.execute(queries["retire_sparse_index"], {"sparse_index_id": lost.sparse_index_id, "now": now})
        connection.execute(queries["activate_sparse_index"], {"sparse_index_id": made.sparse_index_id, "incomplete_since": now})
        return SparseIndex(made.sparse_index_id, made.name, made.backend, "active", incomplete=True, language=made.language)

    return giving_way(connection, exchange)


def switch_sparse_index(connection: Connection, index: SparseIndex, *, now: datetime) -> int:
    """Let searches read this index, and retire all others, if it holds the entries of everything that is live.

    Looked at under the lock that publications share. The connection is in autocommit.

    Returns:
        How many live publications it lacks: 0 means that searches read it now.
    """
    queries = load_queries(_QUERIES)

    def switch() -> int:
        connection.execute(queries["lock_corpus_alone"])
        present = {found.sparse_index_id for found in open_sparse_indexes(connection)}
        parameters: dict[str, Any] = {"sparse_index_id": index.sparse_index_id}
        (n_lacking,) = connection.execute(load_queries("sparse_coverage")["n_uncovered"], parameters).fetchone() or (0,)
        if n_lacking or index.sparse_index_id not in present:
            return max(n_lacking, 1)
        connection.execute(queries["retire_sparse_indexes"], parameters | {"now": now})
        connection.execute(queries["activate_sparse_index"], parameters | {"incomplete_since": None})
        reach("keyword_switch.before_commit")
        return 0

    return giving_way(connection, switch)


def retire_unwanted(connection: Connection, fingerprint: str, *, now: datetime) -> int:
    """Retire what is being built by a recipe that nobody wants any more; returns how many."""
    parameters = {"fingerprint": fingerprint, "now": now}
    queries = load_queries(_QUERIES)

    def retire() -> int:
        connection.execute(queries["lock_corpus_alone"])
        return connection.execute(queries["retire_unwanted_sparse_indexes"], parameters).rowcount

    return giving_way(connection, retire)


def droppable_sparse_indexes(connection: Connection, *, before: datetime) -> list[SparseIndex]:
    """Retired indexes that no query can still be reading: those retired before that moment."""
    return [SparseIndex(*row) for row in connection.execute(load_queries(_QUERIES)["droppable_sparse_indexes"], {"before": before})]


def drop_sparse_index(connection: Connection, index: SparseIndex) -> None:
    """Forget a retired index, with what was recorded of its entries. First its files, then this row that says they may exist."""
    connection.execute("DELETE FROM sparse_indexes WHERE sparse_index_id = %s AND state = 'retired'", [index.sparse_index_id])


def active_sparse_index(connection: Connection) -> SparseIndex | None:
    """The index that searches read; None before the first ingest."""
    return _index(connection.execute(load_queries(_QUERIES)["active_sparse_index"]).fetchone())


def open_sparse_indexes(connection: Connection) -> list[SparseIndex]:
    """The indexes that every new publication needs entries in: the active one, then those being built."""
    return [SparseIndex(*row) for row in connection.execute(load_queries(_QUERIES)["open_sparse_indexes"])]


def is_of_active_recipe(connection: Connection, index: SparseIndex) -> bool:
    """Whether the index is made as the one that searches read."""
    active = active_sparse_index(connection)
    return active is not None and _recipe(connection, active) == _recipe(connection, index)


def _make(connection: Connection, backend: Backend, fingerprint: str, language: str, state: IndexState) -> SparseIndex:
    values = [backend, f"stemma_bm25_{secrets.token_hex(4)}", fingerprint, state, language]
    row = connection.execute(load_queries(_QUERIES)["insert_sparse_index"], values).fetchone()
    assert row is not None
    return SparseIndex(*row)


def _recipe(connection: Connection, index: SparseIndex) -> str:
    row = connection.execute(load_queries(_QUERIES)["recipe_of_sparse_index"], [index.sparse_index_id]).fetchone()
    assert row is not None
    return row[0]


def _of_recipe(connection: Connection, fingerprint: str) -> SparseIndex | None:
    return _index(connection.execute(load_queries(_QUERIES)["sparse_index_of_recipe"], [fingerprint]).fetchone())


def _index(row: tuple[Any, ...] | None) -> SparseIndex | None:
    return SparseIndex(*row) if row else None
