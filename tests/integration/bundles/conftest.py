"""A small corpus, and another installation that knows nothing of it."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from ingested_corpus import Corpus

from stemma.settings import load_settings
from stemma.stages.installation import Installation


@pytest.fixture
def filled(corpus):
    corpus.write("plans/pier.md", "# Pier\n\nThe north pier opens in May.\n\n## Cranes\n\nTwo cranes stand on it.\n")
    corpus.write("Résumé Å.txt", "She repaired clocks. \u2028 It was \\u0000 quiet.\n")
    corpus.write("empty.txt", "")
    corpus.ingest()
    return corpus


@pytest.fixture
def elsewhere(postgres_server: str, tmp_path: Path) -> Iterator[Corpus]:
    """Another machine: a database, a home and a library of its own, all of them empty."""
    name = f"elsewhere_{tmp_path.name[:40].lower().replace('-', '_')}_{abs(hash(tmp_path)) % 10**8}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template_stemma')
    library = tmp_path / "other" / "library"
    library.mkdir(parents=True)
    url = postgres_server.replace("/stemma?", f"/{name}?")
    settings = load_settings(home=tmp_path / "other" / "home", library=library, postgres_url=url, prune_grace_s=0)
    installation = Installation(settings)
    yield Corpus(settings, installation)
    installation.close()
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
