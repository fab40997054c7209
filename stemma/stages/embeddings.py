"""Embeddings: one vector per exact string and model, made once and found again by the string's hash."""

from collections.abc import Callable

import polars as pl
import structlog

from stemma.embedding.embedder import Embedder, EmbeddingSpec
from stemma.embedding.models import portable_location
from stemma.embedding.sentence_transformers_embedder import UnsoundVector
from stemma.errors import DocumentError, EmbeddingMissing
from stemma.failpoints import reach
from stemma.library import claims
from stemma.stages.models_at_hand import ModelNotAtHand
from stemma.stages.run import Run, StageOutcome, Version, count_calls, now, partition_of, record, wished_for
from stemma.stages.situated import situated_chunks
from stemma.store.embedding_cache import missing_inputs, store_vectors
from stemma.store.embedding_indexes import EmbeddingIndex, ensure_embedding_index, open_embedding_indexes
from stemma.store.postgres import Pool
from stemma.store.stage_results import result_key

PASSAGES_PER_COMMIT = 256
"""Vectors are kept at least this often, so that an interrupted run repeats little."""

log = structlog.get_logger()


def embed_chunks(
    run: Run, sources: pl.DataFrame, *, wanted: EmbeddingSpec, embedder_of: Callable[[EmbeddingSpec], Embedder]
) -> StageOutcome:
    """Embed the strings that no cache holds, for every index that is active or building; those of a document for which this stage is wished, anew.

    Args:
        wanted: the spec that the run's settings name; its index is made if it is the first of it.
        embedder_of: the model of a spec, loaded at its first use.
    """
    situated = situated_chunks(run, sources)
    again = wished_for(sources, "embeddings")
    with run.pool.connection() as connection:
        ensure_embedding_index(connection, wanted, location=portable_location(run.settings.embedding_model))
        connection.commit()
        indexes = [index for index in open_embedding_indexes(connection) if _at_hand(index, embedder_of)]
    embedded: dict[str, int] = dict.fromkeys(situated.frames, 0)
    failures: dict[str, DocumentError] = {}
    paths = dict(sources.select("source_id", "source_path").iter_rows())
    for index in indexes:
        texts = {i: frame["contextualized_content"].to_list() for i, frame in situated.frames.items()}
        hashes = {i: [index.spec.input_hash(text) for text in passages] for i, passages in texts.items()}
        text_of = {digest: text for i in texts for digest, text in zip(hashes[i], texts[i], strict=True)}
        with run.pool.connection() as connection:
            missing = missing_inputs(connection, index.spec.spec_hash, list(text_of))
        redone = [digest for i in hashes if i in again for digest in hashes[i]]
        due = {digest: text_of[digest] for digest in (*missing, *redone)}
        unsound = embed_strings(run.pool, index.spec, due, embedder_of, replace=bool(redone))
        failures |= {
            i: EmbeddingMissing(paths[i], f"{index.spec.model} gives no sound vector for {n} of its chunks")
            for i, digests in hashes.items()
            if (n := len(unsound.intersection(digests)))
        }
        left = set(due)
        for i, digests in hashes.items():  # a string that several documents share is counted for the first
            embedded[i] += len(left.intersection(digests))
            left.difference_update(digests)
    embedded_for = ",".join(str(index.embedding_index_id) for index in indexes)  # publishing asks whether the active one is among them
    rows = {
        i: (
            situated.contexts[i].output_hash,
            result_key(wanted.spec_hash, *(wanted.input_hash(t) for t in frame["contextualized_content"])),
            embedded_for,
        )
        for i, frame in situated.frames.items()
        if i not in failures
    }
    with run.pool.connection() as connection:
        held = record(run, connection, "embeddings", run.wanted.embedding, rows)
        count_calls(run, connection, embedded=embedded)
        claims.fail_attempts(connection, run.run_id, "embedding", failures, run.settings, now=now())
    reach("embeddings.recorded")
    partitions = partition_of(sources)
    return StageOutcome(
        {
            partitions[i]: Version(output, {"chunks": situated.frames[i].height, "embedded": embedded[i], "cached": situated.frames[i].height - embedded[i], "tokens": int(situated.frames[i]["n_tokens"].sum()), "model": wanted.model})
            for i, (_, output, _) in rows.items()
            if i in held
        },
        {partitions[i]: error for i, error in failures.items()},
    )  # fmt: skip


def embed_strings(
    pool: Pool, spec: EmbeddingSpec, text_of: dict[str, str], embedder_of: Callable[[EmbeddingSpec], Embedder], *, replace: bool = False
) -> set[str]:
    """Embed the strings (input hash -> string) and keep their vectors in the cache, PASSAGES_PER_COMMIT at a time.

    With `replace` they take the place of vectors that the cache holds. Returns the hashes of those that the model has no sound vector for.
    """
    digests, unsound = list(text_of), set[str]()
    while digests:
        part = digests[:PASSAGES_PER_COMMIT]
        try:
            vectors = embedder_of(spec).embed_passages([text_of[digest] for digest in part])
        except UnsoundVector as error:
            refused = {part[position] for position in error.positions}
            unsound |= refused
            digests = [digest for digest in digests if digest not in refused]
            continue
        digests = digests[len(part) :]
        reach("embeddings.before_store")
        with pool.connection() as connection:
            store_vectors(connection, spec.spec_hash, part, vectors, replace=replace)
        reach("embeddings.stored")
    return unsound


def _at_hand(index: EmbeddingIndex, embedder_of: Callable[[EmbeddingSpec], Embedder]) -> bool:
    """Whether this run can embed for the index. The active one must; one that is being built stays incomplete without its model."""
    if index.state == "active":
        return True
    try:
        embedder_of(index.spec)
    except ModelNotAtHand as error:
        log.warning("not embedded for an index that is being built", index=index.embedding_index_id, code=error.code, reason=str(error))
        return False
    return True
