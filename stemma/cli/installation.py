"""What the started processes find around them: their environment, Dagster's home, and their logs."""

import json
import os
import shutil
from pathlib import Path

from stemma.cli.home import writing_in
from stemma.cli.processes import MARKER
from stemma.errors import ConfigurationError
from stemma.settings import ENV_PREFIX, SETTINGS, Settings
from stemma.store import embedded

MAX_LOG_BYTES = 10_000_000
KEPT_LOGS = 3

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "DAGSTER_DISABLE_TELEMETRY": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "ANONYMIZED_TELEMETRY": "false",
}
"""Nothing that Stemma starts reaches the network by itself."""


CODE_LOCATION = "pipelines.definitions"
"""The module of the definitions; also the name of their location in the UI, however it is served."""


class IncompleteInstallation(ConfigurationError):
    """A file of the project is not where the code lies."""

    code, remedy = "installation_incomplete", "Run Stemma from its checkout; `git status` shows what is missing."


def project_file(name: str) -> Path:
    """A file beside the code, such as `workspace.yaml`. Raises IncompleteInstallation."""
    path = Path(__file__).resolve().parent.parent.parent / name
    if not path.exists():
        raise IncompleteInstallation(f"{path} is missing")
    return path


def dagster_home(settings: Settings) -> Path:
    """The folder that Dagster is told to live in."""
    return settings.home / "dagster"


def prepare_dagster_home(settings: Settings) -> None:
    """Put the project's `dagster.yaml` into Dagster's home, whole or not at all."""
    folder, source = dagster_home(settings), project_file("dagster.yaml")
    with writing_in(settings.home):
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / "dagster.yaml.new"
        shutil.copyfile(source, new)
        new.replace(folder / "dagster.yaml")


def write_workspace(settings: Settings, port: int) -> Path:
    """A workspace file that names the code server on this port, for the webserver and the daemon to share.

    The project's own `workspace.yaml` names the module instead: then each of them runs a code server of its own, and the
    daemon starts a new one every minute.
    """
    path = dagster_home(settings) / "workspace.yaml"
    location = {"host": "127.0.0.1", "port": port, "location_name": CODE_LOCATION}
    with writing_in(settings.home):
        path.write_text(json.dumps({"load_from": [{"grpc_server": location}]}), "utf-8")  # JSON is YAML
    return path


def child_environment(settings: Settings, marker: str) -> dict[str, str]:
    """The environment of everything that the supervisor starts: this process's own, with what concerns Stemma settled."""
    fields = [name.lower() for name, info in SETTINGS.items() if info.stage == "installation"]
    settled = {f"{ENV_PREFIX}{field.upper()}": getattr(settings, field) for field in fields}
    inherited = {name: value for name, value in os.environ.items() if name not in settled}
    given = {name: str(value) for name, value in settled.items() if value is not None}
    own = {
        MARKER: marker,
        "DAGSTER_HOME": str(dagster_home(settings)),
        "DAGSTER_EVENT_BATCH_SIZE": "1000",  # measured: 30 events a second without it, 1,000 with it
        "PYTHONUNBUFFERED": "1",
    }
    return {**inherited, **given, **OFFLINE, **own}


def storage_environment(settings: Settings) -> dict[str, str]:
    """What `dagster.yaml` reads: Dagster's database, with its driver named as SQLAlchemy has to be told. Raises NotRunning."""
    _, _, rest = embedded.dagster_url(settings).partition("://")
    return {"STEMMA_DAGSTER_STORAGE_URL": f"postgresql+psycopg2://{rest}"}


def rotated_log(home: Path, name: str) -> Path:
    """The log of a process, in a folder that exists; a long one is put aside first, and the oldest of those is dropped."""
    log = home / "logs" / f"{name}.log"
    with writing_in(home):
        log.parent.mkdir(parents=True, exist_ok=True)
        if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
            for number in range(KEPT_LOGS, 1, -1):
                older = log.with_name(f"{name}.log.{number - 1}")
                if older.exists():
                    older.replace(log.with_name(f"{name}.log.{number}"))
            log.replace(log.with_name(f"{name}.log.1"))
        log.touch()
    return log


def log_tail(log: Path, n_lines: int = 15, *, since: int = 0) -> str:
    """The last lines of a log, for a message; of those after its first `since` bytes."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - 20_000))
        lines = file.read().decode("utf-8", errors="replace").splitlines()
    return "\n".join(lines[-n_lines:])
