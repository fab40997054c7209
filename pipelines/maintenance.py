"""Maintenance jobs: what keeps a long-lived installation sound and its databases bounded."""

from datetime import UTC, datetime, timedelta

import dagster as dg
from pydantic import Field

from assets.partitions import DOCUMENTS, OWNERS
from resources.corpus import CorpusResource
from resources.event_log import prune_event_log as prune
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


class EventLogRetention(dg.Config):
    """How much of Dagster's history stays."""

    days: int = Field(0, ge=0, le=36_500)
    """Days for which runs that ended are kept; 0: the setting EVENT_LOG_RETENTION_DAYS."""


@dg.op
def remove_old_runs(context: dg.OpExecutionContext, config: EventLogRetention, corpus: CorpusResource) -> None:
    """Remove runs that ended long ago with their events and logs; what the present state of a partition is read from stays."""
    days = config.days or corpus.installation.settings().event_log_retention_days
    pruned = prune(context.instance, partitions=DOCUMENTS, before=datetime.now(UTC) - timedelta(days=days))
    context.log.info(
        "%s runs and %s events older than %s days removed; %s old runs stay without their logs, since present partitions come from them",
        pruned.runs, pruned.events, days, pruned.kept_runs,
    )  # fmt: skip


@dg.job(executor_def=dg.in_process_executor, owners=OWNERS)
def prune_event_log() -> None:
    """Remove Dagster's old runs, events and logs, so that its database does not grow without bound. Nothing becomes stale by it."""
    remove_old_runs()
