"""Backup bundles: the published corpus as files that survive the loss of every store; a partition per bundle."""

import dagster as dg

from assets.partitions import OWNERS

BUNDLES = "backup_bundles"

bundle_partitions = dg.DynamicPartitionsDefinition(name=BUNDLES)

backup_bundles = dg.AssetSpec(
    "backup_bundles",
    deps=["corpus"],
    partitions_def=bundle_partitions,
    group_name="corpus",
    description="Everything that is published at one instant, in one file each: the job `back_up` makes them, `stemma restore` brings one back.",
    kinds={"file"},
    owners=OWNERS,
    tags={"layer": "backup_bundles"},
)
