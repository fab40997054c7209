"""What fault tests stand on: processes that can be forked and killed, and databases by the dozen."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from fault_library import NEEDLE
from fault_points import FailPoints
from fault_seed import Bench
from ingested_corpus import Corpus

from stemma import failpoints
from stemma.settings import load_settings
from stemma.stages.installation import Installation


@pytest.fixture(scope="session")
def bench(tmp_path_factory) -> Iterator[Bench]:
    """Children that have the library and the models loaded, and the one query that readers ask."""
    bench = Bench.open(tmp_path_factory.mktemp("bench"), NEEDLE)
    yield bench
    bench.nursery.close()


@pytest.fixture
def databases(postgres_server: str) -> Iterator[Callable[[], str]]:
    """Makes migrated, empty databases; called again and again it gives another one."""
    made: list[str] = []

    def make() -> str:
        name = f"fault_{os.getpid()}_{len(made)}_{uuid4().hex[:8]}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template_stemma')
        made.append(name)
        return postgres_server.replace("/stemma?", f"/{name}?")

    yield make
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        for name in made:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture
def corpus(database_url: str, tmp_path: Path) -> Iterator[Corpus]:
    """An empty library, in which nothing waits: neither retries nor prunes nor retired entries."""
    library = tmp_path / "library"
    library.mkdir()
    settings = load_settings(
        home=tmp_path / "home", library=library, postgres_url=database_url,
        prune_grace_s=0, retry_backoff_s=0, retire_after_s=0.02, query_timeout_s=0.01,
    )  # fmt: skip
    installation = Installation(settings)
    yield Corpus(settings, installation)
    installation.close()


@pytest.fixture
def failing(tmp_path: Path, monkeypatch) -> FailPoints:
    """Fail points of this process."""
    folder = tmp_path / "failing"
    folder.mkdir()
    monkeypatch.setattr(failpoints, "_folder", folder)
    return FailPoints(folder)
