"""Embedding models by the spec of the index that they made: found on this machine, opened once, shared by all threads."""

from collections.abc import Callable, Collection
from threading import Lock

from stemma.embedding.embedder import Embedder, EmbeddingSpec
from stemma.embedding.models import MINILM, EmbeddingModelUnavailable, embedding_spec, open_embedder
from stemma.errors import ConfigurationError
from stemma.settings import Settings
from stemma.store.app_settings import current_settings
from stemma.store.embedding_indexes import embedding_index_of
from stemma.store.postgres import Connection, Pool, explained


class ModelNotAtHand(ConfigurationError):
    """An embedding index was made by a model that this process cannot open."""

    code = "embedding_model_not_at_hand"
    remedy = "Put its folder back as it was; or `stemma reembed --model` embeds the corpus by another model, and `bm25` answers meanwhile."


def location_of(connection: Connection, spec: EmbeddingSpec, settings: Settings) -> str:
    """The value of EMBEDDING_MODEL that opens the model of a spec: the present one, the one in the wheel, or where it lay last.

    Raises ModelNotAtHand: none of them is that model, to the byte.
    """
    index = embedding_index_of(connection, spec)
    for location in (settings.embedding_model, MINILM, index and index.location):
        if location is not None and _is(location, spec):
            return location
    raise ModelNotAtHand(f"the index was made by {spec.model}, revision {spec.revision[:12]}, which is not where it was")


class ModelsAtHand:
    """Called with a spec, it gives the embedder; the model itself is loaded at its first use.

    Args:
        pool: gives the connections to the corpus database.
        base: the settings of the process, without the stored overrides.
    """

    def __init__(self, pool: Callable[[], Pool], base: Settings) -> None:
        self._pool, self._base = pool, base
        self._embedders: dict[str, Embedder] = {}
        self._opening = Lock()

    def __call__(self, spec: EmbeddingSpec) -> Embedder:
        """Raises ModelNotAtHand or StoreUnavailable."""
        if found := self._embedders.get(spec.spec_hash):  # a search does not wait while another model is being looked for
            return found
        with self._opening:
            if spec.spec_hash not in self._embedders:
                with explained(), self._pool().connection() as connection:
                    settings = current_settings(connection, self._base)
                    location = location_of(connection, spec, settings)
                self._embedders[spec.spec_hash] = open_embedder(location, batch_size=settings.embedding_batch_size)
            return self._embedders[spec.spec_hash]

    def of_setting(self, settings: Settings) -> Embedder:
        """The model that EMBEDDING_MODEL names; needs no store. Raises EmbeddingModelUnavailable."""
        opened = open_embedder(settings.embedding_model, batch_size=settings.embedding_batch_size)
        with self._opening:
            return self._embedders.setdefault(opened.spec.spec_hash, opened)

    def forget_others(self, spec_hashes: Collection[str]) -> None:
        """Let go of every model but these; who uses one of the others still has it."""
        with self._opening:
            self._embedders = {spec_hash: embedder for spec_hash, embedder in self._embedders.items() if spec_hash in spec_hashes}


def _is(location: str, spec: EmbeddingSpec) -> bool:
    try:
        return embedding_spec(location).spec_hash == spec.spec_hash
    except EmbeddingModelUnavailable:
        return False
