"""What tests of the whole domain library stand on: an empty corpus of their own."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from ingested_corpus import Corpus

from stemma.embedding.embedder import Embedder
from stemma.embedding.models import MINILM, open_embedder
from stemma.settings import load_settings
from stemma.stages import models_at_hand
from stemma.stages.batch_lock import BatchLock
from stemma.stages.installation import Installation


@cache
def _minilm(batch_size: int) -> Embedder:
    return open_embedder(MINILM, batch_size=batch_size)


def _open_once(location: str, *, batch_size: int) -> Embedder:
    return _minilm(batch_size) if location == MINILM else open_embedder(location, batch_size=batch_size)


@pytest.fixture
def corpus(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Corpus]:
    """An empty library with its own database and home; the model is the real one, loaded once for all tests of the process."""
    monkeypatch.setattr(models_at_hand, "open_embedder", _open_once)
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
