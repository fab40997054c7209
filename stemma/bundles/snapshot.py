"""The corpus at one instant, as the lines and rows of a bundle: one read-only snapshot, streamed, so that memory does not follow its size."""

import hashlib
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

import numpy as np
from psycopg import sql

from sql import load_queries
from stemma.bundles.errors import CorpusIncomplete
from stemma.bundles.manifest import HISTORY_PARTS
from stemma.library.staleness import n_sources, stale_counts
from stemma.settings import Fingerprints, Settings
from stemma.store.embedding_indexes import EmbeddingIndex, active_embedding_index
from stemma.store.migrations import applied_migrations
from stemma.store.postgres import Connection

VECTORS_AT_ONCE = 512
VECTOR_HEADER_BYTES = 4
"""pgvector's binary form begins with the dimension and two unused bytes; big-endian float32 follow."""


@dataclass(frozen=True)
class LibraryFile:
    """A file of a source, by what the catalogue knows of it."""

    source_id: str
    source_path: str
    disk_path: bytes
    content_hash: str


class Snapshot:
    """Reads of one REPEATABLE READ, READ ONLY transaction; what is committed meanwhile is not in it, and nobody waits for it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._queries = load_queries("bundles")
        (row,) = connection.execute("SELECT now()").fetchall()
        self.taken_at: datetime = row[0]
        self.index: EmbeddingIndex | None = active_embedding_index(connection)
        self.schema = max(applied_migrations(connection))
        self.n_documents, self.n_chunks, self.n_table_bytes = connection.execute(self._queries["bundle_counts"]).fetchall()[0]

    def stale(self, settings: Settings, wanted: Fingerprints) -> bool:
        """Whether something of the corpus is not what files and settings give."""
        return n_sources(stale_counts(self._connection, settings, wanted, now=self.taken_at)) > 0

    def data_version(self) -> str:
        """sha256 (hex) of every document's identity, output and recipe, of what was taken out, and of the embedding index."""
        digest = hashlib.sha256((self.index.spec.spec_hash if self.index else "").encode())
        for (line,) in self._streamed(self._queries["bundle_versions"]):
            digest.update(f"{line}\n".encode())
        return digest.hexdigest()

    def history_version(self) -> str:
        """sha256 (hex) of the conversations and how far each is."""
        digest = hashlib.sha256()
        for (line,) in self._streamed(self._queries["conversation_versions"]):
            digest.update(f"{line}\n".encode())
        return digest.hexdigest()

    def lines(self, member: str) -> Iterator[bytes]:
        """The lines of `workspaces`, `sources`, `runs` or a part of the history."""
        return (line.encode() for (line,) in self._streamed(self._queries[f"bundled_{member}"]))

    def figures(self) -> Iterator[tuple[bytes, str | None]]:
        """The lines of figures, each with the hash of its picture; None where nothing can be shown."""
        return ((line.encode(), sha256) for line, sha256 in self._streamed(self._queries["bundled_figures"]))

    def files(self) -> Iterator[LibraryFile]:
        """Files of the library whose bytes are those of the published document."""
        return (LibraryFile(*row) for row in self._streamed(self._queries["bundled_files"]))

    def documents(self) -> Iterator[bytes]:
        """A line per document; blocks and pages stand in it as JSON, not packed."""
        for line, blocks, pages in self._streamed(self._queries["bundled_documents"]):
            yield b'%b,"blocks":%b,"pages":%b}' % (line.encode()[:-1], zlib.decompress(blocks), zlib.decompress(pages))

    def chunks(self, order: "Order") -> Iterator[bytes]:
        """A line per chunk, by its number; `order` learns which."""
        for line, chunk_id in self._streamed(self._queries["bundled_chunks"]):
            order.saw(chunk_id)
            yield line.encode()

    def vectors(self, order: "Order") -> Iterator[bytes]:
        """The vectors of the chunks in their order, as little-endian float32, bit by bit those that are searched.

        Raises CorpusIncomplete where a chunk has none.
        """
        if self.index is None:
            return
        query = sql.SQL(self._queries["bundled_vectors"].rstrip(";")).format(vectors=sql.Identifier(self.index.vector_table))
        held: list[bytes] = []
        with self._connection.cursor() as cursor, cursor.copy(sql.SQL("COPY ({}) TO STDOUT (FORMAT BINARY)").format(query)) as copy:
            copy.set_types(["text", "bytea"])
            for chunk_id, vector in copy.rows():
                if vector is None:
                    raise CorpusIncomplete(f"chunk {chunk_id} has no vector of {self.index.spec.model}")
                order.saw(chunk_id)
                held.append(vector)
                if len(held) == VECTORS_AT_ONCE:
                    yield little_endian(held)
                    held = []
        if held:
            yield little_endian(held)

    def _streamed(self, query: LiteralString) -> Iterator[tuple[Any, ...]]:
        statement = sql.SQL("COPY ({}) TO STDOUT (FORMAT BINARY)").format(sql.SQL(query.rstrip(";")))
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            copy.set_types(_TYPES.get(query, ["text", "text"]))
            yield from copy.rows()


class Order:
    """The order in which chunks passed by: equal for two streams that met the same ones."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.n_chunks = 0

    def saw(self, chunk_id: str) -> None:
        """The next one."""
        self._digest.update(f"{chunk_id}\n".encode())
        self.n_chunks += 1

    @property
    def digest(self) -> str:
        """sha256 (hex) of all of them so far."""
        return self._digest.hexdigest()


@contextmanager
def snapshot_of(connection: Connection) -> Generator[Snapshot]:
    """A snapshot on a connection of its own, in autocommit; what raises in it ends the connection, which may be in the middle of a COPY."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    try:
        yield Snapshot(connection)
    except BaseException:
        connection.close()
        raise
    connection.execute("ROLLBACK")


def little_endian(vectors: list[bytes]) -> bytes:
    """Rows of little-endian float32 from vectors in pgvector's binary form, all of one dimension."""
    n_bytes = len(vectors[0])
    rows = np.frombuffer(b"".join(vectors), dtype=np.uint8).reshape(len(vectors), n_bytes)[:, VECTOR_HEADER_BYTES:]
    return np.ascontiguousarray(rows).view(">f4").astype("<f4").tobytes()


def _types() -> dict[str, list[str]]:
    queries = load_queries("bundles")
    return {
        queries["bundled_documents"]: ["text", "bytea", "bytea"],
        queries["bundled_files"]: ["text", "text", "bytea", "text"],
        **{queries[f"bundled_{member}"]: ["text"] for member in ("workspaces", "sources", "runs", *HISTORY_PARTS)},
        queries["bundle_versions"]: ["text"],
        queries["conversation_versions"]: ["text"],
    }


_TYPES = _types()
