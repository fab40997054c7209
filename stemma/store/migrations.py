"""The migrations runner: numbered SQL files, each applied once, in one transaction with its bookkeeping row."""

import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import LiteralString, cast

import psycopg

from stemma.errors import ConfigurationError
from stemma.store.postgres import Connection

FILE_NAME = re.compile(r"^\d{3}_[a-z0-9_]+\.sql$")
MIGRATION_LOCK = 0x53_54_45_4D_4D_41_00_01  # "STEMMA", 1

_BOOKKEEPING = """
    CREATE TABLE IF NOT EXISTS schema_migrations (
        name       text        CONSTRAINT schema_migrations_pk PRIMARY KEY,
        sha256     text        NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""


class InvalidMigration(ConfigurationError):
    """A migration file is misnamed, or shares its number with another."""

    code, remedy = "migration_invalid", "Nothing was applied; rename the file to NNN_name.sql with a number of its own."


class MigrationDrift(ConfigurationError):
    """An applied migration's text is no longer the one that was applied."""

    code, remedy = "migration_drift", "Restore the file's text and put the change into a new migration."


class NewerSchema(ConfigurationError):
    """The database was migrated by a later release."""

    code, remedy = "schema_newer", "Use the later release, or `stemma db rollback` to what was before its upgrade; nothing was written."


class MigrationFailed(ConfigurationError):
    """PostgreSQL refused a migration; it was rolled back whole."""

    code, remedy = "migration_failed", "The database is as it was before this file; correct the cause and run `stemma db upgrade`."


class PendingMigrations(ConfigurationError):
    """The schema is older than this release needs."""

    code, remedy = "schema_older", "Run `stemma db upgrade`."


@dataclass(frozen=True)
class Migration:
    """One file of sql/migrations."""

    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """Of the file's text."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def shipped_migrations(folder: Traversable | None = None) -> list[Migration]:
    """The folder's migrations in the order of their names. Raises InvalidMigration for any other .sql file in it."""
    folder = folder or files("sql") / "migrations"
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    numbers: dict[str, str] = {}
    for file in found:
        if not FILE_NAME.match(file.name):
            raise InvalidMigration(f"{file.name} is not named NNN_name.sql")
        if (other := numbers.setdefault(file.name[:3], file.name)) != file.name:
            raise InvalidMigration(f"{file.name} has the number of {other}")
    return [Migration(file.name, file.read_text("utf-8")) for file in found]


def applied_migrations(connection: Connection) -> dict[str, str]:
    """Name -> sha256 of what this database has; empty before the first migration."""
    if connection.execute("SELECT to_regclass('schema_migrations')").fetchone() == (None,):
        return {}
    return dict(connection.execute("SELECT name, sha256 FROM schema_migrations ORDER BY name").fetchall())


def pending_migrations(connection: Connection, shipped: list[Migration] | None = None) -> list[Migration]:
    """What `upgrade` would apply. Raises MigrationDrift or NewerSchema."""
    shipped = shipped_migrations() if shipped is None else shipped
    applied = applied_migrations(connection)
    by_name = {migration.name: migration for migration in shipped}
    if unknown := sorted(applied.keys() - by_name.keys()):
        raise NewerSchema(f"the database has {unknown[-1]}, this release ends with {shipped[-1].name if shipped else 'none'}")
    for name, sha256 in applied.items():
        if by_name[name].sha256 != sha256:
            raise MigrationDrift(f"{name} was applied with another text")
    return [migration for migration in shipped if migration.name not in applied]


def upgrade(connection: Connection, shipped: list[Migration] | None = None) -> list[str]:
    """Apply what is pending, one transaction per file, and return the names; runners beside this one wait.

    Raises InvalidMigration or MigrationDrift or NewerSchema before anything is applied, MigrationFailed at the file that failed.
    """
    shipped = shipped_migrations() if shipped is None else shipped
    connection.rollback()
    connection.autocommit = True
    try:
        connection.execute("SET lock_timeout = 0")  # the one lock that is worth waiting for
        connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        try:
            return [_apply(connection, migration) for migration in pending_migrations(connection, shipped)]
        finally:
            if not connection.closed:
                connection.execute("SELECT pg_advisory_unlock(%s)", [MIGRATION_LOCK])
                connection.execute("RESET lock_timeout")
    finally:
        if not connection.closed:
            connection.autocommit = False


def _apply(connection: Connection, migration: Migration) -> str:
    try:
        with connection.transaction():
            connection.execute(_BOOKKEEPING)
            connection.execute(cast(LiteralString, migration.sql))  # a file that ships with the code
            connection.execute("INSERT INTO schema_migrations (name, sha256) VALUES (%s, %s)", [migration.name, migration.sha256])
    except psycopg.Error as error:
        if connection.closed:
            raise  # the server went away: not the file's fault
        raise MigrationFailed(f"{migration.name}: {str(error).strip()}") from error
    return migration.name


def require_current(connection: Connection) -> None:
    """Raises PendingMigrations, MigrationDrift or NewerSchema unless the schema is exactly this release's."""
    if pending := pending_migrations(connection):
        raise PendingMigrations(f"{len(pending)} migrations are pending, first {pending[0].name}")
