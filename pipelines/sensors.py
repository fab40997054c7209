"""Sensors: what makes new, changed and vanished files flow through without anyone clicking."""

from datetime import UTC, datetime

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from assets.partitions import DOCUMENTS
from pipelines.jobs import ingest_batch
from pipelines.runs import BATCH_TAG, DagsterRuns
from resources.corpus import CorpusResource
from resources.observations import observe_settings
from stemma.library.claims import Batch
from stemma.library.reconcile import forget_retired
from stemma.library.reconcile import reconcile as look
from stemma.stages.installation import wanted_fingerprints
from stemma.store.postgres import Pool

TICK_INTERVAL_S = 5
"""A tick costs little when nothing is due; how often the library is walked is the setting RECONCILE_INTERVAL_S."""


@dg.sensor(
    job=ingest_batch,
    minimum_interval_seconds=TICK_INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Walks the library, claims what is stale and launches one run per batch; closes what dead runs held, prunes vanished files.",
)
def reconcile(context: dg.SensorEvaluationContext, corpus: CorpusResource) -> dg.SensorResult | dg.SkipReason:
    """One look at the library and the runs."""
    here = corpus.installation
    settings = here.settings()
    wanted = wanted_fingerprints(settings)
    observe_settings(context.instance, wanted)
    found = look(here.pool, settings, wanted, DagsterRuns(context.instance), remove_sparse=here.remove_sparse, now=datetime.now(UTC))
    context.log.info(found.message)
    _forget_partitions(context, here.pool, found.retired_partitions)
    if not found.batches:
        return dg.SkipReason(found.message)
    keys = sorted({key for batch in found.batches for key in batch.partitions})
    context.instance.add_dynamic_partitions(DOCUMENTS, keys)
    return dg.SensorResult(run_requests=[_request(batch) for batch in found.batches])


def _request(batch: Batch) -> dg.RunRequest:
    config = {"partitions": list(batch.partitions), "batch_id": str(batch.batch_id)}
    return dg.RunRequest(
        run_key=f"{batch.batch_id}:{batch.n_requests}",
        partition_key=batch.partitions[0],
        run_config={"resources": {"batch": {"config": config}}},
        tags={BATCH_TAG: str(batch.batch_id), "stemma/documents": str(len(batch.partitions))},
    )


def _forget_partitions(context: dg.SensorEvaluationContext, pool: Pool, keys: tuple[str, ...]) -> None:
    """Take partitions of documents that are long gone out of the set; not while a run is waiting or running, since it may name them."""
    if not keys or context.instance.get_runs_count(dg.RunsFilter(statuses=list(NOT_FINISHED_STATUSES))):
        return
    for key in keys:
        context.instance.delete_dynamic_partition(DOCUMENTS, key)
    forget_retired(pool, keys)
