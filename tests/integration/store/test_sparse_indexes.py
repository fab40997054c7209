"""Keyword indexes' rows on a real PostgreSQL."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from stemma.store.postgres import Connection, connect
from stemma.store.sparse_indexes import (
    SparseIndex,
    active_sparse_index,
    ensure_sparse_index,
    open_sparse_indexes,
    replace_lost_index,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def connection(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as opened:
        yield opened


def test_the_first_index_is_active_and_a_further_one_is_built_beside_it(connection: Connection):
    assert active_sparse_index(connection) is None
    first = ensure_sparse_index(connection, backend="tantivy", fingerprint="a")
    second = ensure_sparse_index(connection, backend="tantivy", fingerprint="b")
    assert (first.state, second.state) == ("active", "building")
    assert first.name != second.name
    assert active_sparse_index(connection) == first
    assert open_sparse_indexes(connection) == [first, second]


def test_ensuring_twice_is_once(connection: Connection):
    assert ensure_sparse_index(connection, backend="tantivy", fingerprint="a") == ensure_sparse_index(
        connection, backend="tantivy", fingerprint="a"
    )


def test_processes_that_start_at_once_make_one_index_per_recipe_and_one_active(database_url: str, connection: Connection):
    made: list[SparseIndex] = []
    gate = threading.Barrier(8)

    def ensure(fingerprint: str) -> None:
        with connect(database_url) as own:
            gate.wait()
            made.append(ensure_sparse_index(own, backend="tantivy", fingerprint=fingerprint))

    threads = [threading.Thread(target=ensure, args=[fingerprint]) for fingerprint in "ab" * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({index.name for index in made}) == 2
    assert sorted(index.state for index in open_sparse_indexes(connection)) == ["active", "building"]


def test_a_retired_index_that_is_wanted_again_is_made_anew(connection: Connection):
    ensure_sparse_index(connection, backend="tantivy", fingerprint="a")
    second = ensure_sparse_index(connection, backend="tantivy", fingerprint="b")
    connection.execute("UPDATE sparse_indexes SET state = 'retired' WHERE fingerprint = 'b'")
    assert open_sparse_indexes(connection) == [active_sparse_index(connection)]
    third = ensure_sparse_index(connection, backend="tantivy", fingerprint="b")
    assert third.state == "building" and third.name != second.name


def test_a_lost_index_gives_its_place_to_an_empty_one_once(connection: Connection):
    connection.autocommit = True
    lost = ensure_sparse_index(connection, backend="tantivy", fingerprint="a")
    replacement = replace_lost_index(connection, lost, now=NOW)
    assert (replacement.state, replacement.incomplete) == ("active", True)
    assert active_sparse_index(connection) == replacement == replace_lost_index(connection, lost, now=NOW)
    assert ensure_sparse_index(connection, backend="tantivy", fingerprint="a") == replacement
    assert open_sparse_indexes(connection) == [replacement]
