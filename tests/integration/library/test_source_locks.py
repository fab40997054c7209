"""Advisory locks: one order, one holder."""

import threading
from uuid import UUID, uuid4

import psycopg
import pytest

from stemma.store.locks import (
    SOURCES_PER_TRANSACTION,
    batch_lock_key,
    giving_way,
    lock_sources,
    release_session_lock,
    source_lock_key,
    try_session_lock,
)
from stemma.store.postgres import connect


def test_keys_are_signed_64_bit_numbers_of_their_kind():
    identity = UUID(int=7)
    keys = [source_lock_key(identity), batch_lock_key(identity)]
    assert len(set(keys)) == 2
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_locks_are_taken_in_the_order_of_source_ids(database_url: str):
    source_ids = [uuid4() for _ in range(50)]
    first, last = min(source_ids), max(source_ids)
    with connect(database_url) as holder, connect(database_url) as waiter, connect(database_url) as witness:
        lock_sources(holder, [sorted(source_ids)[25]])
        waiter.execute("SET lock_timeout = 0")
        thread = threading.Thread(target=lock_sources, args=(waiter, source_ids))
        thread.start()
        while not witness.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").fetchone()[0]:
            pass
        # It waits for the 26th: those before it are held, those behind it are free.
        assert not try_session_lock(witness, source_lock_key(first))
        assert try_session_lock(witness, source_lock_key(last))
        release_session_lock(witness, source_lock_key(last))
        witness.rollback()
        assert witness.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted").fetchone() == (26,)
        holder.rollback()
        thread.join()


def test_many_transactions_over_the_same_sources_never_deadlock(database_url: str):
    source_ids = [uuid4() for _ in range(40)]
    errors: list[Exception] = []

    def work(ordered: list[UUID]) -> None:
        try:
            with connect(database_url) as connection:
                for _ in range(20):
                    lock_sources(connection, ordered)
                    connection.rollback()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(source_ids[::step],)) for step in (1, -1, 2, -2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_more_sources_than_the_lock_table_can_hold_are_refused(database_url: str):
    with connect(database_url) as connection, pytest.raises(ValueError, match="at most"):
        lock_sources(connection, [uuid4() for _ in range(SOURCES_PER_TRANSACTION + 1)])


def test_who_gives_way_loses_the_deadlock_and_still_ends(database_url: str):
    with connect(database_url) as other, connect(database_url) as one:
        other.execute("CREATE TABLE numbers (n integer PRIMARY KEY, by text)")
        other.execute("INSERT INTO numbers VALUES (1), (2)")
        other.commit()
        other.execute("UPDATE numbers SET by = 'other' WHERE n = 1")
        first_try = threading.Event()

        def work() -> None:
            one.execute("UPDATE numbers SET by = 'one' WHERE n = 2")
            first_try.set()
            one.execute("UPDATE numbers SET by = 'one' WHERE n = 1")

        one.autocommit = True
        thread = threading.Thread(target=giving_way, args=(one, work))
        thread.start()
        assert first_try.wait(5)
        other.execute("UPDATE numbers SET by = 'other' WHERE n = 2")  # a deadlock, in which this one is spared
        other.commit()
        thread.join()
        assert other.execute("SELECT n, by FROM numbers ORDER BY n").fetchall() == [(1, "one"), (2, "one")]


def test_who_gives_way_gives_up_in_the_end(database_url: str, monkeypatch):
    monkeypatch.setattr("stemma.store.locks._TRIES", 2)
    with connect(database_url) as other, connect(database_url) as one:
        other.execute("LOCK corpus_state")
        one.rollback()
        one.autocommit = True
        with pytest.raises(psycopg.errors.LockNotAvailable):
            giving_way(one, lambda: one.execute("UPDATE corpus_state SET epoch = epoch"))
