"""A real Dagster instance with its storage in PostgreSQL, over a real corpus."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import psycopg
import pytest
import yaml

from assets.partitions import DOCUMENTS
from stemma.store.embedded import DAGSTER_SUFFIX, beside, ensure_database


@dataclass
class Pipeline:
    """Launches runs the three ways a person or the sensor does, in this process."""

    corpus: object
    instance: dg.DagsterInstance

    def batch_run(self, batch, *, recipes: str = "") -> dg.ExecuteInProcessResult:
        """A run as the sensor requests it; `recipes`: of the code that the sensor was loaded from."""
        from pipelines.sensors import _request
        from stemma.stages.installation import recipes_of_code

        request = _request(batch, recipes or recipes_of_code(self.corpus.installation.base))
        self.instance.add_dynamic_partitions(DOCUMENTS, list(batch.partitions))
        return self._run(request.partition_key, request.run_config, dict(request.tags))

    def ui_run(self, partition: str, *, assets: list[str] | None = None) -> dg.ExecuteInProcessResult:
        """A run of one partition, as the UI starts it."""
        return self._run(partition, {}, {}, assets)

    def range_run(self, first: str, last: str) -> dg.ExecuteInProcessResult:
        """A run of a range, as a backfill in the UI starts it."""
        return self._run(None, {}, {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last})

    def _run(self, partition, run_config, tags, assets=None):
        from pipelines.definitions import defs

        job = defs.resolve_job_def("ingest_batch")
        return job.execute_in_process(
            instance=self.instance, run_config=run_config, partition_key=partition, tags=tags, raise_on_error=False,
            asset_selection=[dg.AssetKey(name) for name in assets] if assets else None,
        )  # fmt: skip

    def version(self, asset: str, partition: str) -> str | None:
        """The data version that Dagster holds for a partition of an asset."""
        records = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[partition]), limit=1
        ).records
        return records[0].event_log_entry.asset_materialization.tags["dagster/data_version"] if records else None


def open_instance(url: str, home: Path) -> dg.DagsterInstance:
    """Dagster's instance with its storage at the URL."""
    home.mkdir()
    storage = {
        "storage": {"postgres": {"postgres_url": url.replace("postgresql://", "postgresql+psycopg2://")}},
        "telemetry": {"enabled": False},
    }
    (home / "dagster.yaml").write_text(yaml.safe_dump(storage))
    return dg.DagsterInstance.from_config(str(home))


@pytest.fixture(scope="session")
def dagster_template(postgres_server: str, tmp_path_factory) -> str:
    """Name of a database with Dagster's tables, to copy: to make them takes longer than most tests."""
    name = "template_dagster"
    url = postgres_server.replace("/stemma?", f"/{name}?")
    ensure_database(url)
    with open_instance(url, tmp_path_factory.mktemp("template") / "dagster") as instance:
        instance.get_runs(limit=1)
    return name


@pytest.fixture
def instance(database_url: str, postgres_server: str, dagster_template: str, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """An instance of the test's own."""
    url = beside(database_url, DAGSTER_SUFFIX)
    name = urlsplit(url).path.lstrip("/")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE {dagster_template}')
    with open_instance(url, tmp_path / "dagster") as opened:
        yield opened
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def pipeline(corpus, instance, monkeypatch) -> Iterator[Pipeline]:
    """The definitions over the test's corpus."""
    import resources.corpus

    monkeypatch.setattr(resources.corpus, "installation", lambda: corpus.installation)
    resources.corpus._batch_lock.cache_clear()
    yield Pipeline(corpus, instance)
    if resources.corpus._batch_lock.cache_info().currsize:
        resources.corpus._batch_lock().release()
    resources.corpus._batch_lock.cache_clear()
