"""Which documents a run works on: the list a claimed batch carries, or the partitions that the Dagster UI chose."""

from collections.abc import Sequence

import dagster as dg


class DocumentBatch(dg.ConfigurableResource):
    """A batch of any partitions in one run. Both fields are empty in a run that was started in the UI."""

    partitions: list[str] = []  # noqa: RUF012 -- pydantic copies the default
    """Partition keys. The run itself is tagged with the first of them."""
    batch_id: str = ""
    """The claim that this run is to bind."""

    def of(self, context: dg.AssetExecutionContext) -> Sequence[str]:
        """The batch's partitions; without a list, the run's own partition or range, never more."""
        return self.partitions or list(context.partition_keys)
