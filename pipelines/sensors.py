"""Sensors: what makes new, changed and vanished files flow through without anyone clicking."""

from datetime import UTC, datetime
from uuid import uuid4

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from assets.partitions import DOCUMENTS, OWNERS
from pipelines.jobs import ingest_batch
from pipelines.runs import BATCH_TAG, DagsterRuns
from resources.corpus import CorpusResource
from resources.freshness import report_layers
from resources.observations import observe_settings
from stemma.library.claims import Batch, held_batches
from stemma.library.layers import layers_of
from stemma.library.looks import is_outdated
from stemma.library.reconcile import cancel_queued, close_dead_run, forget_retired
from stemma.library.reconcile import reconcile as look
from stemma.stages.installation import Installation, recipes_of_code, wanted_fingerprints
from stemma.store.forgotten_results import sweep_forgotten
from stemma.store.lake import LakeUnavailable
from stemma.store.postgres import Pool

THIS_LOAD = uuid4().hex
"""This code server: runs are processes of their own and may find newer code on the disk than the sensor was loaded from."""

TICK_INTERVAL_S = 5
"""A tick costs little when nothing is due; how often the library is walked is the setting RECONCILE_INTERVAL_S."""


@dg.sensor(
    job=ingest_batch,
    minimum_interval_seconds=TICK_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    owners=OWNERS,
    description="Walks the library, claims what is stale and launches one run per batch; closes what dead runs held, prunes vanished files.",
)
def reconcile(context: dg.SensorEvaluationContext, corpus: CorpusResource) -> dg.SensorResult | dg.SkipReason:
    """One look at the library and the runs."""
    here = corpus.installation
    with here.pool.connection() as connection:
        if is_outdated(connection, THIS_LOAD):
            return dg.SkipReason("The code has changed since this code server was started: restart Stemma, or reload the code location.")
    settings = here.settings()
    wanted = wanted_fingerprints(settings)
    observe_settings(context.instance, wanted)
    found = look(here.pool, settings, wanted, DagsterRuns(context.instance), remove_sparse=here.remove_sparse, now=datetime.now(UTC))
    context.log.info(found.message)
    if found.stale is not None:
        with here.pool.connection() as connection:
            report_layers(context.instance, connection, layers_of(connection, settings, wanted, found.stale), now=datetime.now(UTC))
    _forget_partitions(context, here.pool, found.retired_partitions)
    _sweep(context, here)
    if not found.batches:
        return dg.SkipReason(found.message)
    keys = sorted({key for batch in found.batches for key in batch.partitions})
    context.instance.add_dynamic_partitions(DOCUMENTS, keys)
    return dg.SensorResult(run_requests=[_request(batch, recipes_of_code(here.base)) for batch in found.batches])


def close_ended_run(context: dg.RunStatusSensorContext, corpus: CorpusResource) -> dg.SkipReason:
    """Close at once what a run that failed or was cancelled still held; the tick of `reconcile` does the same for runs that nobody reported."""
    here = corpus.installation
    runs, run, now = DagsterRuns(context.instance), context.dagster_run, datetime.now(UTC)
    with here.pool.connection() as connection:
        batch_ids = held_batches(connection, run.run_id)
    settings = here.settings()
    n_closed = sum(close_dead_run(here.pool, settings, runs, batch_id, run.run_id, now=now) for batch_id in batch_ids)
    n_closed += cancel_queued(here.pool, runs, now=now)
    if not n_closed:
        return dg.SkipReason(f"run {run.run_id[:8]} {run.status.value.lower()}: it held nothing, or its process still ends")
    return dg.SkipReason(f"run {run.run_id[:8]} {run.status.value.lower()}: {n_closed} documents that it had not finished are closed")


run_failed = dg.run_status_sensor(
    name="run_failed",
    run_status=dg.DagsterRunStatus.FAILURE,
    minimum_interval_seconds=TICK_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Closes what a failed run left unfinished, so that its documents are tried again, and one that ends its runs is found out.",
)(close_ended_run)

run_cancelled = dg.run_status_sensor(
    name="run_cancelled",
    run_status=dg.DagsterRunStatus.CANCELED,
    minimum_interval_seconds=TICK_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Marks the documents of a run that a person cancelled; they wait for a retry or a change. What was live stays live.",
)(close_ended_run)


def _request(batch: Batch, recipes: str) -> dg.RunRequest:
    config = {"partitions": list(batch.partitions), "batch_id": str(batch.batch_id), "asked_by": f"{THIS_LOAD}:{recipes}"}
    return dg.RunRequest(
        run_key=f"{batch.batch_id}:{batch.n_requests}",
        partition_key=batch.partitions[0],
        run_config={"resources": {"batch": {"config": config}}},
        tags={BATCH_TAG: str(batch.batch_id), "stemma/documents": str(len(batch.partitions))},
    )


def _sweep(context: dg.SensorEvaluationContext, here: Installation) -> None:
    """A lake that is away holds up nothing else: the next tick sweeps."""
    try:
        swept = sweep_forgotten(here.pool, here.lake)
    except LakeUnavailable as error:
        context.log.warning(f"what deleted documents left in the lake waits: {error}")
        return
    if swept.n_results:
        context.log.info(f"{swept.n_results} results of deleted documents left the lake, which is {swept.n_bytes} bytes smaller")


def _forget_partitions(context: dg.SensorEvaluationContext, pool: Pool, keys: tuple[str, ...]) -> None:
    """Take partitions of documents that are long gone out of the set; not while a run is waiting or running, since it may name them."""
    if not keys or context.instance.get_runs_count(dg.RunsFilter(statuses=list(NOT_FINISHED_STATUSES))):
        return
    for key in keys:
        context.instance.delete_dynamic_partition(DOCUMENTS, key)
    forget_retired(pool, keys)
