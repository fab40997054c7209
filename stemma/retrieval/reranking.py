"""Reranking: a cross-encoder reads query and passage together and puts the first hits of another method in a new order."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import structlog

from stemma.errors import ConfigurationError
from stemma.retrieval.hybrid import Ranked
from stemma.settings import Settings

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

_log = structlog.get_logger(__name__)


class RerankModelUnavailable(ConfigurationError):
    """The reranker's folder is missing, incomplete, or no cross-encoder with one score."""

    code = "rerank_model_unavailable"
    remedy = "Set RERANK_MODEL to a complete local folder of a sentence-transformers cross-encoder, or unset it."


class Reranker:
    """A cross-encoder of a local folder, loaded at its first use and shared by all threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._model: CrossEncoder | None = None
        self._loading = Lock()
        self._reading = Lock()

    def scores(self, query: str, passages: Sequence[str], *, batch_size: int, check: Callable[[], None]) -> list[float]:
        """One score per passage, higher is better; what the model cannot read at once of a passage is cut off at its end.

        Args:
            check: called before each batch; raises to end the search.
        Raises:
            RerankModelUnavailable: the folder is not a model that gives one score per pair.
        """
        model = self._loaded()
        found: list[float] = []
        for start in range(0, len(passages), batch_size):
            check()
            pairs = [(query, passage) for passage in passages[start : start + batch_size]]
            with self._reading:  # a fast tokenizer that two threads use at once raises "Already borrowed"
                found += model.predict(pairs, batch_size=batch_size, show_progress_bar=False).tolist()  # pyright: ignore[reportUnknownMemberType]
        if not all(map(isfinite, found)):
            raise RerankModelUnavailable(f"{self._folder.name} gives scores that are no numbers")
        return found

    def _loaded(self) -> "CrossEncoder":
        with self._loading:
            if self._model is None:
                if not (self._folder / "config.json").is_file():
                    raise RerankModelUnavailable(f"{self._folder.name} holds no model")
                from sentence_transformers import CrossEncoder

                try:
                    model = CrossEncoder(str(self._folder), device="cpu", local_files_only=True)
                except (OSError, ValueError, KeyError, RuntimeError) as error:  # what transformers raises for unsound folders
                    raise RerankModelUnavailable(f"{self._folder.name} cannot be loaded ({type(error).__name__})") from error
                if model.num_labels != 1:
                    raise RerankModelUnavailable(f"{self._folder.name} gives {model.num_labels} scores per pair")
                self._model = model
                _log.info("reranker loaded", model=self._folder.name)
            return self._model


@lru_cache(maxsize=1)
def reranker_of(model: str) -> Reranker:
    """The reranker of RERANK_MODEL; the one that was used last stays loaded."""
    return Reranker(Path(model).expanduser().absolute())


def reranker_if_any(settings: Settings) -> tuple[Reranker | None, str | None]:
    """The reranker, or None and why there is none."""
    if not settings.rerank_enabled:
        return None, f"RERANK_ENABLED is off; the order is that of {settings.rerank_base}."
    if settings.rerank_model is None:
        return None, f"No reranking model is set (RERANK_MODEL); the order is that of {settings.rerank_base}."
    return reranker_of(settings.rerank_model), None


def reranked(ranked: Sequence[Ranked], scores: Sequence[float]) -> list[Ranked]:
    """The ranking with its first len(scores) hits in the order of their scores, ties in the order they had; the others follow as they were.

    Only `rerank_score`, `rerank_delta` and `final_rank` of the traces change, and only of the hits that were scored.
    """
    scored = sorted(zip(ranked, scores, strict=False), key=lambda pair: -pair[1])
    return [
        Ranked(
            hit.chunk_id,
            hit.publication_id,
            hit.trace.model_copy(update={"rerank_score": score, "rerank_delta": hit.trace.final_rank - rank, "final_rank": rank}),
        )
        for rank, (hit, score) in enumerate(scored, start=1)
    ] + list(ranked[len(scored) :])
