"""The cache of vectors on a real PostgreSQL."""

import threading
from collections.abc import Iterator
from datetime import datetime

import numpy as np
import psycopg
import pytest

from stemma.store.embedding_cache import missing_inputs, read_vectors, store_vectors
from stemma.store.postgres import Connection, connect


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as opened:
        yield opened


def vectors(n: int, dimension: int = 8, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(n, dimension))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def used_at(connection: Connection, input_hash: str) -> datetime:
    row = connection.execute("SELECT last_used_at FROM embedding_cache WHERE input_hash = %s", [input_hash]).fetchone()
    assert row
    return row[0]


def test_vectors_come_back_bit_for_bit_in_the_order_asked(connection: Connection):
    kept = vectors(3)
    store_vectors(connection, "spec", ["a", "b", "c"], kept)
    found, read = read_vectors(connection, "spec", ["c", "absent", "a", "c"])
    assert found == ["c", "a"]
    assert read.dtype == np.float32
    np.testing.assert_array_equal(read, kept[[2, 0]])


def test_nothing_found_is_an_empty_matrix(connection: Connection):
    found, read = read_vectors(connection, "spec", ["a"])
    assert (found, read.shape) == ([], (0, 0))
    assert read_vectors(connection, "spec", [])[0] == []


def test_missing_inputs_are_listed_once_in_the_order_given(connection: Connection):
    store_vectors(connection, "spec", ["b"], vectors(1))
    assert missing_inputs(connection, "spec", ["c", "b", "a", "c"]) == ["c", "a"]
    assert missing_inputs(connection, "spec", []) == []


def test_two_specs_never_share_a_vector(connection: Connection):
    store_vectors(connection, "one", ["a"], vectors(1, 8))
    store_vectors(connection, "two", ["a"], vectors(1, 4))
    assert missing_inputs(connection, "three", ["a"]) == ["a"]
    assert [read_vectors(connection, spec, ["a"])[1].shape for spec in ("one", "two")] == [(1, 8), (1, 4)]


def test_asking_marks_what_is_there_as_used_and_nothing_else(connection: Connection):
    store_vectors(connection, "spec", ["a", "b"], vectors(2))
    connection.execute("UPDATE embedding_cache SET last_used_at = '2020-01-01Z'")
    connection.commit()
    missing_inputs(connection, "spec", ["a", "z"])
    assert used_at(connection, "a").year > 2020
    assert used_at(connection, "b").year == 2020


def test_storing_again_keeps_the_first_vector(connection: Connection):
    first, second = vectors(1, seed=1), vectors(1, seed=2)
    store_vectors(connection, "spec", ["a"], first)
    store_vectors(connection, "spec", ["a", "a"], np.vstack([second, second]))
    np.testing.assert_array_equal(read_vectors(connection, "spec", ["a"])[1], first)


def test_several_stores_fit_into_one_transaction_and_leave_with_it(connection: Connection):
    with pytest.raises(ZeroDivisionError), connection.transaction():
        store_vectors(connection, "spec", ["a"], vectors(1))
        store_vectors(connection, "spec", ["b"], vectors(1))
        assert missing_inputs(connection, "spec", ["a", "b"]) == []
        raise ZeroDivisionError
    assert missing_inputs(connection, "spec", ["a", "b"]) == ["a", "b"]


def test_hashes_and_vectors_must_be_as_many(connection: Connection):
    with pytest.raises(ValueError, match="2 hashes for 1 vectors"):
        store_vectors(connection, "spec", ["a", "b"], vectors(1))
    store_vectors(connection, "spec", [], vectors(0))


def test_a_vector_with_a_number_that_is_none_is_refused_by_the_database(connection: Connection):
    with pytest.raises(psycopg.errors.DataException):
        store_vectors(connection, "spec", ["a"], np.full((1, 8), np.nan, dtype=np.float32))
    connection.rollback()
    assert missing_inputs(connection, "spec", ["a"]) == ["a"]


def test_a_query_that_marks_rows_waits_for_nobody(database_url: str, connection: Connection):
    store_vectors(connection, "spec", ["a", "b"], vectors(2))
    connection.commit()
    missing_inputs(connection, "spec", ["b"])  # this transaction stays open
    with connect(database_url) as other:
        other.execute("SET lock_timeout = '100ms'")
        assert missing_inputs(other, "spec", ["a", "b", "c"]) == ["c"]


def test_many_writers_of_the_same_hashes_in_any_order_all_succeed(database_url: str, connection: Connection):
    hashes = [f"{number:04}" for number in range(400)]
    kept = vectors(400)
    failures: list[BaseException] = []

    def write(seed: int) -> None:
        try:
            order = np.random.default_rng(seed).permutation(400)
            with connect(database_url) as own:
                for part in np.array_split(order, 4):
                    store_vectors(own, "spec", [hashes[number] for number in part], kept[part])
                    missing_inputs(own, "spec", [hashes[number] for number in order])
                    own.commit()
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=[seed]) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    found, read = read_vectors(connection, "spec", hashes)
    assert found == hashes
    np.testing.assert_array_equal(read, kept)
