"""The definitions as a whole: a lost asset, dependency or check is a visible difference."""

import dagster as dg

from pipelines.definitions import defs


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
    }


def test_every_layer_has_its_check_per_partition():
    checks = {key.to_user_string() for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {
        "documents:parsed",
        "chunks:chunked",
        "contextualized_chunks:contextualized",
        "embeddings:embedded",
        "bm25_index:indexed",
        "corpus:published",
    }


def test_every_job_sensor_and_schedule_is_known_and_described():
    repository = defs.get_repository_def()
    jobs = [job for job in repository.get_all_jobs() if not job.name.startswith("__")]
    assert {job.name for job in jobs} == {
        "ingest_batch",
        "ingest_documents",
        "check_every_file",
        "prune",
        "reembed",
        "record_made_outside_runs",
    }
    assert {sensor.name for sensor in repository.sensor_defs} == {"reconcile", "run_failed", "run_cancelled", "indexes"}
    assert {schedule.name for schedule in repository.schedule_defs} == {"nightly_full_check", "nightly_prune"}
    assert all(thing.description for thing in (*jobs, *repository.sensor_defs, *repository.schedule_defs))


def test_schedules_are_off_until_someone_turns_them_on_and_run_in_the_time_zone_of_the_setting():
    schedules = defs.get_repository_def().schedule_defs
    assert {schedule.default_status for schedule in schedules} == {dg.DefaultScheduleStatus.STOPPED}
    assert {schedule.execution_timezone for schedule in schedules} == {"UTC"}


def test_no_check_blocks_the_batch():
    graph = defs.resolve_asset_graph()
    assert not any(graph.get_check_spec(key).blocking for key in graph.asset_check_keys)
