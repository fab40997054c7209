"""The vectors that were ever computed, by the hash of the exact string and of the spec: no string is embedded twice."""

from collections.abc import Sequence

import numpy as np

from sql import load_queries
from stemma.embedding.embedder import Vectors
from stemma.store.postgres import Connection


def missing_inputs(connection: Connection, spec_hash: str, input_hashes: Sequence[str]) -> list[str]:
    """Those of the hashes that have no vector yet, each once, in the order given; the others are marked as used now."""
    wanted = list(dict.fromkeys(input_hashes))
    parameters = {"spec_hash": spec_hash, "input_hashes": wanted}
    present = {input_hash for (input_hash,) in connection.execute(load_queries("embedding_cache")["present_inputs"], parameters)}
    return [input_hash for input_hash in wanted if input_hash not in present]


def store_vectors(connection: Connection, spec_hash: str, input_hashes: Sequence[str], vectors: Vectors, *, replace: bool = False) -> None:
    """Keep vectors[i] for input_hashes[i]; a hash that has a vector already keeps it, unless the caller replaces them.

    One transaction, or part of the caller's.

    Raises ValueError when the numbers of hashes and vectors differ.
    """
    if len(input_hashes) != len(vectors):
        raise ValueError(f"{len(input_hashes)} hashes for {len(vectors)} vectors")
    if not input_hashes:
        return
    queries = load_queries("embedding_cache")
    with connection.transaction():
        connection.execute(queries["new_vectors"])
        with connection.cursor().copy("COPY new_vectors (input_hash, embedding) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["text", "vector"])
            for input_hash, vector in dict(zip(input_hashes, vectors, strict=True)).items():
                copy.write_row((input_hash, vector))
        connection.execute(queries["replace_vectors" if replace else "keep_new_vectors"], {"spec_hash": spec_hash})
        connection.execute("DROP TABLE new_vectors")  # the caller's transaction may call again before it commits


def read_vectors(connection: Connection, spec_hash: str, input_hashes: Sequence[str]) -> tuple[list[str], Vectors]:
    """The hashes that have a vector, each once, in the order given, and their vectors, shape (len(found), dimension), float32.

    The shape is (0, 0) when none was found.
    """
    wanted = list(dict.fromkeys(input_hashes))
    with connection.cursor(binary=True) as cursor:
        cursor.execute(load_queries("embedding_cache")["read_vectors"], {"spec_hash": spec_hash, "input_hashes": wanted})
        vector_of = {input_hash: vector.to_numpy() for input_hash, vector in cursor}
    found = [input_hash for input_hash in wanted if input_hash in vector_of]
    if not found:
        return [], np.empty((0, 0), dtype=np.float32)
    return found, np.stack([vector_of[input_hash] for input_hash in found]).astype(np.float32)
