"""Which documents a run works on: the list a claimed batch carries, or the partitions that the Dagster UI chose."""

from collections.abc import Sequence

import dagster as dg

MOST_BY_HAND = 1_000
"""Partitions of a run that carries no batch; the largest BATCH_SIZE."""


class DocumentBatch(dg.ConfigurableResource):
    """A batch of any partitions in one run. All fields are empty in a run that was started in the UI."""

    partitions: list[str] = []  # noqa: RUF012 -- pydantic copies the default
    """Partition keys. The run itself is tagged with the first of them."""
    batch_id: str = ""
    """The claim that this run is to bind."""
    asked_by: str = ""
    """The code that asked for this run, as `load:recipes`: a run whose own recipes differ gives the batch back."""

    def of(self, context: dg.AssetExecutionContext) -> Sequence[str]:
        """The batch's partitions; without a list, the run's own partition or range, never more.

        Raises dagster.Failure for a range of more than MOST_BY_HAND: nothing of it is begun.
        """
        partitions = self.partitions or list(context.partition_keys)
        if not self.partitions and len(partitions) > MOST_BY_HAND:
            raise dg.Failure(
                f"This run names {len(partitions):,} documents, and one run takes at most {MOST_BY_HAND:,}. Nothing was begun. Start a backfill "
                "from the asset's page, which is cut into runs, or the job `ingest_documents`, whose documents the sensor cuts into batches.",
                allow_retries=False,
            )
        return partitions
