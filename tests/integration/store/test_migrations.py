"""The migrations runner on real databases: whole or not at all, once, in order, by one at a time."""

import re
import threading
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from stemma.store import migrations
from stemma.store.migrations import (
    InvalidMigration,
    Migration,
    MigrationDrift,
    MigrationFailed,
    NewerSchema,
    PendingMigrations,
    applied_migrations,
    require_current,
    shipped_migrations,
    upgrade,
)
from stemma.store.postgres import connect

FIRST = Migration("001_first.sql", "CREATE TABLE first (first_id integer CONSTRAINT first_pk PRIMARY KEY);")
SECOND = Migration("002_second.sql", "CREATE TABLE second (second_id integer CONSTRAINT second_pk PRIMARY KEY);")

_SCHEMA = """
    SELECT 'column', table_name, column_name, data_type || ' ' || is_nullable || ' ' || coalesce(column_default, generation_expression, '')
      FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL
    SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
     WHERE connamespace = 'public'::regnamespace AND conrelid <> 0
    UNION ALL
    SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL
    SELECT 'view', viewname, '', definition FROM pg_views WHERE schemaname = 'public'
    UNION ALL
    SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL
    SELECT 'function', proname, pg_get_function_identity_arguments(p.oid), pg_get_functiondef(p.oid) FROM pg_proc AS p
     WHERE pronamespace = 'public'::regnamespace
       AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e')
    ORDER BY 1, 2, 3, 4
"""


def schema_of(url: str) -> list[tuple[str, ...]]:
    """Everything in the public schema that a migration could have made, as text."""
    with psycopg.connect(url) as connection:
        return connection.execute(_SCHEMA).fetchall()


def tables(url: str) -> set[str]:
    return {name for kind, name, *_ in schema_of(url) if kind == "column"}


def way_down(migration: Migration) -> str:
    return (files("sql") / "migrations" / "down" / migration.name).read_text("utf-8")


def test_an_empty_database_reaches_the_last_migration(empty_database_url):
    with connect(empty_database_url) as connection:
        assert upgrade(connection) == [migration.name for migration in shipped_migrations()]
        require_current(connection)


def test_a_rerun_applies_nothing_and_changes_nothing(database_url):
    before = schema_of(database_url)
    with connect(database_url) as connection:
        assert upgrade(connection) == []
    assert schema_of(database_url) == before


def test_every_migration_may_run_again_over_itself(database_url):
    """IF NOT EXISTS-safe: a database whose bookkeeping was lost converges to the same schema."""
    before = schema_of(database_url)
    with connect(database_url) as connection:
        connection.execute("DELETE FROM schema_migrations")
        connection.commit()
        assert upgrade(connection) == [migration.name for migration in shipped_migrations()]
    assert schema_of(database_url) == before


def test_up_down_up_leaves_the_same_schema(database_url):
    before = schema_of(database_url)
    with connect(database_url) as connection:
        for migration in reversed(shipped_migrations()):
            with connection.transaction():
                connection.execute(way_down(migration))
                connection.execute("DELETE FROM schema_migrations WHERE name = %s", [migration.name])
    assert tables(database_url) == {"schema_migrations"}
    with connect(database_url) as connection:
        upgrade(connection)
    assert schema_of(database_url) == before


def test_each_way_down_leaves_what_the_migrations_before_it_made(empty_database_url):
    """Down from N is the schema of N-1, for every N."""
    shipped = shipped_migrations()
    after: list[list[tuple[str, ...]]] = []
    with connect(empty_database_url) as connection:
        upgrade(connection, [])
        for number in range(len(shipped)):
            after.append(schema_of(empty_database_url))
            upgrade(connection, shipped[: number + 1])
            connection.commit()
        for number in reversed(range(1, len(shipped))):
            with connection.transaction():
                connection.execute(way_down(shipped[number]))
            connection.commit()
            assert schema_of(empty_database_url) == after[number], shipped[number].name


@pytest.mark.parametrize("name", ["4_short.sql", "004-dash.sql", "004_Upper.sql", "004.sql", "notes.sql", "0040_long.sql"])
def test_a_misnamed_file_fails_the_run_before_anything_is_applied(name, tmp_path, empty_database_url):
    (tmp_path / "001_first.sql").write_text(FIRST.sql)
    (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(InvalidMigration, match=name), connect(empty_database_url) as connection:
        upgrade(connection, shipped_migrations(tmp_path))
    assert tables(empty_database_url) == set()


def test_two_files_with_one_number_fail_the_run(tmp_path):
    (tmp_path / "001_first.sql").write_text("SELECT 1;")
    (tmp_path / "001_other.sql").write_text("SELECT 1;")
    with pytest.raises(InvalidMigration, match="has the number of"):
        shipped_migrations(tmp_path)


def test_a_file_that_is_no_sql_is_no_concern_of_the_runner(tmp_path):
    (tmp_path / "001_first.sql").write_text("SELECT 1;")
    (tmp_path / "README.md").write_text("about")
    assert [migration.name for migration in shipped_migrations(tmp_path)] == ["001_first.sql"]


def test_the_shipped_numbers_have_no_gap_and_each_file_says_why_and_has_a_way_down():
    folder = Path(str(files("sql") / "migrations"))
    shipped = shipped_migrations()
    assert [int(migration.name[:3]) for migration in shipped] == list(range(1, len(shipped) + 1))
    assert {file.name for file in (folder / "down").glob("*.sql")} == {migration.name for migration in shipped}
    assert [migration.name for migration in shipped if not migration.sql.startswith("-- ")] == []


def test_a_failing_file_leaves_nothing_behind_and_the_next_run_tries_exactly_that_file(empty_database_url):
    broken = Migration("002_second.sql", SECOND.sql + "INSERT INTO second VALUES (1), (1);")
    with connect(empty_database_url) as connection, pytest.raises(MigrationFailed, match=r"002_second\.sql.*second_pk"):
        upgrade(connection, [FIRST, broken])
    assert tables(empty_database_url) == {"first", "schema_migrations"}
    with connect(empty_database_url) as connection:
        assert list(applied_migrations(connection)) == ["001_first.sql"]
        assert upgrade(connection, [FIRST, SECOND]) == ["002_second.sql"]


@pytest.mark.parametrize("migration", shipped_migrations(), ids=lambda migration: migration.name)
def test_no_file_ends_the_transaction_that_its_bookkeeping_belongs_to(migration):
    outside_functions = re.sub(r"\$\$.*?\$\$", "", migration.sql, flags=re.DOTALL)
    assert re.findall(r"(?im)^\s*(commit|rollback|begin|start transaction|savepoint)\b", outside_functions) == []


def test_an_applied_file_whose_text_changed_is_reported(empty_database_url):
    with connect(empty_database_url) as connection:
        upgrade(connection, [FIRST])
        with pytest.raises(MigrationDrift, match=r"001_first\.sql"):
            upgrade(connection, [Migration(FIRST.name, FIRST.sql + " "), SECOND])
    assert tables(empty_database_url) == {"first", "schema_migrations"}


def test_a_database_of_a_later_release_is_refused(database_url):
    with connect(database_url) as connection:
        connection.execute("INSERT INTO schema_migrations (name, sha256) VALUES ('999_future.sql', 'x')")
        connection.commit()
        for look in (upgrade, require_current):
            with pytest.raises(NewerSchema, match=r"999_future\.sql"):
                look(connection)


def test_a_pending_migration_stops_whoever_needs_the_schema(empty_database_url):
    with connect(empty_database_url) as connection:
        upgrade(connection, shipped_migrations()[:-1])
        with pytest.raises(PendingMigrations, match=r"1 migrations are pending, first " + shipped_migrations()[-1].name):
            require_current(connection)


def test_four_runners_at_once_on_an_empty_database_apply_each_file_once(empty_database_url):
    together, applied, errors = threading.Barrier(4), [], []

    def run() -> None:
        try:
            with connect(empty_database_url) as connection:
                together.wait()
                applied.extend(upgrade(connection))
        except Exception as error:
            errors.append(error)

    runners = [threading.Thread(target=run) for _ in range(4)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join(timeout=60)
    assert errors == []
    assert sorted(applied) == [migration.name for migration in shipped_migrations()]


def test_a_runner_waits_for_one_that_is_slow_longer_than_any_other_lock(empty_database_url):
    slow = Migration("001_first.sql", FIRST.sql + "SELECT pg_sleep(6);")
    begun = threading.Event()

    def run_slowly() -> None:
        with connect(empty_database_url) as connection:
            begun.set()
            upgrade(connection, [slow])

    runner = threading.Thread(target=run_slowly)
    runner.start()
    begun.wait()
    with connect(empty_database_url) as watcher:
        watcher.autocommit = True
        while not watcher.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted").fetchone():
            pass
    with connect(empty_database_url) as connection:
        assert upgrade(connection, [slow]) == []
    runner.join(timeout=30)


def test_the_bookkeeping_table_exists_before_the_first_file(empty_database_url):
    with connect(empty_database_url) as connection:
        assert migrations.applied_migrations(connection) == {}
        upgrade(connection, [FIRST])
        row = connection.execute("SELECT name, applied_at IS NOT NULL FROM schema_migrations").fetchall()
    assert row == [("001_first.sql", True)]
