"""What Dagster shows of a batch run: these fail when an upgrade changes the internals that the recorder relies on."""

import dagster as dg
from dagster._core.definitions.data_version import CachingStaleStatusResolver
from dagster._core.loader import LoadingContextForTest
from dagster._core.storage.dagster_run import DagsterRunStatus
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value

from assets.partitions import DOCUMENTS, document_partitions
from resources.recorder import CHAIN

TEXT = "A heron stands in the reeds of lake number {}."


def first_batch(corpus):
    [batch] = corpus.look().batches
    return batch


def status(pipeline, asset: str, partition: str) -> str:
    from pipelines.definitions import defs

    graph = defs.resolve_asset_graph()
    resolver = CachingStaleStatusResolver(pipeline.instance, graph, LoadingContextForTest(pipeline.instance))
    return resolver.get_status(dg.AssetKey(asset), partition).value


def counts(pipeline, asset: str) -> tuple[set[str], set[str]]:
    """(materialized, failed) partitions as the UI counts them."""
    value = get_and_update_asset_status_cache_value(
        pipeline.instance, dg.AssetKey(asset), document_partitions, dynamic_partitions_loader=pipeline.instance
    )
    materialized = value.deserialize_materialized_partition_subsets(document_partitions)
    failed = value.deserialize_failed_partition_subsets(document_partitions)
    return set(materialized.get_partition_keys()), set(failed.get_partition_keys())


def test_a_batch_of_scattered_partitions_is_one_run_with_an_event_per_partition_and_asset(pipeline, corpus):
    for n in range(5):
        corpus.write(f"lakes/{n}.txt", TEXT.format(n))
    result = pipeline.batch_run(first_batch(corpus))
    assert result.success
    partitions = {f"lakes/{n}.txt" for n in range(5)}
    for asset in CHAIN:
        assert counts(pipeline, asset) == (partitions, set())
    assert len(pipeline.instance.get_run_ids()) == 1
    for asset in CHAIN:
        records = pipeline.instance.fetch_materializations(dg.AssetKey(asset), limit=100).records
        assert len(records) == 5
    assert all(status(pipeline, asset, "lakes/3.txt") == "FRESH" for asset in CHAIN)


def test_a_bad_document_is_shown_red_and_its_mates_are_published(pipeline, corpus):
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    corpus.write("good.txt", TEXT.format(1))
    result = pipeline.batch_run(first_batch(corpus))
    assert not result.success
    run = pipeline.instance.get_runs()[0]
    assert run.status is DagsterRunStatus.FAILURE
    for asset in CHAIN:
        materialized, failed = counts(pipeline, asset)
        assert materialized == {"good.txt"} and failed == {"bad.docx"}
    assert corpus.rows("SELECT source_path FROM documents") == [("good.txt",)]
    [info] = [
        info
        for info in pipeline.instance.event_log_storage.get_asset_check_partition_info(
            [dg.AssetCheckKey(dg.AssetKey("documents"), "parsed")]
        )
        if info.partition_key == "bad.docx"
    ]
    assert info.latest_execution_status.name == "FAILED"


def test_an_edited_file_is_stale_from_its_first_asset_and_fresh_after_the_next_batch(pipeline, corpus):
    corpus.write("a.txt", TEXT.format(1))
    corpus.write("b.txt", TEXT.format(2))
    pipeline.batch_run(first_batch(corpus))
    before = pipeline.version("documents", "b.txt")
    corpus.write("a.txt", TEXT.format(3))
    batch = first_batch(corpus)
    assert batch.partitions == ("a.txt",)
    assert pipeline.batch_run(batch).success
    assert all(status(pipeline, asset, partition) == "FRESH" for asset in CHAIN for partition in ("a.txt", "b.txt"))
    assert pipeline.version("documents", "b.txt") == before


def test_changed_settings_make_exactly_the_affected_assets_stale(pipeline, corpus):
    from resources.observations import observe_settings
    from stemma.stages.installation import wanted_fingerprints
    from stemma.store.app_settings import set_overrides

    corpus.write("a.txt", "A sentence about herons. " * 100)
    pipeline.batch_run(first_batch(corpus))
    with corpus.installation.pool.connection() as connection:
        settings = set_overrides(connection, corpus.settings, {"CHUNK_SIZE": "300", "CHUNK_OVERLAP": "30"})
    observe_settings(pipeline.instance, wanted_fingerprints(settings))
    assert status(pipeline, "documents", "a.txt") == "FRESH"
    assert status(pipeline, "chunks", "a.txt") == "STALE"
    assert pipeline.batch_run(first_batch(corpus)).success
    assert all(status(pipeline, asset, "a.txt") == "FRESH" for asset in CHAIN)


def test_a_partition_started_in_the_ui_takes_the_same_path(pipeline, corpus):
    corpus.write("a.txt", TEXT.format(1))
    pipeline.batch_run(first_batch(corpus))
    corpus.write("a.txt", TEXT.format(2))
    assert pipeline.ui_run("a.txt").success
    assert corpus.value("SELECT text FROM documents") == TEXT.format(2)
    assert pipeline.instance.get_latest_materialization_event(dg.AssetKey("corpus")).run_id == pipeline.instance.get_runs(limit=1)[0].run_id


def test_a_range_started_in_the_ui_writes_one_event_per_partition(pipeline, corpus):
    for n in range(4):
        corpus.write(f"{n}.txt", TEXT.format(n))
    corpus.look()
    pipeline.instance.add_dynamic_partitions(DOCUMENTS, [f"{n}.txt" for n in range(4)])
    corpus.rows("UPDATE attempts SET state = 'cancelled', finished_at = now() RETURNING 1")
    assert pipeline.range_run("1.txt", "3.txt").success
    assert counts(pipeline, "corpus")[0] == {"1.txt", "2.txt", "3.txt"}
    assert corpus.value("SELECT count(*) FROM documents") == 3


def test_a_run_of_some_assets_records_what_it_made_and_publishes_nothing(pipeline, corpus):
    corpus.write("a.txt", TEXT.format(1))
    corpus.look()
    pipeline.instance.add_dynamic_partitions(DOCUMENTS, ["a.txt"])
    corpus.rows("UPDATE attempts SET state = 'cancelled', finished_at = now() RETURNING 1")
    assert pipeline.ui_run("a.txt", assets=["documents", "chunks"]).success
    assert corpus.value("SELECT count(*) FROM documents") == 0
    assert corpus.rows("SELECT state FROM attempts ORDER BY attempt_id DESC LIMIT 1") == [("succeeded",)]
    assert len(corpus.look().batches) == 1


def test_a_second_run_for_the_same_batch_ends_green_without_work(pipeline, corpus):
    corpus.write("a.txt", TEXT.format(1))
    batch = first_batch(corpus)
    assert pipeline.batch_run(batch).success
    publication = corpus.value("SELECT publication_id FROM documents")
    assert pipeline.batch_run(batch).success
    assert corpus.value("SELECT publication_id FROM documents") == publication


def test_a_failed_document_run_again_in_the_ui_is_not_run_once_more_by_the_sensor(pipeline, corpus):
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    pipeline.batch_run(first_batch(corpus))
    assert not pipeline.ui_run("bad.docx").success
    assert corpus.look().batches == ()
