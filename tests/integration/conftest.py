"""What tests of the whole domain library stand on: an empty corpus of their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from ingested_corpus import Corpus

from stemma.settings import load_settings
from stemma.stages.batch_lock import BatchLock
from stemma.stages.installation import Installation


@pytest.fixture
def corpus(database_url: str, tmp_path: Path) -> Iterator[Corpus]:
    """An empty library with its own database and home."""
    library = tmp_path / "library"
    library.mkdir()
    settings = load_settings(home=tmp_path / "home", library=library, postgres_url=database_url, prune_grace_s=0)
    installation = Installation(settings)
    yield Corpus(settings, installation)
    installation.close()


@pytest.fixture
def batch_lock(database_url: str) -> Iterator[BatchLock]:
    """A lock that a run of the test holds."""
    lock = BatchLock(database_url)
    yield lock
    lock.release()
