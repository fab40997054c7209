"""The audit: read every store and report each promise that does not hold, without changing anything."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime

import polars as pl

from stemma.audit.database import audit_database
from stemma.audit.files import audit_files, audit_lake
from stemma.audit.keyword_indexes import audit_keyword_indexes
from stemma.audit.violations import CHECKS, VIOLATION_SCHEMA
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.store.postgres import Connection, Pool


def audit(here: Installation, *, deep: bool = False, now: datetime) -> pl.DataFrame:
    """Every violation (VIOLATION_SCHEMA), in the order of CHECKS; no row means that every promise holds.

    The rows are read in one snapshot, so that what is published meanwhile is no violation.

    Args:
        deep: read every file whose stat is unchanged, and compare its hash.
    """
    settings = here.settings()
    found: list[pl.DataFrame] = [VIOLATION_SCHEMA.to_frame()]
    with _snapshot(here.pool) as connection:
        found += audit_database(connection, settings, wanted_fingerprints(settings), now=now)
        found += audit_keyword_indexes(connection, here.pool, index_of=here.index_of)
        found += audit_files(connection, settings, deep=deep)
    with here.pool.connection() as connection:
        found += audit_lake(connection, here.lake, now=now)
    order = pl.col("check").replace_strict({check: position for position, check in enumerate(CHECKS)}, return_dtype=pl.Int32)
    return pl.concat(found).sort(order, "subject", maintain_order=True)


@contextmanager
def _snapshot(pool: Pool) -> Generator[Connection]:
    with pool.connection() as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield connection
