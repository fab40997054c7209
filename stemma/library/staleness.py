"""What is stale, from which stage on, and why: one query over what each stage was made from."""

from dataclasses import asdict
from datetime import datetime, timedelta

import polars as pl

from sql import load_queries
from stemma.library.files import RACY_WINDOW_NS
from stemma.library.looks import last_full_check
from stemma.settings import Fingerprints, Settings
from stemma.store.postgres import Connection

STALE_SCHEMA = pl.Schema(
    {
        "source_id": pl.String,
        "partition_key": pl.String,
        "source_path": pl.String,
        "size": pl.Int64,  # bytes, as last seen
        "stage": pl.String,  # the first asset of the chain that differs
        "reason": pl.String,
        "version": pl.String,  # what an attempt from here would try
        "claimable": pl.Boolean,  # present, not deleting, not excluded, not waiting for a retry, not claimed
        "settling": pl.Boolean,  # modified a moment ago: a later look takes it, when its stat can vouch for what is read
    }
)


def stale_sources(connection: Connection, settings: Settings, wanted: Fingerprints, *, now: datetime) -> pl.DataFrame:
    """One row (STALE_SCHEMA) per source whose corpus is not what its file and the wanted recipes give, by path."""
    now_ns = int(now.timestamp() * 1e9)
    full_check, periodic = last_full_check(connection), now - timedelta(seconds=settings.full_hash_interval_s)
    parameters = asdict(wanted) | {
        "now": now,
        "hash_before": max(full_check, periodic) if full_check else periodic,
        "now_ns": now_ns,
        "settled_ns": now_ns - RACY_WINDOW_NS,
    }
    rows = connection.execute(load_queries("staleness")["stale_sources"], parameters).fetchall()
    return pl.DataFrame(rows, schema=STALE_SCHEMA, orient="row")
