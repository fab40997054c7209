"""What tests stand on: a real PostgreSQL with a fresh, migrated database each, and the shared inputs where they exist."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from elasticsearch_under_test import server_under_test
from hypothesis import settings as hypothesis_settings
from playwright.sync_api import Browser, sync_playwright

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", DO_NOT_TRACK="1", DAGSTER_DISABLE_TELEMETRY="1")
for name in [name for name in os.environ if name.startswith("STEMMA_") and name != "STEMMA_SHARED"]:
    del os.environ[name]

hypothesis_settings.register_profile("default", max_examples=200, deadline=None)
hypothesis_settings.register_profile("nightly", max_examples=2_000, deadline=None)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

PROJECT = Path(__file__).resolve().parent.parent
_numbers = itertools.count()
_OWN_FOLDER = pytest.StashKey[str]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Temporary files lie in a folder of this session's own: as root, a test's PostgreSQL runs as another user, and must be let through to
    its files; each new session of pytest shuts the folder that sessions share, also while others run."""
    if os.geteuid() == 0 and config.option.basetemp is None:
        config.option.basetemp = tempfile.mkdtemp(prefix="stemma-pytest-")
        config.stash[_OWN_FOLDER] = config.option.basetemp


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """What failed tests wrote stays."""
    if exitstatus == 0 and (folder := session.config.stash.get(_OWN_FOLDER, None)):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """URL of the session's embedded PostgreSQL, with a migrated database `template_stemma` to copy."""
    from throwaway_server import prepare_server

    from stemma.store import embedded

    home = Path(tempfile.mkdtemp(prefix="stemma-tests-"))
    url = embedded.start_embedded(home)
    prepare_server(url)
    yield url
    embedded.stop_embedded(home, mode="immediate")
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def database_url(postgres_server: str) -> Iterator[str]:
    """URL of a database of the test's own, migrated and empty."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template_stemma')
    yield postgres_server.replace("/stemma?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def empty_database_url(postgres_server: str) -> Iterator[str]:
    """URL of a database of the test's own without any table."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    yield postgres_server.replace("/stemma?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def elasticsearch_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of the session's server that speaks Elasticsearch's protocol."""
    yield from server_under_test(tmp_path_factory.mktemp("elasticsearch"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared inputs (`cases/`, `files/`, `evalsets/`); the test is skipped where it is absent."""
    folder = Path(os.environ.get("STEMMA_SHARED", PROJECT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the shared inputs: {folder} is absent (set STEMMA_SHARED)")
    return folder


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, headless, reaching nothing but this machine; one for the session, since Playwright's loop may run once per process."""
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("needs Chromium: `make test` installs the Debian package")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=executable,
            args=["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
        )  # fmt: skip
        yield opened
        opened.close()
