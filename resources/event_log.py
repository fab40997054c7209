"""Dagster's event log, kept bounded: what is old goes; what staleness and the UI's present state are read from stays.

Dagster removes runs one at a time and with all their events, the latest materialization of a partition among them: then the partition
would be missing. So events are removed in sets, by SQL on Dagster's own tables; tests fail when an upgrade changes these.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage

from sql import load_queries

RUNS_AT_ONCE = 1_000
"""Each portion reads the last events of all partitions once, whatever its size."""
NO_RUN = ""
"""What Dagster writes as the run of an event that no run made, such as the observation of settings."""


@dataclass(frozen=True)
class Pruned:
    """What was removed."""

    runs: int
    events: int
    kept_runs: int
    """Old runs that stay in the list, since the present state of some partition comes from them; their logs are gone."""


def prune_event_log(instance: dg.DagsterInstance, *, partitions: str, before: datetime) -> Pruned:
    """Remove runs that ended before then, with their events, check results and captured logs. May be repeated, and ended at any time.

    Args:
        partitions: the name of the dynamic set; what is old and of a partition that is not in it goes too, the last word on it as well.
    """
    # All of them at once: Dagster pages by the last run seen, and finds nothing more once that one is removed.
    old = list(instance.get_run_ids(dg.RunsFilter(statuses=list(FINISHED_STATUSES), updated_before=before)))
    n_events = _prune_events(instance, [NO_RUN], partitions=partitions, before=before)
    n_kept = 0
    for start in range(0, len(old), RUNS_AT_ONCE):
        run_ids = old[start : start + RUNS_AT_ONCE]
        n_events += _prune_events(instance, run_ids, partitions=partitions, before=before)
        needed = _runs_still_needed(instance, run_ids)
        for run_id in run_ids:
            instance.compute_log_manager.delete_logs(prefix=[run_id])
            if run_id not in needed:
                instance.delete_run(run_id)
        n_kept += len(needed)
    return Pruned(len(old) - n_kept, n_events, n_kept)


def _prune_events(instance: dg.DagsterInstance, run_ids: list[str], *, partitions: str, before: datetime) -> int:
    queries = load_queries("event_log")
    parameters = {"run_ids": run_ids, "before": before.astimezone(UTC).replace(tzinfo=None), "partitions": partitions}
    with _storage(instance).index_connection() as connection:
        connection.exec_driver_sql(queries["prune_checks"], parameters)
        return connection.exec_driver_sql(queries["prune_events"], parameters).scalar_one()


def _runs_still_needed(instance: dg.DagsterInstance, run_ids: list[str]) -> set[str]:
    with _storage(instance).index_connection() as connection:
        found = connection.exec_driver_sql(load_queries("event_log")["runs_still_needed"], {"run_ids": run_ids})
        return {run_id for (run_id,) in found}


def _storage(instance: dg.DagsterInstance) -> SqlEventLogStorage:
    return cast("SqlEventLogStorage", instance.event_log_storage)
