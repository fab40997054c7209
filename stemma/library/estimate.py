"""What bringing documents up to date will cost, said before any work is done, and how sure each number is."""

from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any, LiteralString, cast

from sql import load_queries
from stemma.chunking.strategies import UNITS
from stemma.embedding.embedder import EmbeddingSpec
from stemma.library.restriction import Restriction
from stemma.library.staleness import ASSETS, stale_query_parameters, stale_query_start
from stemma.settings import Fingerprints, Settings
from stemma.store.postgres import Connection
from stemma.store.rows import AssetStage

CHARACTERS_PER_TOKEN = 4
"""Of English text; to compare a chunk size in tokens with one in characters."""

RECUT: tuple[AssetStage, ...] = ("documents", "chunks")
"""Stages after which the chunks are others, so that their number can only be estimated."""


@dataclass(frozen=True)
class Estimate:
    """The cost of a backfill. `exact` names the numbers that hold if nothing changes meanwhile; the others are estimates."""

    documents: int
    by_stage: dict[str, int]
    """Stage that the work begins at -> documents."""
    runs: int
    """At least, by BATCH_SIZE; fewer documents go into a run where they are long."""
    chunks: int
    parse_calls: int
    """At most: bytes that were parsed before under the wanted recipe are not parsed again."""
    context_calls: int
    """Model calls; no strategy of this release makes any."""
    embed_calls: int
    """Strings given to the model, after what the cache holds; at most, where it is not exact."""
    seconds: float | None
    """From what the latest runs took; None before the first."""
    runs_measured: int
    exact: tuple[str, ...]


def estimate_work(
    connection: Connection, settings: Settings, wanted: Fingerprints, spec: EmbeddingSpec, restriction: Restriction, *,
    stage: AssetStage | None, force: bool, now: datetime,
) -> Estimate:  # fmt: skip
    """What `wish` with the same arguments would cause; reads the database only, no file and no model.

    Args:
        spec: that of the wanted embedding model.
    """
    if force:
        stage = stage or restriction.first_stage or "documents"
    parameters = stale_query_parameters(connection, settings, wanted, restriction, now) | {
        "stage": stage, "spec_hash": spec.spec_hash, "prefix": spec.passage_prefix,
    }  # fmt: skip
    begin = _beginning(force=force)
    queries = load_queries("estimate")
    extents = connection.execute(begin + queries["extent"], parameters).fetchall()
    strings, missing = connection.execute(begin + queries["strings"], parameters).fetchall()[0]
    per_chunk, made_with = connection.execute(queries["density"]).fetchall()[0]
    by_stage: dict[str, int] = {row[0]: row[1] for row in sorted(extents, key=lambda row: ASSETS.index(row[0]))}
    chunks = embed_calls = 0.0
    exact = not any(asset in RECUT for asset in by_stage)
    for asset, _, _, n_published, new_bytes in extents:
        n_chunks = n_published * (_growth(settings, made_with) if asset in RECUT else 1) + new_bytes / (per_chunk or settings.chunk_size)
        chunks += n_chunks
        if asset in (*RECUT, "contextualized_chunks"):
            embed_calls += n_chunks
    embed_calls += strings if stage == "embeddings" and force else missing
    seconds, runs_measured = _seconds(connection, by_stage)
    documents = sum(by_stage.values())
    return Estimate(
        documents=documents,
        by_stage=by_stage,
        runs=ceil(documents / settings.batch_size),
        chunks=ceil(chunks),
        parse_calls=by_stage.get("documents", 0),
        context_calls=0,
        embed_calls=ceil(embed_calls),
        seconds=seconds,
        runs_measured=runs_measured,
        exact=(
            "documents",
            *(["chunks"] if exact else []),
            *(["parse_calls"] if force or "documents" not in by_stage else []),
            "context_calls",
            *(["embed_calls"] if exact and "contextualized_chunks" not in by_stage else []),
        ),
    )


def _beginning(*, force: bool) -> LiteralString:
    queries = load_queries("estimate")
    parts = [load_queries("restriction")["selected"], queries["forced_work"]] if force else [stale_query_start(), queries["stale_work"]]
    return cast(LiteralString, "\n".join(parts) + "\n")


def _growth(settings: Settings, made_with: dict[str, Any] | None) -> float:
    """How many chunks one of the published ones becomes, by the sizes alone."""
    if made_with is None:
        return 1.0
    return _characters(made_with["CHUNKING_STRATEGY"], made_with["CHUNK_SIZE"]) / _characters(
        settings.chunking_strategy, settings.chunk_size
    )


def _characters(strategy: str, size: int) -> float:
    return size * (CHARACTERS_PER_TOKEN if UNITS.get(strategy) == "tokens" else 1)


def _seconds(connection: Connection, by_stage: dict[str, int]) -> tuple[float | None, int]:
    """Estimated time, and the runs it rests on: those that began at the same stage, or all where there is none."""
    pace = {stage: (n, seconds, runs) for stage, n, seconds, runs in connection.execute(load_queries("estimate")["pace"]).fetchall()}
    if not pace:
        return None, 0
    everything = tuple(map(sum, zip(*pace.values(), strict=True)))
    total = sum(n * pace.get(stage, everything)[1] / pace.get(stage, everything)[0] for stage, n in by_stage.items())
    return round(total, 1), int(everything[2])
