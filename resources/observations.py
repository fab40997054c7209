"""Observations of what Dagster does not make itself: the files and the settings, each with its data version."""

from collections.abc import Mapping
from dataclasses import asdict

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_TAG, extract_data_version_from_entry
from dagster._core.events import DagsterEvent, DagsterEventBatchMetadata, DagsterEventType, generate_event_batch_id

from stemma.settings import Fingerprints

SOURCE_FILES = dg.AssetKey("source_files")


def settings_key(stage: str) -> dg.AssetKey:
    """The asset of a stage's settings."""
    return dg.AssetKey(f"{stage}_settings")


def observe_settings(instance: dg.DagsterInstance, wanted: Fingerprints) -> None:
    """Report the fingerprint of every stage's settings that differs from the one reported last."""
    for stage, fingerprint in asdict(wanted).items():
        key = settings_key(stage)
        latest = instance.get_latest_data_version_record(key, is_source=True)
        known = extract_data_version_from_entry(latest.event_log_entry) if latest else None
        if known is None or known.value != fingerprint:
            instance.report_runless_asset_event(dg.AssetObservation(key, tags={DATA_VERSION_TAG: fingerprint}))


def unreported_hashes(instance: dg.DagsterInstance, hashes: Mapping[str, str]) -> dict[str, str]:
    """Those of partition key -> sha256 that differ from what was reported last."""
    known = instance.event_log_storage.get_latest_tags_by_partition(
        SOURCE_FILES, DagsterEventType.ASSET_OBSERVATION, [DATA_VERSION_TAG], list(hashes)
    )
    return {key: sha256 for key, sha256 in hashes.items() if known.get(key, {}).get(DATA_VERSION_TAG) != sha256}


def observe_sources(context: dg.AssetExecutionContext | dg.OpExecutionContext, hashes: Mapping[str, str]) -> None:
    """Report partition key -> sha256 of the bytes, as one batch of events, for those that differ from what was reported last."""
    changed = unreported_hashes(context.instance, hashes)
    step = (context.op_execution_context if isinstance(context, dg.AssetExecutionContext) else context)._step_execution_context
    batch_id = generate_event_batch_id()
    for position, (key, sha256) in enumerate(changed.items(), start=1):
        observation = dg.AssetObservation(SOURCE_FILES, partition=key, tags={DATA_VERSION_TAG: sha256}, metadata={"sha256": sha256})
        DagsterEvent.asset_observation(step, observation, DagsterEventBatchMetadata(batch_id, position == len(changed)))
