"""What the service holds while it runs: the pool, one warm model, the keyword indexes, and whether it is ready."""

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Lock, Thread

import structlog

from stemma.embedding.embedder import Embedder
from stemma.embedding.models import open_embedder
from stemma.errors import StemmaError, Unavailable
from stemma.library.folders import ensure_default_workspace
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.settings import Settings
from stemma.store import migrations
from stemma.store.app_settings import current_settings
from stemma.store.embedded import postgres_url
from stemma.store.embedding_indexes import check_width
from stemma.store.postgres import Pool, StoreUnavailable, connect, explained, open_pool

CONCURRENCY = 8  # requests worked on at once; the others wait in line. One connection each
POOL_TIMEOUT_S = 5.0
RETRY_S = (0.5, 1, 2, 5)  # waits between looks for PostgreSQL; the last one repeats

_log = structlog.get_logger(__name__)


class Service:
    """Opened by `start`, closed by `close`; between them every method may be called from any thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keyword_indexes = OpenKeywordIndexes(settings.home)
        self.failed = Event()
        """Set when what was found on PostgreSQL's return makes serving wrong; `failure` says what."""
        self.failure: StemmaError | None = None
        self._pool: Pool | None = None
        self._embedder: tuple[str, Embedder] | None = None
        self._opening = Lock()
        self._model_state: str | None = "loading the model"
        self._stopping = Event()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Migrate and open the store, or keep looking for it in the background; load the model in the background.

        Raises ConfigurationError: a migration failed, the schema is not this release's, or a vector table is not as wide as its spec.
        """
        if not self._try_open_store():
            self._run_in_background(self._await_store)
        self._run_in_background(self._warm_model)

    def close(self) -> None:
        """Stop looking, and release what is open."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=POOL_TIMEOUT_S)
        if self._pool:
            self._pool.close()
        self.keyword_indexes.close()

    @property
    def pool(self) -> Pool:
        """The open store. Raises StoreUnavailable until PostgreSQL was there once and its schema is this release's."""
        if self.failure:
            raise self.failure
        if self._pool is None:
            raise StoreUnavailable("PostgreSQL was not there yet")
        return self._pool

    def current_settings(self) -> Settings:
        """The settings with the overrides as they are stored now."""
        with explained(), self.pool.connection() as connection:
            return current_settings(connection, self.settings)

    def embedder(self, settings: Settings) -> Embedder:
        """The model of these settings. It loads itself at its first use, unless it was warmed already."""
        with self._opening:
            if self._embedder is None or self._embedder[0] != settings.embedding_model:
                opened = open_embedder(settings.embedding_model, batch_size=settings.embedding_batch_size)
                self._embedder = settings.embedding_model, opened
            return self._embedder[1]

    def not_ready(self) -> str | None:
        """Why a search would not be answered now; None: it would be. Asks PostgreSQL."""
        try:
            with explained(), self.pool.connection(timeout=POOL_TIMEOUT_S) as connection:
                connection.execute("SELECT 1")
        except StoreUnavailable:
            return "PostgreSQL does not answer"
        except StemmaError as error:
            return str(error)
        return self._model_state

    def _try_open_store(self) -> bool:
        try:
            url = postgres_url(self.settings)
            with connect(url) as connection:
                applied = migrations.upgrade(connection)
                check_width(connection)
                ensure_default_workspace(connection, now=datetime.now(UTC))
        except Unavailable as error:
            _log.warning("store unavailable", code=error.code, reason=str(error))
            return False
        _log.info("store open", migrations_applied=applied)
        self._pool = open_pool(url, max_size=CONCURRENCY + 1, timeout_s=POOL_TIMEOUT_S)
        return True

    def _await_store(self) -> None:
        attempt = 0
        while not self._stopping.wait(RETRY_S[min(attempt, len(RETRY_S) - 1)]):
            attempt += 1
            try:
                if self._try_open_store():
                    return
            except StemmaError as error:
                _log.error("store refused", code=error.code, reason=str(error))
                self.failure = error
                self.failed.set()
                return

    def _warm_model(self) -> None:
        try:
            try:
                settings = self.current_settings()
            except Unavailable:
                settings = self.settings  # the overrides are read with each search
            self.embedder(settings).embed_query("ready")
        except StemmaError as error:
            _log.error("model not loaded", code=error.code, reason=str(error))
            self._model_state = str(error)
        else:
            _log.info("model loaded", model=settings.embedding_model)
            self._model_state = None

    def _run_in_background(self, work: Callable[[], None]) -> None:
        thread = Thread(target=work, name=work.__name__.strip("_"), daemon=True)
        thread.start()
        self._threads.append(thread)
