"""The job that holds the whole corpus against what is expected of it."""

import dagster as dg

from assets.audit import AUDIT_CHECKS
from assets.partitions import OWNERS

audit = dg.define_asset_job(
    "audit",
    selection=dg.AssetSelection.checks(*AUDIT_CHECKS),
    description="Reads everything that is published and holds it against the suites of every layer: exact offsets, one sound vector per chunk, as "
    "many keyword entries as chunks, nothing orphaned; and warns where languages, lengths or failures drift. Changes nothing. It takes no "
    "configuration; choose single checks in the launchpad.",
    owners=OWNERS,
    executor_def=dg.in_process_executor,
)
