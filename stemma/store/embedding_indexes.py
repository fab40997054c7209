"""Embedding indexes: one row and one vector table per spec; at most one is active, others are being built beside it."""

import json
import re
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

from psycopg import sql

from sql import load_queries
from stemma.embedding.embedder import EmbeddingSpec
from stemma.errors import ConfigurationError
from stemma.store.hnsw import create_hnsw
from stemma.store.postgres import Connection

IndexState = Literal["building", "active", "retired"]

MAX_DIMENSION = 2_000
"""The widest vector that pgvector's HNSW takes."""

_VECTOR_TABLE = re.compile(r"chunk_vectors_[1-9][0-9]*")
_QUERIES = "corpus_indexes"


class UnsoundEmbeddingIndex(ConfigurationError):
    """A row of embedding_indexes was changed by hand: its table's name or its spec cannot be what Stemma wrote."""

    code, remedy = "embedding_index_unsound", "Nothing was searched or written; restore the row from a backup."


class VectorWidthMismatch(ConfigurationError):
    """A vector table is not as wide as its index's spec says, or is missing."""

    code, remedy = (
        "vector_width_mismatch",
        "Restore the table from a backup, or retire the index and embed again; vectors are never padded or cut.",
    )


class DimensionUnsupported(ConfigurationError):
    """The model's vectors are wider than an HNSW index takes."""

    code, remedy = "embedding_dimension_unsupported", f"Choose a model of at most {MAX_DIMENSION} dimensions."


@dataclass(frozen=True)
class EmbeddingIndex:
    """A row of embedding_indexes; `vector_table` was checked and may stand in SQL as an identifier."""

    embedding_index_id: int
    spec: EmbeddingSpec
    vector_table: str
    state: IndexState
    location: str | None = None
    """The value of EMBEDDING_MODEL that opens its model on this machine; None: never noted."""

    def __post_init__(self) -> None:
        if not _VECTOR_TABLE.fullmatch(self.vector_table):
            raise UnsoundEmbeddingIndex(f"index {self.embedding_index_id} names a table that it cannot have")


def ensure_embedding_index(connection: Connection, spec: EmbeddingSpec, *, location: str | None = None) -> EmbeddingIndex:
    """The index of this spec, made with its table if it is new: active if none is, else building; a retired one is building again.

    An index that is built beside another has no search structure yet: it is faster to fill without, and gets one before the switch.
    Any number of processes may call this at once.

    Args:
        location: the value of EMBEDDING_MODEL that opens the model; None leaves what is noted.
    Raises:
        DimensionUnsupported: HNSW does not take vectors as wide as these.
    """
    found = _ensure(connection, spec, location)
    if location is None or location == found.location:
        return found
    parameters = {"location": location, "embedding_index_id": found.embedding_index_id}
    connection.execute(load_queries(_QUERIES)["locate_embedding_index"], parameters)
    return replace(found, location=location)


def _ensure(connection: Connection, spec: EmbeddingSpec, location: str | None) -> EmbeddingIndex:
    if (found := embedding_index_of(connection, spec)) and found.state != "retired":
        return found
    if spec.dimension > MAX_DIMENSION:
        raise DimensionUnsupported(f"{spec.model} has {spec.dimension} dimensions")
    with connection.transaction():
        # Taken before any lock on chunks, as publications do, which hold it FOR SHARE.
        active = connection.execute("SELECT active_embedding_index FROM corpus_state FOR UPDATE").fetchone()
        state: IndexState = "active" if active == (None,) else "building"
        if found := embedding_index_of(connection, spec):
            if found.state == "retired":
                parameters = {"state": state, "embedding_index_id": found.embedding_index_id}
                connection.execute(load_queries(_QUERIES)["reopen_embedding_index"], parameters)
                found = replace(found, state=state)
        else:
            found = _make(connection, spec, state, location)
        if found.state == "active":
            connection.execute("UPDATE corpus_state SET active_embedding_index = %s", [found.embedding_index_id])
    return found


def make_building_index(connection: Connection, spec: EmbeddingSpec, *, location: str | None) -> EmbeddingIndex:
    """The index of this spec, to be filled and switched to in the caller's transaction, which holds corpus_state alone.

    The active one stays as it is; a new one has no search structure yet. Raises DimensionUnsupported.
    """
    if spec.dimension > MAX_DIMENSION:
        raise DimensionUnsupported(f"{spec.model} has {spec.dimension} dimensions")
    found = embedding_index_of(connection, spec)
    if found is None:
        return _make(connection, spec, "building", location)
    if found.state == "retired":
        parameters = {"state": "building", "embedding_index_id": found.embedding_index_id}
        connection.execute(load_queries(_QUERIES)["reopen_embedding_index"], parameters)
    return found


def active_embedding_index(connection: Connection) -> EmbeddingIndex | None:
    """The index that searches read; None before the first ingest. Raises UnsoundEmbeddingIndex."""
    row = connection.execute(load_queries(_QUERIES)["active_embedding_index"]).fetchone()
    return _index(row) if row else None


def open_embedding_indexes(connection: Connection) -> list[EmbeddingIndex]:
    """The indexes that every new publication needs vectors in: the active one, then those being built. Raises UnsoundEmbeddingIndex."""
    return [_index(row) for row in connection.execute(load_queries(_QUERIES)["open_embedding_indexes"])]


def all_embedding_indexes(connection: Connection) -> list[EmbeddingIndex]:
    """Every index that was not dropped: the active one, those being built, then the retired ones, the latest first."""
    return [_index(row) for row in connection.execute(load_queries(_QUERIES)["all_embedding_indexes"])]


def embedding_index_of(connection: Connection, spec: EmbeddingSpec) -> EmbeddingIndex | None:
    """The index of a spec, whatever its state; None if it was never made, or dropped. Raises UnsoundEmbeddingIndex."""
    row = connection.execute(load_queries(_QUERIES)["embedding_index_of_spec"], [spec.spec_hash]).fetchone()
    return _index(row) if row else None


def check_width(connection: Connection) -> None:
    """Compare the width that the catalogue declares for each open index's table with its spec.

    Raises VectorWidthMismatch, naming both, or UnsoundEmbeddingIndex.
    """
    for index in open_embedding_indexes(connection):
        row = connection.execute(load_queries(_QUERIES)["declared_width"], [index.vector_table]).fetchone()
        if row is None:
            raise VectorWidthMismatch(f"the table {index.vector_table} of {index.spec.model} is missing")
        if row[0] != index.spec.dimension:
            raise VectorWidthMismatch(f"{index.vector_table} is {row[0]} wide, {index.spec.model} has {index.spec.dimension} dimensions")


def _index(row: tuple[Any, ...]) -> EmbeddingIndex:
    embedding_index_id, fields, spec_hash, vector_table, state, location = row
    try:
        spec = EmbeddingSpec(**fields)
    except TypeError as error:
        raise UnsoundEmbeddingIndex(f"index {embedding_index_id} has a spec of another form") from error
    if spec.spec_hash != spec_hash:
        raise UnsoundEmbeddingIndex(f"index {embedding_index_id} has a spec that is not the one it was made for")
    return EmbeddingIndex(embedding_index_id, spec, vector_table, cast(IndexState, state), location)


def _make(connection: Connection, spec: EmbeddingSpec, state: IndexState, location: str | None) -> EmbeddingIndex:
    row = connection.execute("SELECT nextval(pg_get_serial_sequence('embedding_indexes', 'embedding_index_id'))").fetchone()
    assert row is not None
    index = EmbeddingIndex(row[0], spec, f"chunk_vectors_{row[0]}", state, location)
    connection.execute(
        load_queries(_QUERIES)["insert_embedding_index"],
        [index.embedding_index_id, json.dumps(asdict(spec)), spec.spec_hash, spec.dimension, index.vector_table, state, location],
    )
    connection.execute(
        sql.SQL(load_queries(_QUERIES)["create_vector_table"]).format(
            table=sql.Identifier(index.vector_table),
            dimension=sql.Literal(spec.dimension),
            primary_key=sql.Identifier(f"{index.vector_table}_pk"),
            chunk_key=sql.Identifier(f"{index.vector_table}_chunk_fk"),
        )
    )
    if state == "active":
        create_hnsw(connection, index.vector_table)
    return index
