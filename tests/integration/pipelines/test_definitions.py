"""The definitions as a whole: a lost asset, dependency or check is a visible difference."""

import dagster as dg

from assets.partitions import OWNERS
from pipelines.definitions import defs
from stemma.chunking.frame import CHUNK_SCHEMA, CONTEXT_SCHEMA


def plain(text) -> bool:
    """A sentence for a person: not a name repeated."""
    return bool(text) and len(text.split()) >= 4


def test_the_asset_graph_is_the_one_of_the_design():
    graph = defs.resolve_asset_graph()
    found = {node.key.to_user_string(): sorted(key.to_user_string() for key in node.parent_keys) for node in graph.asset_nodes}
    assert found == {
        "source_files": [],
        "parsing_settings": [],
        "chunking_settings": [],
        "contextualizing_settings": [],
        "embedding_settings": [],
        "bm25_settings": [],
        "documents": ["parsing_settings", "source_files"],
        "chunks": ["chunking_settings", "documents"],
        "contextualized_chunks": ["chunks", "contextualizing_settings", "documents"],
        "embeddings": ["contextualized_chunks", "embedding_settings"],
        "bm25_index": ["bm25_settings", "contextualized_chunks"],
        "corpus": ["bm25_index", "documents", "embeddings"],
        "backup_bundles": ["corpus"],
    }


LAYERS = ("documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus")


def test_every_layer_has_its_checks():
    checks = {key.to_user_string() for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {
        "documents:parsed",
        "chunks:chunked",
        "contextualized_chunks:contextualized",
        "embeddings:embedded",
        "bm25_index:indexed",
        "corpus:published",
        *(f"{layer}:expectations" for layer in LAYERS),
        *(f"{layer}:whole_layer" for layer in LAYERS),
        *(f"{layer}:up_to_date" for layer in LAYERS),
        "documents:drift",
        "chunks:drift",
        "corpus:no_orphans",
        "corpus:promises",
    }


def test_every_job_sensor_and_schedule_is_known_and_described():
    repository = defs.get_repository_def()
    jobs = [job for job in repository.get_all_jobs() if not job.name.startswith("__")]
    assert {job.name for job in jobs} == {
        "ingest_batch",
        "ingest_documents",
        "check_every_file",
        "prune",
        "prune_event_log",
        "reembed",
        "record_made_outside_runs",
        "audit",
        "back_up",
    }
    assert {sensor.name for sensor in repository.sensor_defs} == {"reconcile", "run_failed", "run_cancelled", "indexes", "garbage"}
    assert {schedule.name for schedule in repository.schedule_defs} == {
        "nightly_backup", "nightly_full_check", "nightly_prune", "weekly_audit", "nightly_event_log_retention"
    }  # fmt: skip
    for thing in (*jobs, *repository.sensor_defs, *repository.schedule_defs):
        assert plain(thing.description), thing.name
        # Dagster takes no owners for sensors of a run's status.
        assert isinstance(thing, dg.RunStatusSensorDefinition) or thing.owners == OWNERS, thing.name


def test_schedules_are_off_until_someone_turns_them_on_and_run_in_the_time_zone_of_the_setting():
    schedules = defs.get_repository_def().schedule_defs
    assert {schedule.default_status for schedule in schedules} == {dg.DefaultScheduleStatus.STOPPED}
    assert {schedule.execution_timezone for schedule in schedules} == {"UTC"}


def test_the_checks_of_a_document_are_per_partition_and_those_of_the_whole_corpus_are_not():
    graph = defs.resolve_asset_graph()
    whole = {key.to_user_string() for key in graph.asset_check_keys if graph.get_check_spec(key).partitions_def is None}
    assert whole == {
        *(f"{layer}:whole_layer" for layer in LAYERS), *(f"{layer}:up_to_date" for layer in LAYERS),
        "documents:drift", "chunks:drift", "corpus:no_orphans", "corpus:promises",
    }  # fmt: skip


def test_a_batch_makes_every_layer_with_its_checks_and_looks_at_nothing_else():
    layer = defs.resolve_job_def("ingest_batch").asset_layer
    assert {key.to_user_string() for key in layer.executable_asset_keys} == set(LAYERS)
    assert "audit_corpus" not in {node.name for node in defs.resolve_job_def("ingest_batch").nodes}


def test_every_asset_says_what_it_is_and_whose():
    for node in defs.resolve_asset_graph().asset_nodes:
        assert plain(node.description), node.key
        assert node.group_name == "corpus", node.key
        if node.is_materializable:
            assert node.owners and node.kinds and node.tags.get("layer") == node.key.to_user_string(), node.key


def test_no_asset_launches_itself_beside_the_sensor():
    """docs/decisions/007-no-automation-conditions.md"""
    assert [node.key for node in defs.resolve_asset_graph().asset_nodes if node.automation_condition is not None] == []


def test_every_layer_shows_its_columns_and_what_they_are_made_from():
    graph = defs.resolve_asset_graph()
    columns = {}
    for layer in LAYERS:
        schema = graph.get(dg.AssetKey(layer)).metadata["dagster/column_schema"]
        columns[layer] = {column.name for column in schema.columns}
        assert all(plain(column.description) or len(column.description) > 8 for column in schema.columns), layer
    for layer in LAYERS[1:]:
        lineage = graph.get(dg.AssetKey(layer)).metadata["dagster/column_lineage"]
        assert set(lineage.deps_by_column) <= columns[layer]
        for deps in lineage.deps_by_column.values():
            for dep in deps:
                assert dep.column_name in columns[dep.asset_key.to_user_string()], (layer, dep)


def test_the_columns_of_chunks_are_those_of_their_frames():
    graph = defs.resolve_asset_graph()
    for layer, schema in (("chunks", CHUNK_SCHEMA), ("contextualized_chunks", CONTEXT_SCHEMA)):
        assert {column.name for column in graph.get(dg.AssetKey(layer)).metadata["dagster/column_schema"].columns} == set(schema)


def test_every_check_is_described():
    graph = defs.resolve_asset_graph()
    for key in graph.asset_check_keys:
        assert plain(graph.get_check_spec(key).description), key


def test_no_check_blocks_the_batch():
    graph = defs.resolve_asset_graph()
    assert not any(graph.get_check_spec(key).blocking for key in graph.asset_check_keys)
