"""Which entries a keyword index holds, and whose are due to go."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from stemma.settings import load_settings
from stemma.store.postgres import Connection, connect
from stemma.store.sparse_coverage import covered_publications, mark_retired, publications_to_retire, record_coverage
from stemma.store.sparse_indexes import SparseIndex, ensure_sparse_index

NOW = datetime(2025, 6, 1, tzinfo=UTC)
SETTINGS = load_settings(retire_after_s=60, query_timeout_s=30)


@pytest.fixture
def connection(database_url: str):
    with connect(database_url) as connection:
        yield connection


@pytest.fixture
def index(connection: Connection) -> SparseIndex:
    return ensure_sparse_index(connection, backend="tantivy", fingerprint="f")


def publication(connection: Connection, state: str, *, age_s: float) -> int:
    superseded_at = None if state in ("pending", "live") else NOW - timedelta(seconds=age_s)
    row = connection.execute(
        "INSERT INTO publications (source_id, source_path, run_id, state, superseded_at) VALUES (%s, 'a.txt', 'run', %s, %s)"
        " RETURNING publication_id",
        [uuid4(), state, superseded_at],
    ).fetchone()
    assert row is not None
    return row[0]


def test_a_publication_is_covered_once_its_entries_are_recorded(connection, index):
    covered, other = (publication(connection, "pending", age_s=0) for _ in range(2))
    record_coverage(connection, index, {covered: 3}, now=NOW)
    assert covered_publications(connection, index, [covered, other]) == {covered}


def test_entries_go_only_a_while_after_their_publication_does(connection):
    due = [publication(connection, state, age_s=61) for state in ("superseded", "abandoned")]
    for state in ("superseded", "abandoned"):
        publication(connection, state, age_s=59)
    for state in ("pending", "live", "retired"):
        publication(connection, state, age_s=1_000)
    assert publications_to_retire(connection, SETTINGS, now=NOW) == due


def test_what_is_retired_is_due_no_more(connection):
    due = publication(connection, "superseded", age_s=61)
    mark_retired(connection, [due])
    assert publications_to_retire(connection, SETTINGS, now=NOW) == []


def test_entries_that_are_written_after_the_sweep_are_swept_once_more(connection, index):
    late = publication(connection, "retired", age_s=1_000)
    record_coverage(connection, index, {late: 3}, now=NOW)
    assert publications_to_retire(connection, SETTINGS, now=NOW) == []
    assert publications_to_retire(connection, SETTINGS, now=NOW + timedelta(seconds=61)) == [late]
