"""Embedding on the CPU through sentence-transformers; the model is loaded at its first use, and texts are never cut."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from stemma.embedding.embedder import EmbeddingSpec, Vectors
from stemma.embedding.models import EmbeddingModelUnavailable
from stemma.errors import StemmaError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Encoding, Tokenizer


class UnsoundVector(StemmaError):
    """The model gave a vector without length or with numbers that are none; `positions` names the texts."""

    code, remedy = "unsound_vector", "Nothing was stored; check the model's files (`stemma doctor`) and report the text."

    def __init__(self, positions: tuple[int, ...]) -> None:
        super().__init__(positions)
        self.positions = positions

    def __str__(self) -> str:
        return f"no usable vector for {len(self.positions)} of the texts, the first at position {self.positions[0]}. {self.remedy}"


class _Loaded(NamedTuple):
    model: "SentenceTransformer"
    tokenizer: "Tokenizer"  # of our own: without truncation or padding, so that threads may share it
    lower_case: bool


class _Window(NamedTuple):
    text: int
    """Position of the text it is part of."""
    token_ids: list[int]
    weight: int
    """Tokens of the text in it: neither prefix nor special ones."""


class SentenceTransformerEmbedder:
    """An `Embedder` over a local folder. Threads may share it; the first one that needs the model loads it.

    A text that fits the model's window is embedded as sentence-transformers does. A longer one is parted into windows of nearly equal
    size, each with the prefix; its vector is the mean of theirs weighted by their tokens, brought back to length 1.
    """

    def __init__(self, folder: Path, spec: EmbeddingSpec, *, batch_size: int) -> None:
        self._folder, self._spec, self._batch_size = folder, spec, batch_size
        self._loading = Lock()
        self._loaded: _Loaded | None = None

    @property
    def spec(self) -> EmbeddingSpec:
        """Known without loading the model."""
        return self._spec

    def embed_passages(self, passages: Sequence[str]) -> Vectors:
        """Shape (len(passages), dimension), float32, rows of length 1. Raises EmbeddingModelUnavailable or UnsoundVector."""
        return self._embed(passages, prefix=self._spec.passage_prefix)

    def embed_query(self, query: str) -> Vectors:
        """Shape (dimension,), float32, length 1. Raises as `embed_passages`."""
        return self._embed([query], prefix=self._spec.query_prefix)[0]

    def load(self) -> None:
        """Load the model now, if it is not loaded yet: what a service does before its first query."""
        with self._loading:
            if self._loaded is None:
                self._loaded = _load(self._folder, self._spec)

    def _embed(self, texts: Sequence[str], *, prefix: str) -> Vectors:
        if not texts:
            return np.empty((0, self._spec.dimension), dtype=np.float32)
        self.load()
        assert self._loaded is not None
        windows = _windows(self._loaded, texts, prefix=prefix, max_tokens=self._spec.max_tokens)
        return _pooled(windows, self._vectors(self._loaded, windows), n_texts=len(texts))

    def _vectors(self, loaded: _Loaded, windows: Sequence[_Window]) -> Vectors:
        """One vector per window, in their order; computed longest first, so that batches hold little padding."""
        vectors = np.empty((len(windows), self._spec.dimension), dtype=np.float32)
        order = sorted(range(len(windows)), key=lambda position: -len(windows[position].token_ids))
        batches = [order[start : start + self._batch_size] for start in range(0, len(order), self._batch_size)]

        def computed(batch: list[int]) -> Vectors:
            return _forward(loaded.model, [windows[position].token_ids for position in batch])

        with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, len(batches))) as threads:
            for batch, rows in zip(batches, threads.map(computed, batches), strict=True):
                vectors[batch] = rows
        return vectors


def import_libraries() -> None:
    """Import what a model needs, which takes seconds and no model: for a process that others are forked from."""
    # Read when the libraries are imported. The folder is local, but transformers would still ask the hub about it.
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # else tokenizers warns in every process forked later
    import sentence_transformers  # noqa: F401  # pyright: ignore[reportUnusedImport]


def _load(folder: Path, spec: EmbeddingSpec) -> _Loaded:
    import_libraries()
    import torch
    from safetensors import SafetensorError
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    # Threads of ours work on a batch each. torch's own wait for each other after every operation, which on busy cores costs up to
    # fifty times as much (2 cores, load 3: one query 400 ms by two of torch's threads, 8 ms by one; passages 19 and 37 per second).
    torch.set_num_threads(1)
    try:
        model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        tokenizer = Tokenizer.from_str(model.tokenizer.backend_tokenizer.to_str())
    except (OSError, ValueError, RuntimeError, KeyError, AttributeError, SafetensorError) as error:
        raise EmbeddingModelUnavailable(f"{spec.model} cannot be loaded ({type(error).__name__}: {str(error)[:200]})") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    model.eval()
    # The width of a vector it gives: what it says of itself is only what the configuration says.
    found = (_forward(model, [tokenizer.encode("").ids or [0]]).shape[1], model.max_seq_length or 0)
    if found[0] != spec.dimension or found[1] < spec.max_tokens:
        raise EmbeddingModelUnavailable(
            f"{spec.model} is loaded with dimension {found[0]} and a window of {found[1]} tokens, "
            f"its configuration says {spec.dimension} and {spec.max_tokens}"
        )
    return _Loaded(model, tokenizer, bool(getattr(model[0], "do_lower_case", False)))


def _forward(model: "SentenceTransformer", token_ids: list[list[int]]) -> Vectors:
    """The model's output for a batch of windows, shape (len(token_ids), dimension)."""
    import torch

    features = dict(model.tokenizer.pad({"input_ids": token_ids}, return_tensors="pt"))
    if "token_type_ids" in model.tokenizer.model_input_names:
        features["token_type_ids"] = torch.zeros_like(features["input_ids"])
    with torch.inference_mode():
        output = model.forward(features)  # pyright: ignore[reportUnknownMemberType]
    return output["sentence_embedding"].float().numpy()


def _windows(loaded: _Loaded, texts: Sequence[str], *, prefix: str, max_tokens: int) -> list[_Window]:
    readable = [(prefix + text).encode("utf-8", "replace").decode() for text in texts]  # a query may hold a lone surrogate
    strings = [text.lower() for text in readable] if loaded.lower_case else readable
    encodings: list[Encoding] = loaded.tokenizer.encode_batch(strings)
    return [
        window
        for position, encoding in enumerate(encodings)
        for window in _windows_of(position, encoding, len(prefix), max_tokens=max_tokens)
    ]


def _windows_of(position: int, encoding: "Encoding", n_prefix_chars: int, *, max_tokens: int) -> list[_Window]:
    """The text's windows: each the special tokens and the prefix around a stretch of whole tokens."""
    ids, special = encoding.ids, encoding.special_tokens_mask
    n_before = next((i for i, flag in enumerate(special) if not flag), 0)
    n_after = next((i for i, flag in enumerate(reversed(special)) if not flag), 0)
    body_end = len(ids) - n_after
    n_prefix = sum(1 for _, char_end in encoding.offsets[n_before:body_end] if char_end <= n_prefix_chars) if n_prefix_chars else 0
    body_start = n_before + n_prefix
    if len(ids) <= max_tokens:
        return [_Window(position, ids, weight=max(body_end - body_start, 1))]
    room = max_tokens - body_start - n_after
    if room < 1:
        raise EmbeddingModelUnavailable(f"the prefix leaves no room for text in a window of {max_tokens} tokens")
    n_windows = -(-(body_end - body_start) // room)
    bounds = [body_start + (body_end - body_start) * i // n_windows for i in range(n_windows + 1)]
    return [_Window(position, ids[:body_start] + ids[start:end] + ids[body_end:], weight=end - start) for start, end in pairwise(bounds)]


def _pooled(windows: Sequence[_Window], vectors: Vectors, *, n_texts: int) -> Vectors:
    """One vector of length 1 per text: the mean of its windows' unit vectors, weighted by their tokens."""
    unit = _normalized(vectors.astype(np.float64), [window.text for window in windows])
    weights = np.array([window.weight for window in windows], dtype=np.float64)
    sums = np.zeros((n_texts, vectors.shape[1]))
    np.add.at(sums, [window.text for window in windows], unit * weights[:, None])
    return _normalized(sums, range(n_texts)).astype(np.float32)


def _normalized(rows: npt.NDArray[np.float64], positions: Sequence[int]) -> npt.NDArray[np.float64]:
    """The rows brought to length 1; UnsoundVector names the positions of those that have none."""
    lengths = np.linalg.norm(rows, axis=1)
    sound = np.isfinite(lengths) & (lengths > 1e-9)
    if not sound.all():
        raise UnsoundVector(tuple(sorted({position for position, one in zip(positions, sound, strict=True) if not one})))
    return rows / lengths[:, None]
