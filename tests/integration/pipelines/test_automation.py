"""What the sensors do, and what happens to a batch between its tick and its run."""

import threading

import dagster as dg
import pytest

from assets.partitions import DOCUMENTS
from pipelines import sensors
from pipelines.definitions import defs
from pipelines.runs import DagsterRuns
from resources import batch as batch_resource
from resources.corpus import CorpusResource
from resources.recorder import CHAIN
from stemma.store.app_settings import set_overrides
from stemma.store.postgres import StoreUnavailable

TEXT = "A heron stands in the reeds of lake number {}."


def tick(pipeline) -> dg.SensorResult | dg.SkipReason:
    pipeline.corpus.request()
    with dg.build_sensor_context(instance=pipeline.instance, resources={"corpus": CorpusResource()}) as context:
        return sensors.reconcile(context)


def run_requests(answer) -> list[list[str]]:
    """The partitions of each run that a tick asked for."""
    requests = answer.run_requests if isinstance(answer, dg.SensorResult) else []
    return [request.run_config["resources"]["batch"]["config"]["partitions"] for request in requests]


def override(corpus, **values: str) -> None:
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, values)


def report_end(pipeline, run: dg.DagsterRun) -> str:
    """What the run-status sensors do with the last event of a run."""
    event = dg.DagsterEvent(dg.DagsterEventType.RUN_FAILURE.value, run.job_name)
    context = dg.build_run_status_sensor_context("run_failed", event, pipeline.instance, run)
    return sensors.close_ended_run(context, CorpusResource()).skip_message


def failing_run(pipeline, corpus, monkeypatch, error: Exception) -> dg.DagsterRun:
    """A run in which a step ends with an error that is no document's failure."""
    import assets.embeddings

    def fail(*_args, **_options):
        raise error

    monkeypatch.setattr(assets.embeddings, "embed_chunks", fail)
    [batch] = corpus.look().batches
    assert not pipeline.batch_run(batch).success
    return pipeline.instance.get_runs(limit=1)[0]


def test_two_sensors_ticking_at_once_ask_for_each_document_once(pipeline, corpus):
    override(corpus, BATCH_SIZE="3")
    for n in range(8):
        corpus.write(f"{n}.txt", TEXT.format(n))
    answers: list[object] = []
    together = threading.Barrier(2)

    def tick_together() -> None:
        together.wait()
        answers.append(tick(pipeline))

    threads = [threading.Thread(target=tick_together) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers.append(tick(pipeline))  # one of the two may have met the other's walk
    asked = {request.run_key: request for answer in answers if isinstance(answer, dg.SensorResult) for request in answer.run_requests}
    partitions = [key for request in asked.values() for key in request.run_config["resources"]["batch"]["config"]["partitions"]]
    assert sorted(partitions) == [f"{n}.txt" for n in range(8)]
    assert corpus.value("SELECT count(*) FROM attempts WHERE finished_at IS NULL") == 8


def test_a_tick_that_dies_after_it_claimed_is_made_up_for_by_a_later_one(pipeline, corpus, monkeypatch):
    corpus.write("a.txt", TEXT.format(1))

    def die(*_args):
        raise ConnectionError("the daemon was killed")

    with monkeypatch.context() as broken:
        broken.setattr(dg.DagsterInstance, "add_dynamic_partitions", die)
        with pytest.raises(ConnectionError):
            tick(pipeline)
    assert run_requests(tick(pipeline)) == []  # it may have got through after all
    override(corpus, LAUNCH_TIMEOUT_S="0.001")
    assert run_requests(tick(pipeline)) == [["a.txt"]]
    assert pipeline.instance.has_dynamic_partition(DOCUMENTS, "a.txt")


def test_a_claim_whose_run_never_comes_ends_as_a_failure_that_is_tried_again(pipeline, corpus):
    corpus.write("a.txt", TEXT.format(1))
    override(corpus, LAUNCH_TIMEOUT_S="0.001")
    assert [run_requests(tick(pipeline)) for _ in range(4)] == [[["a.txt"]], [["a.txt"]], [["a.txt"]], []]
    assert corpus.rows("SELECT status, error_code, retry_at > now() FROM sources") == [("failed", "launch_failed", True)]


def test_a_batch_whose_run_dies_before_it_takes_it_is_requested_again_at_once(pipeline, corpus):
    corpus.write("a.txt", TEXT.format(1))
    answer = tick(pipeline)
    [request] = answer.run_requests
    run = pipeline.instance.create_run_for_job(defs.resolve_job_def("ingest_batch"), tags=dict(request.tags))
    assert run_requests(tick(pipeline)) == []  # it is on its way
    pipeline.instance.report_run_failed(run)
    assert run_requests(tick(pipeline)) == [["a.txt"]]
    assert run_requests(tick(pipeline)) == []  # the second request may get through


ODD = [
    'a, b|c [1] * "q" %.txt',
    "back\\slash:colon?.txt",
    "dots...and....txt",
    "tab\tand\nnewline.txt",
    "Ünï-日本-🙂.txt",
    " space .txt",
    "@at.txt",
    "#&=+;'`~!$^(){}<>.txt",
]


def test_every_odd_character_of_a_name_passes_through_the_partition_key(pipeline, corpus):
    for n, name in enumerate(ODD):
        corpus.write(name, TEXT.format(n))
    [batch] = corpus.look().batches
    assert pipeline.batch_run(batch).success
    assert {path for (path,) in corpus.rows("SELECT source_path FROM documents")} == set(ODD)
    assert set(pipeline.instance.get_dynamic_partitions(DOCUMENTS)) == set(batch.partitions)
    assert all(pipeline.version("corpus", key) for key in batch.partitions)
    corpus.write(ODD[3], "Another text.")
    assert pipeline.ui_run(batch.partitions[-1]).success


def test_a_file_that_vanishes_between_tick_and_run_does_not_stop_its_mates(pipeline, corpus):
    gone = corpus.write("a.txt", TEXT.format(1))
    corpus.write("b.txt", TEXT.format(2))
    [batch] = corpus.look().batches
    gone.unlink()
    assert pipeline.batch_run(batch).success
    assert corpus.rows("SELECT source_path FROM documents") == [("b.txt",)]
    assert corpus.rows("SELECT error_code FROM sources WHERE source_path = 'a.txt'") == [(None,)]


def test_a_batch_whose_first_partition_is_deleted_while_it_is_queued_publishes_the_others(pipeline, corpus, monkeypatch):
    import resources.corpus

    for name in ("a.txt", "b.txt"):
        corpus.write(name, TEXT.format(name))
    [batch] = corpus.look().batches
    opened = resources.corpus.open_run

    def open_late(*args, **options):
        if pipeline.instance.has_dynamic_partition(DOCUMENTS, "a.txt"):
            corpus.rows("DELETE FROM sources WHERE source_path = 'a.txt' RETURNING 1")
            pipeline.instance.delete_dynamic_partition(DOCUMENTS, "a.txt")
        return opened(*args, **options)

    monkeypatch.setattr(resources.corpus, "open_run", open_late)
    assert pipeline.batch_run(batch).success
    assert corpus.rows("SELECT source_path FROM documents") == [("b.txt",)]
    assert corpus.rows("SELECT partition_key FROM retired_partitions") == [("a.txt",)]


def test_a_run_keeps_its_settings_and_what_it_made_with_them_is_stale(pipeline, corpus, monkeypatch):
    import assets.chunks

    corpus.write("a.txt", TEXT.format(1) * 20)
    cut = assets.chunks.chunk_documents

    def change_settings_first(run, *args, **options):
        override(corpus, CHUNK_SIZE="300", CHUNK_OVERLAP="30")
        return cut(run, *args, **options)

    [batch] = corpus.look().batches
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(assets.chunks, "chunk_documents", change_settings_first)
        assert pipeline.batch_run(batch).success
    assert corpus.value("SELECT max(char_length(content)) FROM chunks") > 300
    [again] = corpus.look().batches
    assert corpus.value("SELECT reason FROM attempts WHERE batch_id = %s", [again.batch_id]) == "chunking recipe changed"
    assert pipeline.batch_run(again).success
    assert corpus.value("SELECT max(char_length(content)) FROM chunks") <= 300


def test_a_range_that_is_too_large_for_one_run_is_refused_before_anything_is_claimed(pipeline, corpus, monkeypatch):
    monkeypatch.setattr(batch_resource, "MOST_BY_HAND", 2)
    for n in range(3):
        corpus.write(f"{n}.txt", TEXT.format(n))
    corpus.look()
    corpus.rows("UPDATE attempts SET state = 'cancelled', finished_at = now() RETURNING 1")
    pipeline.instance.add_dynamic_partitions(DOCUMENTS, [f"{n}.txt" for n in range(3)])
    refused = pipeline.range_run("0.txt", "2.txt")
    assert "names 3 documents, and one run takes at most 2" in str(refused.failure_data_for_node("documents").error)
    assert corpus.value("SELECT count(*) FROM attempts WHERE finished_at IS NULL") == 0


def test_a_run_of_newer_code_than_the_sensor_gives_its_batch_back_and_the_sensor_stops(pipeline, corpus, monkeypatch):
    corpus.write("a.txt", TEXT.format(1))
    [batch] = corpus.look().batches
    assert pipeline.batch_run(batch, recipes="those of the release before").success
    assert corpus.rows("SELECT state FROM attempts") == [("cancelled",)]
    assert corpus.value("SELECT count(*) FROM documents") == 0
    assert tick(pipeline).skip_message.startswith("The code has changed since this code server was started")
    monkeypatch.setattr(sensors, "THIS_LOAD", "another, after the restart")
    [partitions] = run_requests(tick(pipeline))
    assert partitions == ["a.txt"]


def test_a_failed_run_is_closed_at_once(pipeline, corpus, monkeypatch):
    corpus.write("a.txt", TEXT.format(1))
    run = failing_run(pipeline, corpus, monkeypatch, RuntimeError("a bug"))
    assert report_end(pipeline, run).endswith("1 documents that it had not finished are closed")
    assert corpus.rows("SELECT state FROM attempts") == [("interrupted",)]
    assert "held nothing" in report_end(pipeline, run)


def test_a_run_that_met_a_store_that_was_away_is_not_held_against_its_documents(pipeline, corpus, monkeypatch):
    corpus.write("a.txt", TEXT.format(1))
    run = failing_run(pipeline, corpus, monkeypatch, StoreUnavailable("PostgreSQL was restarted"))
    assert DagsterRuns(pipeline.instance).ending(run.run_id) == "unavailable"
    report_end(pipeline, run)
    assert corpus.rows("SELECT state, status FROM attempts JOIN sources USING (source_id)") == [("cancelled", "pending")]


def test_the_failed_check_of_a_document_holds_the_failure_as_a_sentence(pipeline, corpus):
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    [batch] = corpus.look().batches
    pipeline.batch_run(batch)
    run = pipeline.instance.get_runs(limit=1)[0]
    [evaluation] = [
        record.event_log_entry.dagster_event.asset_check_evaluation_data
        for record in pipeline.instance.get_records_for_run(run.run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    ]
    assert evaluation.metadata["failure"].value.startswith("first attempt failed at stage parsing with ")
    assert corpus.look().stale.select("reason", "waits_for").rows() == [("not made yet", "change")]


def test_the_assets_that_share_a_machine_are_in_pools(pipeline):
    ops = defs.resolve_job_def("ingest_batch").nodes
    assert {node.name: node.definition.pool for node in ops if node.name in CHAIN} == {
        "documents": "parser", "chunks": "embedder", "contextualized_chunks": None, "embeddings": "embedder",
        "bm25_index": "keyword_writer", "corpus": None,
    }  # fmt: skip
