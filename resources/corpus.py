"""The corpus as assets use it: the installation of this process, and the run that the current step belongs to."""

from datetime import UTC, datetime
from functools import cache
from uuid import UUID

import dagster as dg

from resources.batch import DocumentBatch
from resources.observations import observe_settings
from stemma.library.claims import give_back
from stemma.library.looks import note_outdated
from stemma.library.reconcile import retire_partition
from stemma.logs import write_json_lines
from stemma.settings import Settings, load_settings
from stemma.stages.batch_lock import BatchLock
from stemma.stages.installation import Installation, recipes_of_code, wanted_fingerprints
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


def _keep_own_partition(context: dg.AssetExecutionContext, batch: DocumentBatch, here: Installation) -> None:
    """Dagster cannot end a step whose run is tagged with a partition that left the set meanwhile: it is put back until the run is long over."""
    partitions = context.assets_def.partitions_def
    if not batch.partitions or not isinstance(partitions, dg.DynamicPartitionsDefinition) or partitions.name is None:
        return
    own = batch.partitions[0]
    if not context.instance.has_dynamic_partition(partitions.name, own):
        retire_partition(here.pool, own, now=datetime.now(UTC))
        context.instance.add_dynamic_partitions(partitions.name, [own])


def _is_of_other_code(batch: DocumentBatch, here: Installation) -> bool:
    """Whether the sensor that asked was loaded from code with other recipes: its wishes and what this code makes would never agree."""
    _, _, recipes = batch.asked_by.partition(":")
    return recipes not in ("", recipes_of_code(here.base))


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
        partitions = () if batch.batch_id else batch.of(context)
        if batch.batch_id and _is_of_other_code(batch, here):
            self._give_back(context, batch, settings)
        run = open_run(
            here.pool,
            here.lake,
            context.run_id,
            settings=settings,
            wanted=wanted_fingerprints(settings),
            batch_id=UUID(batch.batch_id) if batch.batch_id else None,
            partitions=partitions,
        )
        _batch_lock().hold(context.run_id)
        _keep_own_partition(context, batch, here)
        observe_settings(context.instance, run.wanted)
        return run

    def _give_back(self, context: dg.AssetExecutionContext, batch: DocumentBatch, settings: Settings) -> None:
        load, _, _ = batch.asked_by.partition(":")
        with self.installation.pool.connection() as connection:
            give_back(connection, UUID(batch.batch_id), context.run_id, settings, now=datetime.now(UTC))
            note_outdated(connection, load)
        context.log.warning(
            "The code has changed since the code server that asked for this run was started, and would make something else of these documents. "
            "The batch is given back. Restart Stemma, or reload the code location: nothing is launched before that."
        )

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """The run is over: whoever looks may know it."""
        if _batch_lock.cache_info().currsize:
            _batch_lock().release()
