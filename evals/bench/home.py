"""A home for a benchmark: PostgreSQL, both databases and Dagster's instance, as `stemma up` prepares them, in this process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil

from stemma.cli.installation import child_environment, prepare_dagster_home, storage_environment
from stemma.settings import load_settings
from stemma.store.embedded import dagster_url, ensure_database, postgres_url, start_embedded, stop_embedded
from stemma.store.migrations import upgrade
from stemma.store.postgres import connect


@contextmanager
def opened_home(folder: Path) -> Iterator[dg.DagsterInstance]:
    """Dagster's instance; the environment of this process names the home, as a run process finds it."""
    library = folder / "library"
    library.mkdir(parents=True)
    settings = load_settings(home=folder / "home", library=library)
    start_embedded(settings.home)
    try:
        ensure_database(dagster_url(settings))
        with connect(postgres_url(settings)) as connection:
            upgrade(connection)
        prepare_dagster_home(settings)
        os.environ.update(child_environment(settings, "bench") | storage_environment(settings))
        del os.environ["STEMMA_SUPERVISOR"]
        with dg.DagsterInstance.get() as instance:
            yield instance
    finally:
        stop_embedded(settings.home, mode="fast")


def server_seconds(home: Path) -> float:
    """Processor time that the processes of the home's PostgreSQL have used so far."""
    postmaster = psutil.Process(int((home / "postgres" / "postmaster.pid").read_text().split()[0]))
    return sum(postmaster.cpu_times()[:4]) + sum(sum(backend.cpu_times()[:2]) for backend in postmaster.children())
