"""Changing the embedding model: a second index is filled beside the active one, then one transaction switches. Killed anywhere, it goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from stemma.embedding.embedder import EmbeddingSpec
from stemma.embedding.models import embedding_spec, portable_location
from stemma.errors import RequestError
from stemma.failpoints import reach
from stemma.stages.embeddings import embed_strings
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.stages.models_at_hand import location_of
from stemma.stages.run import now
from stemma.store.embedded import postgres_url
from stemma.store.embedding_cache import missing_inputs
from stemma.store.embedding_indexes import EmbeddingIndex, IndexState, active_embedding_index, embedding_index_of, ensure_embedding_index
from stemma.store.embedding_switch import (
    Cost,
    Coverage,
    EmbeddingIndexIncomplete,
    Lacking,
    chunks_without_vector,
    cost_of_filling,
    coverage,
    drop_retired,
    fill_from_cache,
    latest_retired,
    note_embeddings,
    retire_building,
    switch_embedding_index,
)
from stemma.store.hnsw import build_hnsw
from stemma.store.index_lock import alone
from stemma.store.locks import EMBEDDING_INDEX_LOCK
from stemma.store.postgres import Connection, autocommitted

CHUNKS_PER_BATCH = 512
"""Chunks read, embedded and written before the next are looked at."""
MAX_ROUNDS = 20
"""What is published while an index is being filled is filled in the next round; each is shorter than the one before."""

log = structlog.get_logger()


class NothingToRollBackTo(RequestError):
    """No embedding index is retired: there is none to go back to."""

    code, remedy = (
        "nothing_to_roll_back_to",
        "`stemma reembed --model` embeds the corpus by any model; `stemma db index` lists the indexes.",
    )


@dataclass(frozen=True)
class Plan:
    """What embedding the corpus by a model would take."""

    model: str
    location: str
    dimension: int
    state: IndexState | None
    """Of the model's index; None: it was never made, or dropped."""
    cost: Cost
    coverage: Coverage


@dataclass(frozen=True)
class Reembedded:
    """What was done."""

    model: str
    embedding_index_id: int
    previous: str | None
    """The model that searches used before; the same one if nothing was switched."""
    switched: bool
    n_chunks: int
    n_filled: int
    """Chunks that got their vector now."""
    n_embedded: int
    """Strings that the model was asked for; the others were in the cache."""


@dataclass(frozen=True)
class Wish:
    """A model that is wanted and not read yet."""

    name: str
    """The same for as long as it is wanted beside the same active index."""
    sentence: str
    """For a person."""


Progress = Callable[[Coverage], None]


def plan_reembed(here: Installation, model: str | None = None, *, rollback: bool = False) -> Plan:
    """What `reembed` or `roll_back` would do; nothing is changed. Raises as they do."""
    with here.pool.connection() as connection:
        spec, location = _target(here, connection, model, rollback=rollback)
        index = embedding_index_of(connection, spec)
        cost = cost_of_filling(connection, spec.spec_hash, prefix=spec.passage_prefix, index=index)
        (n_chunks,) = connection.execute("SELECT coalesce(sum(n_chunks), 0)::bigint FROM documents").fetchone() or (0,)
    covered = Coverage(n_chunks, n_chunks - cost.n_chunks)
    return Plan(spec.model, location, spec.dimension, index.state if index else None, cost, covered)


def reembed(here: Installation, model: str | None = None, *, rollback: bool = False, progress: Progress = lambda _: None) -> Reembedded:
    """Give every published chunk a vector of the model, and let searches read those.

    Searches stay on the active index until then, and whatever is published meanwhile gets vectors in both. Nothing is done twice: the
    index and the cache keep what an earlier call did.

    Args:
        model: a value of EMBEDDING_MODEL; None: the present one.
        rollback: instead, go back to the index that was retired last; only its gap is filled.
        progress: called after each batch.
    Raises:
        IndexesBusy: another process does this already.
        EmbeddingIndexIncomplete: the model has no sound vector for some chunk, or documents were published faster than embedded.
        EmbeddingModelUnavailable, ModelNotAtHand, NothingToRollBackTo, DimensionUnsupported: nothing was done.
    """
    with alone(postgres_url(here.base), EMBEDDING_INDEX_LOCK) as connection:
        before = active_embedding_index(connection)
        spec, location = _target(here, connection, model, rollback=rollback)
        index = ensure_embedding_index(connection, spec, location=location)
        n_filled, n_embedded, switched = _fill_and_switch(here, connection, index, progress)
        note_embeddings(connection, index, wanted_fingerprints(here.settings()).embedding, now=now())
        n_chunks = coverage(connection, index).n_chunks
    log.info("embedded anew", model=spec.model, index=index.embedding_index_id, switched=switched, filled=n_filled, embedded=n_embedded)
    return Reembedded(spec.model, index.embedding_index_id, before.spec.model if before else None, switched, n_chunks, n_filled, n_embedded)


def unmet_wish(here: Installation) -> Wish | None:
    """What is wanted and not there: EMBEDDING_MODEL names another model than searches read. None: all is as it is wanted.

    Raises EmbeddingModelUnavailable: it names none that can be opened.
    """
    wanted = embedding_spec(here.settings().embedding_model)
    with here.pool.connection() as connection:
        active = active_embedding_index(connection)
        if active is None or active.spec.spec_hash == wanted.spec_hash:
            return None
        index = embedding_index_of(connection, wanted)
        covered = coverage(connection, index).share if index else 0.0
    return Wish(
        f"{active.embedding_index_id}:{wanted.spec_hash[:16]}",
        f"EMBEDDING_MODEL is {wanted.model}, searches read the vectors of {active.spec.model}: {covered:.0%} of the chunks have theirs, "
        "`stemma reembed` or the job `reembed` fills the rest and switches",
    )


def abandon_reembed(here: Installation) -> list[EmbeddingIndex]:
    """Stop building what is not active: new publications need no vectors in it any more. Its vectors stay until they are dropped.

    Raises IndexesBusy while a process is filling it.
    """
    with alone(postgres_url(here.base), EMBEDDING_INDEX_LOCK) as connection:
        return retire_building(connection, here.base, now=now())


def drop_retired_indexes(here: Installation) -> list[EmbeddingIndex]:
    """Drop the retired indexes that no query can still be reading: those retired RETIRE_AFTER_S ago or longer. Raises IndexesBusy."""
    with alone(postgres_url(here.base), EMBEDDING_INDEX_LOCK) as connection:
        return drop_retired(connection, before=now() - timedelta(seconds=here.settings().retire_after_s))


def _target(here: Installation, connection: Connection, model: str | None, *, rollback: bool) -> tuple[EmbeddingSpec, str]:
    """The spec to embed by, and where its model lies."""
    if not rollback:
        location = portable_location(model or here.settings().embedding_model)
        return embedding_spec(location), location
    retired = latest_retired(connection)
    if retired is None:
        raise NothingToRollBackTo("no embedding index is retired")
    return retired.spec, location_of(connection, retired.spec, here.settings())


def _fill_and_switch(here: Installation, connection: Connection, index: EmbeddingIndex, progress: Progress) -> tuple[int, int, bool]:
    """(chunks filled, strings embedded, whether searches read another index than before)."""
    n_filled = n_embedded = 0
    for _ in range(MAX_ROUNDS):
        filled, embedded = _fill(here, connection, index, progress)
        n_filled, n_embedded = n_filled + filled, n_embedded + embedded
        build_hnsw(connection, index.vector_table)
        reach("reembed.built")
        try:
            return n_filled, n_embedded, switch_embedding_index(connection, index, here.base, now=now())
        except EmbeddingIndexIncomplete as error:
            log.info("published meanwhile", reason=str(error))
    raise EmbeddingIndexIncomplete(f"documents are published faster than {index.spec.model} embeds them")


def _fill(here: Installation, connection: Connection, index: EmbeddingIndex, progress: Progress) -> tuple[int, int]:
    """One round over the chunks that lack a vector: (chunks filled, strings embedded)."""
    n_filled = n_embedded = 0
    unsound: list[Lacking] = []
    last: Lacking | None = None
    while chunks := chunks_without_vector(connection, index, after=last, limit=CHUNKS_PER_BATCH):
        last = chunks[-1]
        digests = [index.spec.input_hash(chunk.contextualized_content) for chunk in chunks]
        text_of = dict(zip(digests, (chunk.contextualized_content for chunk in chunks), strict=True))
        missing = missing_inputs(connection, index.spec.spec_hash, digests)
        refused = embed_strings(here.pool, index.spec, {digest: text_of[digest] for digest in missing}, here.embedder_of)
        unsound += [chunk for chunk, digest in zip(chunks, digests, strict=True) if digest in refused]
        n_embedded += len(missing) - len(refused)
        n_filled += fill_from_cache(connection, index, chunks, digests)
        reach("reembed.filled")
        progress(coverage(connection, index))
    if unsound:
        raise EmbeddingIndexIncomplete(_explain(here, index, unsound))
    return n_filled, n_embedded


def _explain(here: Installation, index: EmbeddingIndex, unsound: list[Lacking]) -> str:
    with autocommitted(here.pool) as connection:
        row = connection.execute("SELECT source_path FROM documents WHERE publication_id = %s", [unsound[0].publication_id]).fetchone()
    where = f", the first in {row[0]}" if row else ""
    return f"{index.spec.model} gives no sound vector for {len(unsound)} chunks{where}"
