"""The layers of the corpus held against their suites: some documents, as a run does, or all of them, as the audit does."""

import contextlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import polars as pl

from evals.expectations import bm25_index, chunks, contextualized_chunks, corpus, documents, embeddings
from evals.expectations.languages import is_english
from evals.expectations.validation import Verdict, validate
from stemma.embedding.embedder import EmbeddingSpec
from stemma.lexical.index import LexicalIndex
from stemma.retrieval import published_facts as facts
from stemma.store.embedding_indexes import active_embedding_index
from stemma.store.postgres import Connection
from stemma.store.sparse_indexes import SparseIndex, active_sparse_index

Layer = Literal["documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus"]

LAYERS: tuple[Layer, ...] = ("documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus")

IndexOf = Callable[[SparseIndex], LexicalIndex]


@dataclass(frozen=True)
class Published:
    """Live publications of one snapshot, whose texts are read once however many suites ask for them."""

    connection: Connection
    publication_ids: Sequence[int]

    @cached_property
    def texts(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """DOCUMENT_FACTS and CHUNK_FACTS."""
        return facts.text_facts(self.connection, self.publication_ids)


def hold(live: Published, layers: Collection[Layer], *, index_of: IndexOf) -> dict[Layer, Verdict]:
    """Layer -> how these publications meet its suite; what is held is what readers see.

    Args:
        index_of: opens the engine of a keyword index; it is closed here.
    """
    connection, publication_ids = live.connection, live.publication_ids
    verdicts: dict[Layer, Verdict] = {}
    if {"documents", "chunks", "contextualized_chunks"} & set(layers):
        document_facts, chunk_facts = live.texts
        verdicts["documents"] = validate(document_facts.drop("beginning"), documents.suite())
        verdicts["chunks"] = validate(chunk_facts, chunks.suite())
        verdicts["contextualized_chunks"] = validate(chunk_facts, contextualized_chunks.suite())
    if "embeddings" in layers and (embedding_index := active_embedding_index(connection)):
        vectors = facts.vector_facts(connection, publication_ids, embedding_index)
        verdicts["embeddings"] = validate(vectors, embeddings.suite(embedding_index.spec))
    if "bm25_index" in layers and (sparse_index := active_sparse_index(connection)):
        with contextlib.closing(index_of(sparse_index)) as engine:
            verdicts["bm25_index"] = validate(facts.entry_facts(connection, publication_ids, engine), bm25_index.suite())
    if "corpus" in layers:
        verdicts["corpus"] = validate(facts.publication_facts(connection, publication_ids), corpus.suite())
    return {layer: verdicts[layer] for layer in LAYERS if layer in layers and layer in verdicts}


def drift(live: Published, *, spec: EmbeddingSpec | None, knows: str) -> dict[Layer, Verdict]:
    """Layer -> how the distributions of these publications, all that are live, meet their bounds: a warning, never a broken promise.

    Args:
        spec: of the vectors that searches read.
        knows: the one language of the keyword index, "english" or another.
    """
    document_facts, chunk_facts = live.texts
    languages = document_facts.with_columns(
        is_english=pl.col("beginning").map_elements(is_english, return_dtype=pl.Boolean).cast(pl.Float64)
    ).drop("beginning")
    told = languages.drop_nulls("is_english")  # a corpus of scraps has no language, and a mean of nothing meets no bound
    failed = facts.statuses(live.connection).with_columns(is_failed=(pl.col("status") == "failed").cast(pl.Float64))
    window = spec.max_tokens if spec else None
    lengths = chunk_facts.with_columns(
        fill=pl.col("measure") / pl.col("limit"),
        is_short=(pl.col("n_tokens") < chunks.SHORT_TOKENS).cast(pl.Float64),
        is_beyond_window=(pl.col("n_tokens") > pl.lit(window, pl.Int64)).cast(pl.Float64),
    )
    return {
        "documents": _joined(validate(told, documents.drift(english_only=knows == "english")), validate(failed, documents.failures())),
        "chunks": validate(lengths, chunks.drift()),
    }


def orphaned(connection: Connection) -> Verdict:
    """What is live without its other half, anywhere."""
    return validate(facts.orphans(connection), corpus.no_orphans())


def _joined(first: Verdict, second: Verdict) -> Verdict:
    return Verdict(first.n_rows, first.expected + second.expected, first.broken + second.broken)
