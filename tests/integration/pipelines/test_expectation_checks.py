"""What a run and the audit say of the expectations in Dagster: failures, changes and the run's own partition, nothing more."""

import dagster as dg
import pytest

import resources.expectations
from evals.expectations.layers import hold
from resources.expectations import EXPECTATIONS
from resources.recorder import CHAIN

TEXT = "A heron stands in the reeds of lake number {}."


def first_batch(corpus):
    [batch] = corpus.look().batches
    return batch


def evaluations(pipeline, asset, check=EXPECTATIONS):
    """Partition -> (passed, metadata) of the last evaluation of each."""
    records = pipeline.instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(dg.AssetKey(asset), check), limit=1_000
    )
    found = {}
    for record in records:
        if record.event and record.event.dagster_event.event_type_value == "ASSET_CHECK_EVALUATION":
            evaluation = record.event.dagster_event.event_specific_data
            found.setdefault(evaluation.partition, evaluation)
    return found


def test_a_run_whose_documents_are_as_expected_logs_its_own_partition_alone(pipeline, corpus):
    for n in range(4):
        corpus.write(f"{n}.txt", TEXT.format(n))
    batch = first_batch(corpus)
    assert pipeline.batch_run(batch).success
    for asset in CHAIN:
        found = evaluations(pipeline, asset)
        assert {partition: one.passed for partition, one in found.items()} == {batch.partitions[0]: True}
        assert "expected" in found[batch.partitions[0]].metadata


@pytest.fixture
def broken(monkeypatch):
    """A fault beyond what is tested before the write: the stored text of one document is changed when the suites look."""

    def hold_what_was_changed(live, layers, *, index_of):
        live.connection.execute("UPDATE documents SET text = 'x' || text, n_chars = n_chars + 1 WHERE source_path = '2.txt'")
        return hold(live, layers, index_of=index_of)

    monkeypatch.setattr(resources.expectations, "hold", hold_what_was_changed)
    return monkeypatch


def test_a_document_that_breaks_an_expectation_is_shown_with_its_rows_and_stays_published(pipeline, corpus, broken):
    for n in range(4):
        corpus.write(f"{n}.txt", TEXT.format(n))
    batch = first_batch(corpus)
    assert pipeline.batch_run(batch).success
    assert corpus.value("SELECT count(*) FROM documents") == 4
    found = evaluations(pipeline, "chunks")
    assert {partition: one.passed for partition, one in found.items()} == {batch.partitions[0]: True, "2.txt": False}
    one = found["2.txt"]
    assert one.description == "Not so: The text between a chunk's offsets is its content."
    [record] = one.metadata["sample_1"].records
    assert (record.data["partition_key"], record.data["is_exact"]) == ("2.txt", False)
    broken.setattr(resources.expectations, "hold", hold)
    corpus.write("2.txt", TEXT.format("two"))
    assert pipeline.batch_run(first_batch(corpus)).success
    assert evaluations(pipeline, "chunks")["2.txt"].passed


def test_failures_beyond_the_bound_are_counted_and_not_logged_one_by_one(pipeline, corpus, broken):
    broken.setattr(resources.expectations, "MOST_FAILURES", 1)

    def all_broken(live, layers, *, index_of):
        live.connection.execute("UPDATE documents SET n_chars = n_chars + 1")
        return hold(live, layers, index_of=index_of)

    broken.setattr(resources.expectations, "hold", all_broken)
    for n in range(4):
        corpus.write(f"{n}.txt", TEXT.format(n))
    assert pipeline.batch_run(first_batch(corpus)).success
    assert sum(not one.passed for one in evaluations(pipeline, "documents").values()) == 1


def test_the_checks_of_a_red_run_are_still_reported(pipeline, corpus):
    corpus.write("a.txt", TEXT.format(1))
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    batch = first_batch(corpus)
    assert batch.partitions == ("a.txt", "bad.docx")  # Dagster plans the first, so that its checks are written
    assert not pipeline.batch_run(batch).success
    assert corpus.rows("SELECT partition_key, status FROM sources ORDER BY 1") == [("a.txt", "ready"), ("bad.docx", "failed")]
    assert evaluations(pipeline, "corpus")["a.txt"].passed


def test_the_audit_holds_every_layer_and_warns_of_drift(pipeline, corpus):
    from pipelines.definitions import defs

    for n in range(3):
        corpus.write(f"{n}.txt", f"scrap {n}")
    assert pipeline.batch_run(first_batch(corpus)).success
    corpus.rows("UPDATE documents SET n_chars = n_chars + 1 WHERE source_path = '1.txt' RETURNING 1")
    corpus.rows("UPDATE original_index_counter SET next = 0 RETURNING 1")
    result = defs.resolve_job_def("audit").execute_in_process(instance=pipeline.instance)
    assert result.success
    found = {(one.asset_key.to_user_string(), one.check_name): one for one in result.get_asset_check_evaluations()}
    assert {key for key, one in found.items() if not one.passed} == {
        ("documents", "whole_layer"),
        ("chunks", "drift"),
        ("corpus", "promises"),
    }
    assert found["chunks", "drift"].severity is dg.AssetCheckSeverity.WARN
    assert found["documents", "whole_layer"].metadata["partitions"].value == 1
    assert found["corpus", "promises"].description == "1 original_index_reused"
    assert len(found) == 10


def test_every_materialization_links_to_the_page_and_the_last_carries_the_columns_lineage(pipeline, corpus):
    for n in range(3):
        corpus.write(f"{n}.txt", TEXT.format(n))
    pipeline.batch_run(first_batch(corpus))
    records = pipeline.instance.fetch_materializations(dg.AssetKey("chunks"), limit=10).records
    metadata = [record.event_log_entry.asset_materialization.metadata for record in records]
    source_ids = {str(source_id) for (source_id,) in corpus.rows("SELECT source_id FROM sources")}
    assert {one["page"].url.rpartition("/")[2] for one in metadata} == source_ids
    assert all("partition=" in one["history"].url and one["chunks"].value == 1 for one in metadata)
    assert ["dagster/column_lineage" in one for one in metadata] == [True, False, False]


def test_materializing_a_document_in_the_ui_does_not_audit_the_corpus(pipeline, corpus):
    from pipelines.definitions import defs

    corpus.write("a.txt", TEXT.format(1))
    assert pipeline.batch_run(first_batch(corpus)).success
    job = defs.resolve_implicit_global_asset_job_def()  # the one that the UI's button launches, with every check of the asset
    result = job.execute_in_process(instance=pipeline.instance, partition_key="a.txt", asset_selection=[dg.AssetKey("documents")])
    assert result.success
    assert {one.check_name for one in result.get_asset_check_evaluations()} == {"parsed", "expectations", "up_to_date"}
