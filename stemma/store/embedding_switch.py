"""From one embedding index to another: filling the new one beside the active one, the switch, and the end of what is retired."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg import sql

from sql import load_queries
from stemma.embedding.models import EmbeddingModelUnavailable, embedding_spec
from stemma.errors import Unavailable
from stemma.failpoints import reach
from stemma.settings import Settings
from stemma.store.app_settings import current_settings, set_overrides
from stemma.store.embedding_indexes import EmbeddingIndex, active_embedding_index, all_embedding_indexes, open_embedding_indexes
from stemma.store.hnsw import hnsw_of
from stemma.store.locks import giving_way
from stemma.store.made_outside_runs import note_made_outside_runs
from stemma.store.postgres import Connection

_QUERIES = "corpus_indexes"


class EmbeddingIndexIncomplete(Unavailable):
    """An embedding index cannot become the active one yet: published chunks have no vector in it, or its search structure is missing."""

    code, remedy = "embedding_index_incomplete", "Run `stemma reembed` again: what is there already is kept."


class EmbeddingIndexGone(Unavailable):
    """An embedding index was retired, dropped or replaced while it was being filled."""

    code, remedy = "embedding_index_gone", "Look at `stemma db index`, and run `stemma reembed` again if it is still wanted."


@dataclass(frozen=True)
class Coverage:
    """How far an index is."""

    n_chunks: int
    """Published chunks."""
    n_covered: int
    """Those of them with a vector in the index."""

    @property
    def share(self) -> float:
        """0 to 1; 1 of an empty corpus."""
        return self.n_covered / self.n_chunks if self.n_chunks else 1.0


@dataclass(frozen=True)
class Cost:
    """What filling an index takes."""

    n_chunks: int
    """Published chunks without a vector in it."""
    n_strings: int
    """Distinct strings among them."""
    n_model_calls: int
    """Those of the strings that the cache does not hold."""


@dataclass(frozen=True)
class Lacking:
    """A published chunk without a vector."""

    publication_id: int
    chunk_index: int
    contextualized_content: str


def coverage(connection: Connection, index: EmbeddingIndex) -> Coverage:
    """How many of the published chunks have a vector in the index."""
    row = connection.execute(_on(index, "vector_coverage")).fetchone()
    assert row is not None
    return Coverage(*row)


def cost_of_filling(connection: Connection, spec_hash: str, *, prefix: str, index: EmbeddingIndex | None) -> Cost:
    """What it takes to fill the index of a spec.

    Args:
        index: None: it was never made, and has nothing.
    """
    vectors = sql.Identifier(index.vector_table) if index else sql.SQL("(SELECT 0::bigint AS publication_id, 0 AS chunk_index WHERE false)")
    query = sql.SQL(load_queries(_QUERIES)["cost_of_filling"]).format(vectors=vectors)
    row = connection.execute(query, {"spec_hash": spec_hash, "prefix": prefix}).fetchone()
    assert row is not None
    n_strings, n_chunks, n_model_calls = row
    return Cost(n_chunks, n_strings, n_model_calls)


def chunks_without_vector(connection: Connection, index: EmbeddingIndex, *, after: Lacking | None, limit: int) -> list[Lacking]:
    """The next published chunks that have no vector in the index, in the order of their keys."""
    key = (after.publication_id, after.chunk_index) if after else (-1, -1)
    parameters = {"publication_id": key[0], "chunk_index": key[1], "limit": limit}
    return [Lacking(*row) for row in connection.execute(_on(index, "chunks_without_vector"), parameters)]


def fill_from_cache(connection: Connection, index: EmbeddingIndex, chunks: Sequence[Lacking], input_hashes: Sequence[str]) -> int:
    """Give those of the chunks that are still published their vectors from the cache; returns how many got one.

    In one transaction that gives way to publications and deletions. The connection is in autocommit.
    Raises EmbeddingIndexGone when the index takes part no more.
    """
    parameters = {
        "publication_ids": [chunk.publication_id for chunk in chunks],
        "chunk_indexes": [chunk.chunk_index for chunk in chunks],
        "input_hashes": list(input_hashes),
        "spec_hash": index.spec.spec_hash,
    }

    def fill() -> int:
        connection.execute(load_queries("publications")["lock_corpus_state"])
        _require_open(connection, index)
        return connection.execute(_on(index, "fill_vectors"), parameters).rowcount

    return giving_way(connection, fill)


def switch_embedding_index(connection: Connection, index: EmbeddingIndex, base: Settings, *, now: datetime) -> bool:
    """Make the index the one that searches read, and retire all others; False: it is already.

    Everything is looked at under the lock that publications share: an index that lacks the vector of one published chunk, or its
    search structure, is never switched to. Where EMBEDDING_MODEL names another model, its override becomes this one's in the same
    transaction, so that what is wanted and what is there agree. The connection is in autocommit.

    Raises:
        EmbeddingIndexIncomplete: it is not ready; nothing was changed.
        EmbeddingIndexGone: it takes part no more.
    """
    queries = load_queries(_QUERIES)

    def switch() -> bool:
        connection.execute(queries["lock_corpus_alone"])
        _require_open(connection, index)
        active = active_embedding_index(connection)
        if active is not None and active.embedding_index_id == index.embedding_index_id:
            return False
        (n_lacking,) = connection.execute(_on(index, "n_chunks_without_vector")).fetchone() or (0,)
        if n_lacking:
            raise EmbeddingIndexIncomplete(f"{n_lacking} published chunks have no vector of {index.spec.model}")
        built = hnsw_of(connection, index.vector_table)
        if built is None or not built.whole:
            raise EmbeddingIndexIncomplete(f"the index of {index.spec.model} has no search structure")
        connection.execute(queries["retire_open_embedding_indexes"], {"embedding_index_id": index.embedding_index_id, "now": now})
        connection.execute(queries["activate_embedding_index"], {"embedding_index_id": index.embedding_index_id})
        _agree(connection, index, base)
        reach("switch.before_commit")
        return True

    switched = giving_way(connection, switch)
    reach("switch.committed")
    return switched


def retire_building(connection: Connection, base: Settings, *, now: datetime) -> list[EmbeddingIndex]:
    """Retire what is being built beside the active index, and let EMBEDDING_MODEL name the active one's model; returns what was retired.

    The connection is in autocommit.
    """
    queries = load_queries(_QUERIES)

    def retire() -> list[EmbeddingIndex]:
        connection.execute(queries["lock_corpus_alone"])
        active = active_embedding_index(connection)
        building = [index for index in open_embedding_indexes(connection) if index.state == "building"]
        if active is not None and building:
            connection.execute(queries["retire_open_embedding_indexes"], {"embedding_index_id": active.embedding_index_id, "now": now})
            _agree(connection, active, base)
        return building

    return giving_way(connection, retire)


def latest_retired(connection: Connection) -> EmbeddingIndex | None:
    """The index to go back to: the one that was retired last."""
    return next((index for index in all_embedding_indexes(connection) if index.state == "retired"), None)


def drop_retired(connection: Connection, *, before: datetime) -> list[EmbeddingIndex]:
    """Drop the indexes that were retired before that moment, with their vectors; returns them. Never the active one.

    The cache keeps their vectors until it is cleared. The connection is in autocommit.
    """
    queries = load_queries(_QUERIES)

    def drop() -> list[EmbeddingIndex]:
        connection.execute(queries["lock_corpus_alone"])
        rows = connection.execute(queries["droppable_embedding_indexes"], {"before": before}).fetchall()
        droppable = {row[0] for row in rows}
        dropped = [index for index in all_embedding_indexes(connection) if index.embedding_index_id in droppable]
        for index in dropped:
            connection.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(index.vector_table)))
            connection.execute("DELETE FROM embedding_indexes WHERE embedding_index_id = %s", [index.embedding_index_id])
        reach("drop.before_commit")
        return dropped

    return giving_way(connection, drop)


def note_embeddings(connection: Connection, index: EmbeddingIndex, fingerprint: str, *, now: datetime) -> int:
    """Record that the embeddings of what is live are those of the active index; returns the documents for which that was news.

    Args:
        fingerprint: that of the stage under the settings that name this index.
    """
    parameters = {
        "fingerprint": fingerprint,
        "embedding_index_id": index.embedding_index_id,
        "spec_hash": index.spec.spec_hash,
        "prefix": index.spec.passage_prefix,
        "now": now,
    }

    def note() -> int:
        n_documents = connection.execute(load_queries(_QUERIES)["note_embeddings"], parameters).rowcount
        if n_documents:
            note_made_outside_runs(connection, now=now)
        return n_documents

    return giving_way(connection, note)


def _agree(connection: Connection, index: EmbeddingIndex, base: Settings) -> None:
    """Let EMBEDDING_MODEL name the model of this index, if it names another one or none that can be opened."""
    wanted = current_settings(connection, base).embedding_model
    try:
        agrees = embedding_spec(wanted).spec_hash == index.spec.spec_hash
    except EmbeddingModelUnavailable:
        agrees = False
    if not agrees and index.location is not None:
        set_overrides(connection, base, {"EMBEDDING_MODEL": index.location})


def _require_open(connection: Connection, index: EmbeddingIndex) -> None:
    if index.embedding_index_id not in {found.embedding_index_id for found in open_embedding_indexes(connection)}:
        raise EmbeddingIndexGone(f"the index of {index.spec.model} takes part no more")


def _on(index: EmbeddingIndex, name: str) -> sql.Composed:
    return sql.SQL(load_queries(_QUERIES)[name]).format(vectors=sql.Identifier(index.vector_table))
