"""Embedding indexes and their vector tables on a real PostgreSQL."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import LiteralString

import psycopg
import pytest
from psycopg import sql

from stemma.embedding.embedder import EmbeddingSpec
from stemma.store.embedding_indexes import (
    DimensionUnsupported,
    EmbeddingIndex,
    UnsoundEmbeddingIndex,
    VectorWidthMismatch,
    active_embedding_index,
    check_width,
    ensure_embedding_index,
    open_embedding_indexes,
)
from stemma.store.postgres import Connection, connect

FIRST = EmbeddingSpec(model="first", revision="1" * 64, dimension=8, max_tokens=256)
SECOND = replace(FIRST, model="second")


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as opened:
        yield opened


def test_the_first_index_is_active_and_a_further_one_is_built_beside_it(connection: Connection):
    assert active_embedding_index(connection) is None
    first, second = ensure_embedding_index(connection, FIRST), ensure_embedding_index(connection, SECOND)
    assert (first.state, second.state) == ("active", "building")
    assert active_embedding_index(connection) == first
    assert open_embedding_indexes(connection) == [first, second]
    assert first.vector_table != second.vector_table


def test_ensuring_twice_is_once(connection: Connection):
    assert ensure_embedding_index(connection, FIRST) == ensure_embedding_index(connection, FIRST)
    assert ensure_embedding_index(connection, replace(FIRST, semantic_weight=0.7)).spec == FIRST
    assert len(open_embedding_indexes(connection)) == 1


@pytest.mark.parametrize("changed", [{"revision": "2" * 64}, {"passage_prefix": "passage: "}, {"max_tokens": 512}, {"pooling": "cls"}])
def test_anything_that_changes_vectors_makes_another_index(connection: Connection, changed: dict):
    first = ensure_embedding_index(connection, FIRST)
    assert ensure_embedding_index(connection, replace(FIRST, **changed)).embedding_index_id != first.embedding_index_id


def test_processes_that_start_at_once_make_one_index_per_spec_and_one_active(database_url: str, connection: Connection):
    made: list[EmbeddingIndex] = []
    gate = threading.Barrier(8)

    def ensure(spec: EmbeddingSpec) -> None:
        with connect(database_url) as own:
            gate.wait()
            made.append(ensure_embedding_index(own, spec))

    threads = [threading.Thread(target=ensure, args=[spec]) for spec in (FIRST, SECOND) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len({index.embedding_index_id for index in made}) == 2
    assert sorted(index.state for index in open_embedding_indexes(connection)) == ["active", "building"]


def test_the_vector_table_is_as_specified(connection: Connection):
    index = ensure_embedding_index(connection, FIRST)
    name = index.vector_table
    constraints = connection.execute(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = %s::regclass AND contype <> 'n' ORDER BY conname",
        [name],
    ).fetchall()
    assert constraints == [
        (f"{name}_chunk_fk", "FOREIGN KEY (publication_id, chunk_index) REFERENCES chunks(publication_id, chunk_index) ON DELETE CASCADE"),
        (f"{name}_pk", "PRIMARY KEY (publication_id, chunk_index)"),
    ]
    definition = connection.execute("SELECT indexdef FROM pg_indexes WHERE indexname = %s", [f"{name}_hnsw"]).fetchone()
    assert definition
    assert "USING hnsw (embedding vector_cosine_ops) WITH (m='16', ef_construction='64')" in definition[0]


def test_a_vector_without_a_chunk_is_refused(connection: Connection):
    index = ensure_embedding_index(connection, FIRST)
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        connection.execute(sql.SQL("INSERT INTO {} VALUES (1, 0, '[1,0,0,0,0,0,0,0]')").format(sql.Identifier(index.vector_table)))


def test_a_retired_index_that_is_wanted_again_is_building_again(connection: Connection):
    ensure_embedding_index(connection, FIRST)
    second = ensure_embedding_index(connection, SECOND)
    connection.execute("UPDATE embedding_indexes SET state = 'retired' WHERE embedding_index_id = %s", [second.embedding_index_id])
    assert ensure_embedding_index(connection, SECOND) == second


def test_a_model_wider_than_hnsw_takes_is_refused_before_anything_is_made(connection: Connection):
    with pytest.raises(DimensionUnsupported, match="4096"):
        ensure_embedding_index(connection, replace(FIRST, dimension=4096))
    assert open_embedding_indexes(connection) == []


def test_a_sound_table_passes_the_check_of_widths(connection: Connection):
    check_width(connection)
    ensure_embedding_index(connection, FIRST)
    ensure_embedding_index(connection, replace(SECOND, dimension=16))
    check_width(connection)


def test_a_table_of_another_width_is_refused_naming_both(connection: Connection):
    index = ensure_embedding_index(connection, FIRST)
    connection.execute(f"ALTER TABLE {index.vector_table} ALTER COLUMN embedding TYPE vector(9)")
    with pytest.raises(VectorWidthMismatch, match="is 9 wide, first has 8 dimensions"):
        check_width(connection)


def test_a_missing_table_is_refused(connection: Connection):
    index = ensure_embedding_index(connection, FIRST)
    connection.execute(f"DROP TABLE {index.vector_table}")
    with pytest.raises(VectorWidthMismatch, match="is missing"):
        check_width(connection)


@pytest.mark.parametrize(
    "name", ["chunks", "chunk_vectors_1; DROP TABLE chunks", "chunk_vectors_0", "chunk_vectors_1\n", "chunk_vectors_x", ""]
)
def test_a_row_that_names_another_table_raises_instead_of_running(connection: Connection, name: str):
    ensure_embedding_index(connection, FIRST)
    connection.execute("ALTER TABLE embedding_indexes DROP CONSTRAINT embedding_indexes_vector_table_ck")
    connection.execute("ALTER TABLE embedding_indexes DISABLE TRIGGER embedding_indexes_spec_frozen")
    connection.execute("UPDATE embedding_indexes SET vector_table = %s", [name])
    for read in (active_embedding_index, open_embedding_indexes, check_width):
        with pytest.raises(UnsoundEmbeddingIndex):
            read(connection)


@pytest.mark.parametrize("spec", ['spec || \'{"model": "other"}\'', "'{\"unknown\": 1}'", "'[]'"])
def test_a_row_with_another_spec_raises(connection: Connection, spec: LiteralString):
    ensure_embedding_index(connection, FIRST)
    connection.execute("ALTER TABLE embedding_indexes DISABLE TRIGGER embedding_indexes_spec_frozen")
    connection.execute(sql.SQL("UPDATE embedding_indexes SET spec = {}").format(sql.SQL(spec)))
    with pytest.raises(UnsoundEmbeddingIndex):
        active_embedding_index(connection)


def test_a_spec_is_frozen(connection: Connection):
    ensure_embedding_index(connection, FIRST)
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="frozen"):
        connection.execute("UPDATE embedding_indexes SET spec = spec || '{\"max_tokens\": 1}'")
