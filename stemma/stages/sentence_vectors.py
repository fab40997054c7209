"""Vectors of sentences for semantic chunking, through the same cache as those of chunks: no sentence is embedded twice."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from stemma.embedding.embedder import Embedder, EmbeddingSpec, Vectors
from stemma.stages.run import Run
from stemma.store.embedding_cache import missing_inputs, read_vectors, store_vectors

SENTENCES_PER_COMMIT = 1_024
"""Vectors are kept at least this often, so that an interrupted run repeats little."""


@dataclass
class CachedEmbed:
    """Called with sentences, gives their vectors; the model is asked for those that the cache does not hold."""

    run: Run
    spec: EmbeddingSpec
    embedder_of: Callable[[EmbeddingSpec], Embedder]
    n_embedded: int = field(default=0, init=False)
    """Sentences that the model was asked for."""

    def __call__(self, sentences: Sequence[str]) -> Vectors:
        """Shape (len(sentences), dimension), float32, rows of length 1. Raises UnsoundVector; what was embedded before it is kept."""
        text_of = {self.spec.input_hash(sentence): sentence for sentence in sentences}
        with self.run.pool.connection() as connection:
            missing = missing_inputs(connection, self.spec.spec_hash, list(text_of))
        for start in range(0, len(missing), SENTENCES_PER_COMMIT):
            part = missing[start : start + SENTENCES_PER_COMMIT]
            vectors = self.embedder_of(self.spec).embed_passages([text_of[digest] for digest in part])
            self.n_embedded += len(part)
            with self.run.pool.connection() as connection:
                store_vectors(connection, self.spec.spec_hash, part, vectors)
        with self.run.pool.connection() as connection:
            found, vectors = read_vectors(connection, self.spec.spec_hash, list(text_of))
        row_of = {digest: row for row, digest in enumerate(found)}
        return vectors[np.array([row_of[self.spec.input_hash(sentence)] for sentence in sentences], dtype=np.int64)]
