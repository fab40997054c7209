"""What is stale, from which stage on, and why: one query over what each stage was made from."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, LiteralString

import polars as pl

from sql import load_queries
from stemma.library.files import RACY_WINDOW_NS
from stemma.library.looks import last_full_check
from stemma.library.restriction import EVERYTHING, Restriction
from stemma.settings import Fingerprints, Settings
from stemma.store.postgres import Connection
from stemma.store.rows import AssetStage

ASSETS: tuple[AssetStage, ...] = ("documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus")
"""The chain, in order."""

ABOVE: dict[AssetStage, tuple[AssetStage, ...]] = {
    "documents": (),
    "chunks": ("documents",),
    "contextualized_chunks": ("documents", "chunks"),
    "embeddings": ("documents", "chunks", "contextualized_chunks"),
    "bm25_index": ("documents", "chunks", "contextualized_chunks"),
    "corpus": ("documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index"),
}
"""Asset -> everything it is made from, directly or not."""

STALE_SCHEMA = pl.Schema(
    {
        "source_id": pl.String,
        "partition_key": pl.String,
        "source_path": pl.String,
        "size": pl.Int64,  # bytes, as last seen
        "stage": pl.String,  # the first asset of the chain that differs
        "reason": pl.String,
        "version": pl.String,  # what an attempt from here would try
        "claimable": pl.Boolean,  # it waits for nothing but a free batch
        "settling": pl.Boolean,  # modified a moment ago: a later look takes it, when its stat can vouch for what is read
        "waits_for": pl.String,  # null, or one of WAITS
    }
)

LISTED = ("source_id", "source_path", "partition_key", "stage", "reason", "waits_for")
"""What a person is shown of a stale document."""

WAITS = {
    "run": "being worked on",
    "retry": "waits after a failure and is tried again",
    "change": "failed, and waits for another file, other settings or other code",
    "walk": "is taken once the walk that found it is complete",
    "file": "its file is missing",
    "backfill": "waits for a backfill, as the policy of its stage is manual",
    "wish": "was removed from the corpus, and comes back when it is asked for or its file changes",
    "deletion": "is being deleted",
}
"""What a stale document waits for, in words."""

COUNT_SCHEMA = pl.Schema(
    dict.fromkeys(ASSETS, pl.String)  # why this asset is not what its own input and recipe give; null: it is
    | {"stage": pl.String, "reason": pl.String, "waits_for": pl.String, "settling": pl.Boolean, "sources": pl.Int64}
)


def stale_counts(
    connection: Connection, settings: Settings, wanted: Fingerprints, *, restriction: Restriction = EVERYTHING, now: datetime
) -> pl.DataFrame:
    """How many sources are stale in which way: a few rows (COUNT_SCHEMA) whatever the size of the library, most first."""
    rows = connection.execute(_query("stale_counts"), stale_query_parameters(connection, settings, wanted, restriction, now)).fetchall()
    return pl.DataFrame(rows, schema=COUNT_SCHEMA, orient="row")


def n_sources(counts: pl.DataFrame) -> int:
    """How many sources the rows (COUNT_SCHEMA) stand for."""
    return int(counts["sources"].sum())


def kinds_of(counts: pl.DataFrame, stage: AssetStage | None = None) -> list[dict[str, Any]]:
    """Of counts (COUNT_SCHEMA): stage, reason, waits_for and how many documents, most first; with `stage` those stale from it on."""
    kinds = counts if stage is None else counts.filter(pl.col("stage") == stage)
    grouped = kinds.group_by("stage", "reason", "waits_for").agg(pl.col("sources").sum().alias("documents"))
    return grouped.sort("documents", "stage", "reason", "waits_for", descending=[True, False, False, False]).to_dicts()


def stale_sources(
    connection: Connection, settings: Settings, wanted: Fingerprints, *,
    restriction: Restriction = EVERYTHING, stage: AssetStage | None = None, after: str | None = None, limit: int | None = None, now: datetime,
) -> pl.DataFrame:  # fmt: skip
    """Up to `limit` rows (STALE_SCHEMA; None: all) of sources whose corpus is not what its file and the wanted recipes give, by path.

    Args:
        stage: only those that are stale from this asset on.
        after: only those whose path comes after this one.
    """
    filters = {"stage": stage, "after": after, "limit": limit}
    return _page(connection, stale_query_parameters(connection, settings, wanted, restriction, now) | filters)


def claimable_sources(
    connection: Connection,
    settings: Settings,
    wanted: Fingerprints,
    *,
    overdue: Sequence[str],
    last: Sequence[str],
    limit: int,
    now: datetime,
) -> pl.DataFrame:
    """The first `limit` stale sources (STALE_SCHEMA) that a run may take, by path, those of `last` at the end; of those that settle only the `overdue`."""
    filters = {"claimable": True, "overdue": list(overdue), "last": list(last), "limit": limit}
    return _page(connection, stale_query_parameters(connection, settings, wanted, EVERYTHING, now) | filters)


def settling_sources(connection: Connection, settings: Settings, wanted: Fingerprints, *, limit: int, now: datetime) -> list[str]:
    """The source_ids of the first `limit` stale files that were modified a moment ago, by path."""
    return _page(connection, stale_query_parameters(connection, settings, wanted, EVERYTHING, now) | {"settling": True, "limit": limit})[
        "source_id"
    ].to_list()


def wish_stale(
    connection: Connection, settings: Settings, wanted: Fingerprints, restriction: Restriction, *, stage: AssetStage | None, now: datetime
) -> int:
    """Ask for what is stale of these documents, from `stage` on (None: any), as it is wanted now; returns the number of sources."""
    return connection.execute(
        _query("wish_stale"), stale_query_parameters(connection, settings, wanted, restriction, now) | {"stage": stage}
    ).rowcount


def _page(connection: Connection, parameters: dict[str, Any]) -> pl.DataFrame:
    anything: dict[str, Any] = {"stage": None, "after": None, "claimable": False, "overdue": [], "settling": False, "last": []}
    rows = connection.execute(_query("stale_page"), anything | parameters).fetchall()
    return pl.DataFrame(rows, schema=STALE_SCHEMA, orient="row")


def _query(name: str) -> LiteralString:
    return stale_query_start() + "\n" + load_queries("staleness")[name]


def stale_query_start() -> LiteralString:
    """The beginning of a query over what is stale: it defines the relation `stale`, and binds `stale_query_parameters`."""
    return load_queries("restriction")["selected"] + "\n" + load_queries("staleness")["stale"]


def stale_query_parameters(
    connection: Connection, settings: Settings, wanted: Fingerprints, restriction: Restriction, now: datetime
) -> dict[str, Any]:
    """What `stale_query_start` binds."""
    now_ns = int(now.timestamp() * 1e9)
    full_check, periodic = last_full_check(connection), now - timedelta(seconds=settings.full_hash_interval_s)
    return asdict(wanted) | restriction.parameters | {
        "now": now,
        "hash_before": max(full_check, periodic) if full_check else periodic,
        "now_ns": now_ns,
        "settled_ns": now_ns - RACY_WINDOW_NS,
        "manual": sorted(settings.manual_assets),
        "zip_archives": settings.zip_archives,
    }  # fmt: skip
