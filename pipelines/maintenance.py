"""Maintenance jobs: what keeps a long-lived installation sound."""

from datetime import UTC, datetime

import dagster as dg

from assets.partitions import OWNERS
from resources.corpus import CorpusResource
from stemma.library.looks import request_full_check


@dg.op
def request_every_hash(context: dg.OpExecutionContext, corpus: CorpusResource) -> None:
    """Let the next looks read and hash every file, whatever its size and times say."""
    with corpus.installation.pool.connection() as connection:
        request_full_check(connection, now=datetime.now(UTC))
    context.log.info("every file is read and hashed by the next runs; what is unchanged is not parsed again")


@dg.job(executor_def=dg.in_process_executor, owners=OWNERS)
def check_every_file() -> None:
    """Hash every file again: finds changes that left size and times as they were. Unchanged files cost a read and no model call."""
    request_every_hash()
