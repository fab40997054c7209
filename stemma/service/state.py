"""What the service holds while it runs: the pool, warm models, the keyword indexes, and whether it is ready."""

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Thread

import structlog

from stemma.embedding.embedder import Embedder
from stemma.errors import StemmaError, Unavailable
from stemma.library.folders import ensure_default_workspace
from stemma.retrieval.answer import SearchAnswer
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.search import SearchRequest, search_by_active_model
from stemma.service.backups import Backups
from stemma.settings import Settings
from stemma.stages.installation import Installation
from stemma.stages.models_at_hand import ModelNotAtHand, ModelsAtHand
from stemma.store.app_settings import current_settings
from stemma.store.dumps import upgrade_safely
from stemma.store.embedded import postgres_url
from stemma.store.embedding_indexes import check_width, open_embedding_indexes
from stemma.store.postgres import Pool, StoreUnavailable, connect, explained, open_pool

CONCURRENCY = 8  # requests worked on at once; the others wait in line. One connection each
POOL_TIMEOUT_S = 5.0
MODELS_LOOK_S = 5.0  # between two looks at which models are needed
RETRY_S = (0.5, 1, 2, 5)  # waits between looks for PostgreSQL; the last one repeats

_log = structlog.get_logger(__name__)


class Service:
    """Opened by `start`, closed by `close`; between them every method may be called from any thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keyword_indexes = OpenKeywordIndexes(settings)
        self.stores = Installation(settings)
        """What deletions write to, with connections of its own; opened at the first of them."""
        self.backups = Backups()
        self.failed = Event()
        """Set when what was found on PostgreSQL's return makes serving wrong; `failure` says what."""
        self.failure: StemmaError | None = None
        self._pool: Pool | None = None
        self.models = ModelsAtHand(lambda: self.pool, settings)
        """The models of the indexes; a search asks for the active one's."""
        self._warm: set[str] = set()
        self._model_state: str | None = "loading the model"
        self._stopping = Event()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Migrate and open the store, or keep looking for it in the background; keep the models of the indexes loaded in the background.

        Raises ConfigurationError: a migration failed, the schema is not this release's, or a vector table is not as wide as its spec.
        """
        if not self._try_open_store():
            self._run_in_background(self._await_store)
        self._run_in_background(self._keep_models_warm)

    def close(self) -> None:
        """Stop looking, and release what is open."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(timeout=POOL_TIMEOUT_S)
        if self._pool:
            self._pool.close()
        self.keyword_indexes.close()
        self.stores.close()

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

    def search(self, request: SearchRequest, settings: Settings) -> SearchAnswer:
        """What a search finds; one way for every route. Raises what `search_by_active_model` does."""
        return search_by_active_model(request, pool=self.pool, lexical=self.keyword_indexes, embedder_of=self.models, settings=settings)

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
                applied = upgrade_safely(connection, url, self.settings.home)
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

    def _keep_models_warm(self) -> None:
        """Load the model of the active index, then those of indexes being built: when searches read one of these, it is warm."""
        while True:
            try:
                self._warm_models()
            except Unavailable as error:
                _log.warning("models not looked at", code=error.code, reason=str(error))
            except StemmaError as error:
                if self._model_state != str(error):
                    _log.error("model not loaded", code=error.code, reason=str(error))
                self._model_state = str(error)
            except RuntimeError:  # a process that is ending starts no threads, and a model needs some to answer
                if not self._stopping.is_set():
                    raise
            if self._stopping.wait(MODELS_LOOK_S):
                return

    def _warm_models(self) -> None:
        embedders = self._wanted_embedders()
        for embedder in embedders:
            if embedder.spec.spec_hash not in self._warm:
                embedder.embed_query("ready")
                self._warm.add(embedder.spec.spec_hash)
                _log.info("model loaded", model=embedder.spec.model)
            self._model_state = None  # the first is the one that answers
        kept = {embedder.spec.spec_hash for embedder in embedders}
        self._warm &= kept
        self.models.forget_others(kept)

    def _wanted_embedders(self) -> list[Embedder]:
        """Those of the indexes, the active one's first; without an index, or without the store, that of EMBEDDING_MODEL."""
        try:
            with explained(), self.pool.connection() as connection:
                indexes, settings = open_embedding_indexes(connection), current_settings(connection, self.settings)
        except Unavailable:
            return [self.models.of_setting(self.settings)]  # the overrides are read with each search
        if not indexes:
            return [self.models.of_setting(settings)]
        found = [self.models(indexes[0].spec)]
        for index in indexes[1:]:
            try:
                found.append(self.models(index.spec))
            except ModelNotAtHand as error:
                _log.warning("model of a building index not at hand", index=index.embedding_index_id, reason=str(error))
        return found

    def _run_in_background(self, work: Callable[[], None]) -> None:
        thread = Thread(target=work, name=work.__name__.strip("_"), daemon=True)
        thread.start()
        self._threads.append(thread)
