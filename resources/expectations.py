"""Verdicts of the expectation suites as Dagster's asset checks: what is expected, what is broken, and a sample of the rows that fail."""

import time
from collections.abc import Collection, Sequence
from typing import Any, cast

import dagster as dg

from evals.expectations.layers import Layer, Published, hold
from evals.expectations.validation import SAMPLE_ROWS, Broken
from stemma.library.claims import run_source_ids
from stemma.orchestrator import partition_url
from stemma.retrieval.published_facts import published
from stemma.stages.installation import Installation
from stemma.stages.run import Run

EXPECTATIONS = "expectations"
"""Name of the check per partition, on every layer."""

MOST_FAILURES = 50
"""Failed partitions per layer and run that are written as events of their own: they are logged one by one, about 30 a second."""


def report_expectations(
    context: dg.AssetExecutionContext, run: Run, installation: Installation, layers: Collection[Layer], *, planned: Collection[str]
) -> None:
    """Hold what the run published against the suites, and log the failures, what failed before, and the planned partitions.

    It comes after publishing: nothing waits for it, and nothing is blocked by it.
    """
    began = time.monotonic()
    with run.pool.connection() as connection:
        live = published(connection, sorted({*run_source_ids(connection, run.run_id), *planned}))
        verdicts = hold(Published(connection, list(live.values())), layers, index_of=installation.index_of)
    context.log.info("%s documents held against the suites of %s layers in %.1f s", len(live), len(verdicts), time.monotonic() - began)
    for layer, verdict in verdicts.items():
        key = dg.AssetKey(layer)
        failed_before = failed_check_partitions(context.instance, key, EXPECTATIONS)
        broken = sorted(verdict.partitions)
        if len(broken) > MOST_FAILURES:
            context.log.warning("%s: %s partitions fail; the first %s have their check", layer, len(broken), MOST_FAILURES)
        for partition in [*broken[:MOST_FAILURES], *sorted((failed_before | set(planned)) & live.keys() - verdict.partitions)]:
            evaluation = dg.AssetCheckEvaluation(
                key,
                EXPECTATIONS,
                passed=partition not in verdict.partitions,
                partition=partition,
                metadata=in_words(verdict.expected, verdict.of(partition)) | _history(run, layer, partition),
                description=summary(verdict.of(partition)),
            )
            context.log_event(cast("Any", evaluation))  # accepted, though its annotation lists other events only


def failed_check_partitions(instance: dg.DagsterInstance, key: dg.AssetKey, check: str) -> set[str]:
    """The partitions whose last evaluation of the check failed."""
    known = instance.event_log_storage.get_asset_check_partition_info([dg.AssetCheckKey(key, check)])
    return {info.partition_key for info in known if info.partition_key and info.latest_execution_status.name == "FAILED"}


def summary(broken: Sequence[Broken]) -> str:
    """One line for a person."""
    return " ".join(f"Not so: {one.says}" for one in broken) or "Everything is as expected."


def in_words(expected: Sequence[str], broken: Sequence[Broken]) -> dict[str, Any]:
    """The metadata of a check: every expectation, how many rows fail which, and a sample of them."""
    facts: dict[str, Any] = {"expected": dg.MetadataValue.md("\n".join(f"- {says}" for says in expected) or "Nothing.")}
    if broken:
        facts["broken"] = dg.MetadataValue.md("\n".join(f"- {_told(one)}" for one in broken))
        facts["failing_rows"] = sum(one.rows.height for one in broken)
    for number, one in enumerate(broken, start=1):
        if not one.rows.is_empty():
            rows = one.rows.head(SAMPLE_ROWS).iter_rows(named=True)
            records = [dg.TableRecord({name: "" if value is None else value for name, value in row.items()}) for row in rows]
            facts[f"sample_{number}"] = dg.MetadataValue.table(records)
    return facts


def _told(one: Broken) -> str:
    return f"{one.says} ({f'found {one.observed}' if one.rows.is_empty() else f'{one.rows.height} rows fail'})"


def _history(run: Run, layer: str, partition: str) -> dict[str, Any]:
    return {"history": dg.MetadataValue.url(partition_url(run.settings, partition, asset=layer))}
