"""The staleness query and Dagster's own staleness say the same, for every setting and every asset."""

from dataclasses import asdict
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import get_args

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest

from resources.observations import observe_settings
from resources.recorder import CHAIN
from stemma import settings as settings_module
from stemma.library.layers import layers
from stemma.settings import CORPUS_STAGES, SETTINGS, Settings, with_overrides
from stemma.stages import installation

AFFECTED = {
    "parsing": set(CHAIN),
    "chunking": set(CHAIN) - {"documents"},
    "contextualizing": {"contextualized_chunks", "embeddings", "bm25_index", "corpus"},
    "embedding": {"embeddings", "corpus"},
    "bm25": {"bm25_index", "corpus"},
    "query": set(),
    "operation": set(),
}
"""Stage of a setting -> the assets that a change of it makes stale."""

ANOTHER_MODEL = "another-model"
GIVEN = {
    "SEMANTIC_WEIGHT": {"SEMANTIC_WEIGHT": "0.7", "BM25_WEIGHT": "0.3"},
    "BM25_WEIGHT": {"SEMANTIC_WEIGHT": "0.2", "BM25_WEIGHT": "0.8"},
    "BM25_BACKEND": None,  # the other one needs a server that is named in the environment
    "PRUNE_MAX_SHARE": {"PRUNE_MAX_SHARE": "0.4"},
}
"""Overrides of settings that are tied to others, or end at 1."""


def another_value(name: str) -> dict[str, str] | None:
    """Overrides that change this setting; None when it can have one value only."""
    if name in GIVEN:
        return GIVEN[name]
    if name == "EMBEDDING_MODEL":
        return {name: ANOTHER_MODEL}
    field = Settings.model_fields[name.lower()]
    if isinstance(field.default, bool):
        return {name: str(not field.default).lower()}
    if choices := [choice for choice in get_args(field.annotation) if isinstance(choice, str)]:
        others = [choice for choice in choices if choice not in (field.default, "semantic")]
        return {name: others[0]} if others else None
    return {name: str(field.default + 1) if isinstance(field.default, int | float) else f"another-{field.default}"}


def first_stale_in_dagster(pipeline, partition: str) -> str | None:
    """The first asset of the chain that Dagster calls stale or missing for the partition."""
    from pipelines.definitions import defs

    resolver = CachingStaleStatusResolver(pipeline.instance, defs.resolve_asset_graph(), LoadingContextForTest(pipeline.instance))
    return next((asset for asset in CHAIN if resolver.get_status(dg.AssetKey(asset), partition).value != "FRESH"), None)


def found_by_the_query(corpus, wanted) -> tuple[str | None, set[str]]:
    """The first stale asset of the chain, and every asset that has to be made again."""
    with corpus.installation.pool.connection() as connection:
        found = layers(connection, corpus.settings, wanted, now=datetime.now(UTC))
    return next((layer.asset for layer in found if layer.stale_from_here), None), {layer.asset for layer in found if layer.stale}


@pytest.fixture
def ingested(pipeline, corpus, monkeypatch):
    """A published document, and a second embedding model that can be named but not loaded."""
    real = installation.embedding_spec
    spec = SimpleNamespace(spec_hash="0" * 64)
    monkeypatch.setattr(installation, "embedding_spec", lambda model: spec if model == ANOTHER_MODEL else real(model))
    corpus.write("birds/heron.txt", "A heron stands in the reeds. " * 50)
    [batch] = corpus.look().batches
    assert pipeline.batch_run(batch).success
    return pipeline


def test_every_setting_makes_stale_what_its_stage_says_in_the_query_and_in_dagster(ingested, corpus):
    fixed = []
    unchanged = installation.wanted_fingerprints(corpus.settings)
    observe_settings(ingested.instance, unchanged)
    assert first_stale_in_dagster(ingested, "birds/heron.txt") is None
    for name, info in SETTINGS.items():
        if info.stage == "installation":
            continue
        if (overrides := another_value(name)) is None:
            fixed.append(name)
            continue
        wanted = installation.wanted_fingerprints(with_overrides(corpus.settings, overrides))
        first, affected = found_by_the_query(corpus, wanted)
        assert affected == AFFECTED[info.stage], name
        if wanted == unchanged:  # nothing is told to Dagster then, and it was asked above
            continue
        observe_settings(ingested.instance, wanted)
        assert first == first_stale_in_dagster(ingested, "birds/heron.txt"), name
    assert fixed == ["CHUNK_TOKENIZER", "BM25_BACKEND"]
    assert tuple(asdict(wanted)) == CORPUS_STAGES


def test_another_code_version_makes_stale_what_another_setting_of_its_stage_does(ingested, corpus, monkeypatch):
    for stage in CORPUS_STAGES:
        with monkeypatch.context() as released:
            released.setitem(settings_module.CODE_VERSIONS, stage, "another")
            wanted = installation.wanted_fingerprints(corpus.settings)
        observe_settings(ingested.instance, wanted)
        first, affected = found_by_the_query(corpus, wanted)
        assert affected == AFFECTED[stage]
        assert first == first_stale_in_dagster(ingested, "birds/heron.txt")


def test_an_edited_file_is_stale_alone_and_from_its_first_asset_on(ingested, corpus):
    from resources.observations import SOURCE_FILES

    corpus.write("birds/kite.txt", "A kite hovers.")
    [batch] = corpus.look().batches
    assert ingested.batch_run(batch).success
    corpus.write("birds/kite.txt", "A kite dives.")
    corpus.look()
    corpus.rows("UPDATE attempts SET state = 'cancelled', finished_at = now() WHERE finished_at IS NULL RETURNING 1")
    ingested.instance.report_runless_asset_event(  # as a run does once it has read the bytes
        dg.AssetObservation(SOURCE_FILES, partition="birds/kite.txt", tags={"dagster/data_version": "f" * 64})
    )
    first, affected = found_by_the_query(corpus, installation.wanted_fingerprints(corpus.settings))
    assert (first, affected) == ("documents", set(CHAIN))
    assert first_stale_in_dagster(ingested, "birds/kite.txt") == "documents"
    assert first_stale_in_dagster(ingested, "birds/heron.txt") is None


def test_what_is_stale_is_told_to_dagster_once_and_again_when_it_changed(ingested, corpus):
    from datetime import timedelta

    from resources.freshness import report_layers

    def told(wanted, at):
        with corpus.installation.pool.connection() as connection:
            return report_layers(ingested.instance, connection, layers(connection, smaller, wanted, now=at), now=at)

    now = datetime.now(UTC)
    smaller = with_overrides(corpus.settings, {"CHUNK_SIZE": "300", "CHUNK_OVERLAP": "30"})
    fresh, changed = installation.wanted_fingerprints(corpus.settings), installation.wanted_fingerprints(smaller)
    assert told(fresh, now) == list(CHAIN)
    assert told(fresh, now + timedelta(hours=1)) == []
    assert told(changed, now + timedelta(hours=1)) == list(CHAIN[1:])
    key = dg.AssetKey("chunks")
    [execution] = ingested.instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(key, "up_to_date"), limit=1)
    evaluation = execution.event.dagster_event.event_specific_data
    assert not evaluation.passed
    assert evaluation.description == "1 of 1 stale: CHUNK_SIZE was 800, is 300, CHUNK_OVERLAP was 100, is 30"
    [observed] = ingested.instance.fetch_observations(key, limit=1).records
    assert observed.event_log_entry.asset_observation.metadata["stale"].value == 1


def test_dagster_cuts_a_scattered_selection_into_ranges_and_stemma_into_batches(pipeline, corpus):
    """Why `ingest_documents` and not a backfill is what to use for scattered documents; fails when Dagster learns to do better."""
    from dagster._core.definitions.automation_tick_evaluation_context import build_run_requests_with_backfill_policies
    from dagster._core.definitions.events import AssetKeyPartitionKey
    from dagster._core.definitions.partitions.context import partition_loading_context

    from assets.partitions import DOCUMENTS
    from pipelines.definitions import defs

    for n in range(12):
        corpus.write(f"{n:02}.txt", f"Lake number {n}.")
    corpus.ingest()
    for n in range(0, 12, 3):
        corpus.write(f"{n:02}.txt", f"Reed number {n}.")
    pipeline.instance.add_dynamic_partitions(DOCUMENTS, [f"{n:02}.txt" for n in range(12)])
    graph = defs.resolve_asset_graph()
    scattered = {AssetKeyPartitionKey(dg.AssetKey(asset), f"{n:02}.txt") for asset in CHAIN for n in range(0, 12, 3)}
    with partition_loading_context(dynamic_partitions_store=pipeline.instance):
        requests = build_run_requests_with_backfill_policies(scattered, graph, pipeline.instance)
    assert len(requests) == 4
    assert [batch.partitions for batch in corpus.look().batches] == [("00.txt", "03.txt", "06.txt", "09.txt")]
