"""The app over a corpus in a real database, with the real model."""

from collections.abc import Iterator

import psycopg
import pytest
from searchable_corpus import SearchableCorpus, open_corpus
from starlette.testclient import TestClient

from stemma.embedding.models import open_embedder
from stemma.service.app import create_app

BASE_URL = "http://127.0.0.1:8765"


@pytest.fixture(scope="module")
def module_database_url(postgres_server, request) -> Iterator[str]:
    """URL of a database that the module's tests share."""
    name = request.module.__name__.rpartition(".")[2]
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template_stemma')
    yield postgres_server.replace("/stemma?", f"/{name}?")
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="module")
def corpus(module_database_url, tmp_path_factory) -> Iterator[SearchableCorpus]:
    """A corpus that the module's tests share; each publishes under paths of its own."""
    yield from open_corpus(module_database_url, tmp_path_factory.mktemp("home"), embedder=open_embedder("minilm", batch_size=32))


@pytest.fixture(scope="module")
def client(corpus) -> Iterator[TestClient]:
    """A client of the started app."""
    with TestClient(create_app(corpus.settings), base_url=BASE_URL) as started:
        yield started
