"""The corpus as assets use it: the installation of this process, and the run that the current step belongs to."""

from functools import cache
from uuid import UUID

import dagster as dg

from resources.batch import DocumentBatch
from resources.observations import observe_settings
from stemma.logs import write_json_lines
from stemma.settings import load_settings
from stemma.stages.batch_lock import BatchLock
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.stages.run import Run, open_run
from stemma.store.embedded import postgres_url


@cache
def installation() -> Installation:
    """The installation that the environment names; one per process, so that a model is loaded once."""
    write_json_lines()
    return Installation(load_settings())


@cache
def _batch_lock() -> BatchLock:
    return BatchLock(postgres_url(installation().base))


class CorpusResource(dg.ConfigurableResource):
    """Hands every step of a run the same frozen settings and the same bound batch."""

    @property
    def installation(self) -> Installation:
        """Stores and models of this process."""
        return installation()

    def run(self, context: dg.AssetExecutionContext, batch: DocumentBatch) -> Run:
        """The run of this step. The first call binds the batch, or claims the partitions that were chosen in the UI."""
        here = self.installation
        settings = here.settings()
        run = open_run(
            here.pool,
            here.lake,
            context.run_id,
            settings=settings,
            wanted=wanted_fingerprints(settings),
            batch_id=UUID(batch.batch_id) if batch.batch_id else None,
            partitions=() if batch.batch_id else batch.of(context),
        )
        _batch_lock().hold(context.run_id)
        observe_settings(context.instance, run.wanted)
        return run

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """The run is over: whoever looks may know it."""
        if _batch_lock.cache_info().currsize:
            _batch_lock().release()
