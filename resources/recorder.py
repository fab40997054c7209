"""The recorder: per-partition events of a run that works on any set of partitions. Everything that touches Dagster's internals is here
and in observations.py; tests/integration/pipelines fail when an upgrade changes what they rely on.

Dagster runs carry one partition or one contiguous range. A batch run is tagged with its first partition, carries the others in
`DocumentBatch`, and writes its own events; the engine's own event is switched off by a tag on the run in memory.
"""

import time
from collections.abc import Mapping
from typing import Any, cast

import dagster as dg
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_IS_USER_PROVIDED_TAG,
    DATA_VERSION_TAG,
    extract_data_version_from_entry,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)
from dagster._core.events import (
    AssetMaterializationPlannedData,
    DagsterEvent,
    DagsterEventBatchMetadata,
    DagsterEventType,
    generate_event_batch_id,
)
from dagster._core.storage.tags import EXTERNALLY_MANAGED_ASSETS_TAG

from evals.expectations.layers import LAYERS, Layer
from resources.expectations import failed_check_partitions, report_expectations
from stemma.addresses import document_page_url
from stemma.errors import DocumentError
from stemma.library.claims import failed_partitions, failures_of_run, finish_unpublished, run_source_ids
from stemma.orchestrator import partition_url
from stemma.stages.installation import Installation
from stemma.stages.run import SHOWN, Fact, Run, StageOutcome, now

UNKNOWN_VERSION = "INITIAL"
MARKDOWN = ("preview",)
COLUMN_LINEAGE = "dagster/column_lineage"
CHAIN: tuple[str, ...] = tuple(SHOWN)

Pointers = Mapping[str | None, tuple[int, str]]
"""Partition (None: unpartitioned) -> (id of the latest event, data version)."""


class Recorder:
    """Writes the events of one step. Make it before the inputs are read: it notes their versions."""

    def __init__(self, context: dg.AssetExecutionContext, run: Run, installation: Installation, *, check: str) -> None:
        self._context, self._run, self._installation, self._check = context, run, installation, check
        self._began = time.monotonic()
        _pool_connections(context.instance)
        cast("dict[str, str]", context.run.tags)[EXTERNALLY_MANAGED_ASSETS_TAG] = "true"
        graph = context.op_execution_context.job_def.asset_layer.asset_graph
        self._asset = graph.get(context.asset_key)
        with run.pool.connection() as connection:
            self._source_ids = run_source_ids(connection, run.run_id)
            partitions = list(self._source_ids)
            self._failed_before = failed_partitions(connection, run.run_id)
        self._inputs = {key: _latest(context.instance, key, partitions, graph.get(key)) for key in self._asset.parent_keys}
        self._planned = _planned(context)

    def record(self, outcome: StageOutcome) -> None:
        """Report what the stage made and what it refused. In the last step of a run with failures, fail the run: only then does the UI show them."""
        self._materialized(outcome, elapsed_s=time.monotonic() - self._began)
        self._log_progress(outcome)
        with self._run.pool.connection() as connection:
            sentences = failures_of_run(connection, self._run.run_id) if outcome.failures else {}
        for partition, error in outcome.failures.items():
            self._check_failed(partition, error, sentences.get(partition))
            self._plan(partition)
        for partition in self._failed_before:
            self._plan(partition)
        self._pass_checks(outcome)
        self._end()

    def _materialized(self, outcome: StageOutcome, *, elapsed_s: float) -> None:
        """One event per document. The columns' lineage, which is the same for all, goes with the last: Dagster shows that of the latest event."""
        lineage = {name: value for name, value in self._asset.metadata.items() if name == COLUMN_LINEAGE}
        batch = {"batch_seconds": round(elapsed_s, 3), "batch_documents": len(outcome.versions)}
        step = self._context.op_execution_context._step_execution_context
        batch_id = generate_event_batch_id()
        for position, (partition, version) in enumerate(outcome.versions.items(), start=1):
            tags = _tags(self._asset, version.data_version, self._inputs, partition)
            materialization = dg.AssetMaterialization(
                self._context.asset_key,
                partition=partition,
                metadata=_metadata(version.metadata)
                | batch
                | self._links(partition)
                | (lineage if position == len(outcome.versions) else {}),
                tags=tags,
            )
            DagsterEvent.asset_materialization(
                step, materialization, DagsterEventBatchMetadata(batch_id, position == len(outcome.versions))
            )

    def _links(self, partition: str) -> dict[str, Any]:
        settings, asset = self._installation.base, self._context.asset_key.to_user_string()
        links = {"history": dg.MetadataValue.url(partition_url(settings, partition, asset=asset))}
        if source_id := self._source_ids.get(partition):
            links["page"] = dg.MetadataValue.url(document_page_url(settings, source_id))
        return links

    def _log_progress(self, outcome: StageOutcome) -> None:
        """Only the run's first partition shows as under way in the UI; what the run is doing for the others stands in its log."""
        done, n_failed = len(outcome.versions), len(outcome.failures)
        self._context.log.info(
            "%s: %s of %s documents done, %s failed, in %.1f s",
            self._context.asset_key.to_user_string(), done, len(self._source_ids), n_failed, time.monotonic() - self._began,
        )  # fmt: skip

    def _check_failed(self, partition: str, error: DocumentError, sentence: str | None) -> None:
        facts = {"code": error.code, "source_path": error.source_path, "message": error.message}
        if sentence is not None:
            facts["failure"] = sentence
        self._evaluate(partition, passed=False, description=error.message, metadata=facts)

    def _pass_checks(self, outcome: StageOutcome) -> None:
        """Checks are logged one by one, so only where a person would miss them: the planned partition, and those that failed last time."""
        failed_last = failed_check_partitions(self._context.instance, self._context.asset_key, self._check)
        for partition in sorted((failed_last | self._planned) & outcome.versions.keys()):
            self._evaluate(partition, passed=True)

    def _evaluate(self, partition: str, *, passed: bool, description: str | None = None, metadata: Mapping[str, str] | None = None) -> None:
        evaluation = dg.AssetCheckEvaluation(
            self._context.asset_key, self._check, passed, partition=partition, description=description, metadata=metadata or {}
        )
        self._context.log_event(cast("Any", evaluation))  # accepted, though its annotation lists other events only

    def _plan(self, partition: str) -> None:
        """Dagster shows a partition as failed when a failed run planned it and did not materialize it."""
        if partition in self._planned:
            return
        step_key = self._context.op_execution_context._step_execution_context.step.key
        planned = AssetMaterializationPlannedData(self._context.asset_key, partition=partition)
        event = DagsterEvent.build_asset_materialization_planned_event(self._context.job_name, step_key, planned)
        self._context.instance.report_dagster_event(event, self._context.run_id)

    def _end(self) -> None:
        selected = {key.to_user_string() for key in self._context.run.asset_selection or ()} or set(CHAIN)
        if self._context.asset_key.to_user_string() != max(selected & set(CHAIN), key=CHAIN.index):
            return
        with self._run.pool.connection() as connection:
            finish_unpublished(connection, self._run.run_id, now=now())
            failed = failed_partitions(connection, self._run.run_id)
        layers: list[Layer] = [layer for layer in LAYERS if layer in selected]
        report_expectations(self._context, self._run, self._installation, layers, planned=self._planned)
        if failed:
            raise dg.Failure(
                f"{len(failed)} documents failed; everything else of the batch is done. Their checks say why.",
                metadata={"failed": len(failed), "first": ", ".join(failed[:10])},
                allow_retries=False,
            )


def record_made_elsewhere(context: dg.OpExecutionContext, graph: Any, key: dg.AssetKey, versions: Mapping[str, str]) -> None:
    """Report partition -> data version of an asset that was made outside its own runs, from what its inputs are now."""
    _pool_connections(context.instance)
    asset, partitions = graph.get(key), list(versions)
    inputs = {parent: _latest(context.instance, parent, partitions, graph.get(parent)) for parent in asset.parent_keys}
    batch_id = generate_event_batch_id()
    for position, (partition, version) in enumerate(versions.items(), start=1):
        materialization = dg.AssetMaterialization(key, partition=partition, tags=_tags(asset, version, inputs, partition))
        DagsterEvent.asset_materialization(
            context._step_execution_context, materialization, DagsterEventBatchMetadata(batch_id, position == len(versions))
        )


def _tags(asset: Any, data_version: str, inputs: Mapping[dg.AssetKey, Pointers], partition: str) -> dict[str, str]:
    """What a materialization says of itself: its version, and which event of each input it was made from."""
    tags = {
        DATA_VERSION_TAG: data_version,
        DATA_VERSION_IS_USER_PROVIDED_TAG: "true",
        CODE_VERSION_TAG: asset.code_version or "",
    }
    for key, latest in inputs.items():
        event_id, input_version = latest.get(partition) or latest.get(None) or (None, UNKNOWN_VERSION)
        tags[get_input_data_version_tag(key)] = input_version
        tags[get_input_event_pointer_tag(key)] = str(event_id) if event_id else "NULL"
    return tags


def _latest(instance: dg.DagsterInstance, key: dg.AssetKey, partitions: list[str], asset: Any) -> Pointers:
    if not asset.is_partitioned:
        record = instance.get_latest_data_version_record(key, is_source=asset.is_external)
        if record is None:
            return {}
        version = extract_data_version_from_entry(record.event_log_entry)
        return {None: (record.storage_id, version.value if version else UNKNOWN_VERSION)}
    kind = DagsterEventType.ASSET_OBSERVATION if asset.is_external else DagsterEventType.ASSET_MATERIALIZATION
    storage = instance.event_log_storage
    event_ids = storage.get_latest_storage_id_by_partition(key, kind, set(partitions))
    tags = storage.get_latest_tags_by_partition(key, kind, [DATA_VERSION_TAG], partitions)
    return {
        partition: (event_id, tags.get(partition, {}).get(DATA_VERSION_TAG, UNKNOWN_VERSION)) for partition, event_id in event_ids.items()
    }


def _planned(context: dg.AssetExecutionContext) -> set[str]:
    """What the engine planned when it made the run, read from the run's tags: `partition_keys` fails once the first key was deleted."""
    tags = context.run.tags
    if partition := tags.get("dagster/partition"):
        return {partition}
    return set(context.partition_keys)


def _pool_connections(instance: dg.DagsterInstance) -> None:
    """Runs open a connection per statement unless told otherwise; a pool makes events several times faster."""
    storage = instance.event_log_storage
    if not getattr(storage, "_stemma_pooled", False):
        storage.optimize_for_webserver(statement_timeout=60_000, pool_recycle=3_600, max_overflow=4)
        storage._stemma_pooled = True  # type: ignore[attr-defined]


def _metadata(facts: Mapping[str, Fact]) -> dict[str, Any]:
    return {name: dg.MetadataValue.md(f"```text\n{value}\n```") if name in MARKDOWN else value for name, value in facts.items()}
