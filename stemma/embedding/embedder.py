"""What turns strings into vectors: the interface, and the frozen description that keeps two models apart."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


@dataclass(frozen=True)
class EmbeddingSpec:
    """Everything that decides which vector a string gets; stored with its index and never changed."""

    model: str
    """Name of the model, without any path of this machine."""
    revision: str
    """sha256 (hex) over the files that decide the vectors."""
    dimension: int
    max_tokens: int
    """Window of the model; longer strings are embedded by windows (length-weighted mean, renormalised)."""
    pooling: str = "mean"
    normalized: bool = True
    query_prefix: str = ""
    passage_prefix: str = ""
    semantic_weight: float = 0.4
    """Weight of the semantic arm that suits the model; an explicit setting wins. The default was measured with MiniLM (decision 008)."""

    @property
    def spec_hash(self) -> str:
        """sha256 (hex) of the canonical JSON of all fields but `semantic_weight`, which changes no vector."""
        fields = asdict(self)
        del fields["semantic_weight"]
        return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def input_hash(self, passage: str) -> str:
        """sha256 (hex) of the exact string that the model reads for a passage, prefix included."""
        return hashlib.sha256((self.passage_prefix + passage).encode()).hexdigest()


class Embedder(Protocol):
    """A model, loaded at its first use."""

    @property
    def spec(self) -> EmbeddingSpec:
        """Known without loading the model."""
        ...

    def embed_passages(self, passages: Sequence[str]) -> Vectors:
        """Shape (len(passages), dimension), float32, rows of length 1; every character of every passage counts."""
        ...

    def embed_query(self, query: str) -> Vectors:
        """Shape (dimension,), float32, length 1."""
        ...
