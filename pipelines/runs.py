"""Dagster's runs as reconciling sees them."""

from collections.abc import Collection
from uuid import UUID

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES, NOT_FINISHED_STATUSES

BATCH_TAG = "stemma/batch"


class DagsterRuns:
    """Finds runs by the batch they were requested for."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance

    def unfinished_batches(self, batch_ids: Collection[UUID]) -> set[UUID]:
        """Those of the batches that have a run which has not ended."""
        if not batch_ids:
            return set()
        runs = self._instance.get_runs(dg.RunsFilter(statuses=list(NOT_FINISHED_STATUSES)))
        tagged = {run.tags.get(BATCH_TAG) for run in runs}
        return {batch_id for batch_id in batch_ids if str(batch_id) in tagged}

    def has_ended(self, run_id: str) -> bool:
        """Whether the run is in a final state, or unknown to Dagster."""
        run = self._instance.get_run_by_id(run_id)
        return run is None or run.status in FINISHED_STATUSES

    def report_failed(self, run_id: str, message: str) -> None:
        """Mark a run whose process is gone as failed."""
        if (run := self._instance.get_run_by_id(run_id)) is not None and run.status in NOT_FINISHED_STATUSES:
            self._instance.report_run_failed(run, message)
