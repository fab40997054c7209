"""Dagster's runs as reconciling sees them."""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES, NOT_FINISHED_STATUSES

from stemma.errors import ConfigurationError, Unavailable, error_codes
from stemma.library.claims import Ending

BATCH_TAG = "stemma/batch"


class DagsterRuns:
    """Finds runs by the batch they were requested for."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self._instance = instance

    def unfinished_batches(self, batch_ids: Collection[UUID]) -> set[UUID]:
        """Those of the batches that have a run which has not ended."""
        return set(self._with_runs(batch_ids, list(NOT_FINISHED_STATUSES)))

    def ended_runs(self, batch_ids: Collection[UUID]) -> Counter[UUID]:
        """How many runs of each batch have ended, however they did."""
        return Counter(self._with_runs(batch_ids, list(FINISHED_STATUSES)))

    def cancelled_batches(self, batch_ids: Collection[UUID]) -> set[UUID]:
        """Those of the batches of which a person cancelled a run."""
        return set(self._with_runs(batch_ids, [dg.DagsterRunStatus.CANCELED]))

    def ending(self, run_id: str) -> Ending | None:
        """How the run ended, None while it goes on; one that is unknown was cancelled by whoever removed it."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.status is dg.DagsterRunStatus.CANCELED:
            return "cancelled"
        if run.status not in FINISHED_STATUSES:
            return None
        return "unavailable" if self._something_was_away(run_id) else "interrupted"

    def report_failed(self, run_id: str, message: str) -> None:
        """Mark a run whose process is gone as failed."""
        if (run := self._instance.get_run_by_id(run_id)) is not None and run.status in NOT_FINISHED_STATUSES:
            self._instance.report_run_failed(run, message)

    def _with_runs(self, batch_ids: Collection[UUID], statuses: list[dg.DagsterRunStatus]) -> list[UUID]:
        """The batch of every such run."""
        if not batch_ids:
            return []
        tags = {BATCH_TAG: [str(batch_id) for batch_id in batch_ids]}
        runs = self._instance.get_runs(dg.RunsFilter(statuses=statuses, tags=tags))
        return [UUID(run.tags[BATCH_TAG]) for run in runs]

    def _something_was_away(self, run_id: str) -> bool:
        """Whether a step ended with an error of what surrounds the documents: a store that was away, a setting to be mended."""
        around = {error.__name__ for error in error_codes().values() if issubclass(error, Unavailable | ConfigurationError)}
        for record in self._instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.STEP_FAILURE).records:
            event = record.event_log_entry.dagster_event
            error = event.step_failure_data.error if event else None
            while error is not None:
                if error.cls_name in around:
                    return True
                error = error.cause
        return False
