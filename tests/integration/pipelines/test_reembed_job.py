"""The job `reembed` and the sensor `indexes`: what Dagster shows after the embedding model changed agrees with what is."""

from types import SimpleNamespace

import dagster as dg
import pytest
from small_models import random_model

from pipelines.definitions import defs
from pipelines.reembed import WISH_TAG, _meet, indexes, record_made_outside_runs, reembed
from resources.corpus import CorpusResource
from stemma.retrieval.keyword_indexes import OpenKeywordIndexes
from stemma.retrieval.search import SearchRequest, search_by_active_model
from stemma.stages.reembed import Wish
from stemma.stages.reembed import reembed as embed_anew
from stemma.store.app_settings import set_overrides


@pytest.fixture
def other_model(tmp_path) -> str:
    return random_model(tmp_path / "other")


@pytest.fixture
def published(pipeline):
    """Two documents, published by a run of Dagster's."""
    pipeline.corpus.write("a.txt", "An apple a day.")
    pipeline.corpus.write("sub/b.txt", "Bananas ripen in a bag.")
    [batch] = pipeline.corpus.look().batches
    assert pipeline.batch_run(batch).success
    return pipeline


def execute(pipeline, job: dg.JobDefinition, **config) -> dg.ExecuteInProcessResult:
    run_config = {"ops": {"embed_corpus": {"config": config}}} if config else {}
    return job.execute_in_process(instance=pipeline.instance, resources={"corpus": CorpusResource()}, run_config=run_config)


def inputs_are_the_latest(pipeline, asset: str, partition: str) -> bool:
    """Whether the latest materialization names the present version of each of its inputs: what Dagster calls fresh."""
    records = pipeline.instance.fetch_materializations(
        dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[partition]), limit=1
    ).records
    tags = records[0].event_log_entry.asset_materialization.tags
    graph = defs.resolve_asset_graph()
    for parent in graph.get(dg.AssetKey(asset)).parent_keys:
        name = parent.to_user_string()
        if name.endswith("_settings"):
            record = pipeline.instance.get_latest_data_version_record(parent, is_source=True)
            present = record.event_log_entry.asset_observation.tags["dagster/data_version"]
        else:
            present = pipeline.version(name, partition)
        if tags[f"dagster/input_data_version/{name}"] != present:
            return False
    return True


def active_model(pipeline) -> str:
    return pipeline.corpus.value(
        "SELECT spec ->> 'model' FROM embedding_indexes JOIN corpus_state ON embedding_index_id = active_embedding_index"
    )


def test_the_job_switches_and_leaves_every_partition_fresh(published, other_model):
    result = execute(published, reembed, model=other_model)
    assert result.success and active_model(published) == "other"
    for asset in ("embeddings", "bm25_index", "corpus"):
        for partition in ("a.txt", "sub/b.txt"):
            assert inputs_are_the_latest(published, asset, partition), (asset, partition)
    assert published.corpus.look().batches == ()
    version = published.version("embeddings", "a.txt")
    assert published.ui_run("a.txt").success
    assert published.version("embeddings", "a.txt") == version, "a run names the same embeddings otherwise than the switch did"


def test_a_dry_run_of_the_job_changes_nothing_and_says_what_it_takes(published, other_model):
    result = execute(published, reembed, model=other_model, dry_run=True)
    (output,) = [event for event in result.all_events if event.event_type_value == "STEP_OUTPUT"]
    said = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert (said["model"], said["chunks"], said["model_calls"]) == ("other", 2, 2)
    assert active_model(published) == "minilm"
    assert published.corpus.value("SELECT count(*) FROM embedding_indexes") == 1


def test_the_job_as_it_stands_meets_the_setting_and_goes_back(published, other_model):
    with published.corpus.installation.pool.connection() as connection:
        set_overrides(connection, published.corpus.settings, {"EMBEDDING_MODEL": other_model})
    assert execute(published, reembed).success and active_model(published) == "other"
    assert execute(published, reembed, rollback=True).success and active_model(published) == "minilm"


def tick(pipeline) -> dg.SensorResult | dg.SkipReason:
    with dg.build_sensor_context(instance=pipeline.instance, resources={"corpus": CorpusResource()}) as context:
        return indexes(context)


def test_what_the_command_line_switched_is_reported_by_a_run_of_the_sensors(published, other_model):
    assert tick(published).skip_message == "the indexes are in order"
    embed_anew(published.corpus.installation, other_model)
    before = published.version("embeddings", "a.txt")
    [request] = tick(published).run_requests
    assert request.job_name == "record_made_outside_runs"
    assert execute(published, record_made_outside_runs).success
    assert published.version("embeddings", "a.txt") != before
    assert inputs_are_the_latest(published, "embeddings", "a.txt") and inputs_are_the_latest(published, "corpus", "a.txt")
    assert isinstance(tick(published), dg.SkipReason)


def test_the_tick_says_what_is_wanted_and_not_there(published, other_model):
    with published.corpus.installation.pool.connection() as connection:
        set_overrides(connection, published.corpus.settings, {"EMBEDDING_MODEL": other_model, "EMBEDDING_POLICY": "manual"})
    assert "searches read the vectors of minilm" in tick(published).skip_message


def test_an_eager_wish_gets_one_run_at_a_time_and_waits_after_a_failure(published):
    settings = SimpleNamespace(embedding_policy="eager", max_attempts=2, retry_backoff_s=3_600)
    wish, said = Wish("1:abc", "wanted"), []
    [request] = _meet(published.instance, settings, wish, said)
    assert (request.job_name, request.tags) == ("reembed", {WISH_TAG: "1:abc"})
    failing = {"ops": {"embed_corpus": {"config": {"model": "/no/such/folder"}}}}

    def fail():
        done = reembed.execute_in_process(
            instance=published.instance, resources={"corpus": CorpusResource()}, run_config=failing, tags=request.tags, raise_on_error=False
        )
        assert not done.success

    fail()
    assert _meet(published.instance, settings, wish, said) == [] and said[-1].endswith("another follows")
    settings.retry_backoff_s = 0
    assert _meet(published.instance, settings, wish, said)[0].run_key != request.run_key
    fail()
    assert _meet(published.instance, settings, wish, said) == [] and said[-1].startswith("2 runs failed")
    settings.embedding_policy = "manual"
    assert _meet(published.instance, settings, Wish("2:abc", "wanted"), said) == []


def answered(pipeline) -> list[str]:
    """Paths that a search by meaning answers with, best first."""
    here = pipeline.corpus.installation
    indexes_read = OpenKeywordIndexes(pipeline.corpus.settings)
    request = SearchRequest("Bananas ripen in a bag.", method="semantic", k=5)
    answer = search_by_active_model(request, pool=here.pool, lexical=indexes_read, embedder_of=here.embedder_of, settings=here.settings())
    indexes_read.close()
    return [hit.source_path for hit in answer.hits]


def test_an_eager_wish_is_met_from_the_setting_to_the_search(published, other_model):
    corpus = published.corpus
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"EMBEDDING_MODEL": other_model})
    [request] = tick(published).run_requests
    corpus.write("c.txt", "Cherries are red.")
    for batch in corpus.look().batches:  # what the setting made due, and a new file: embedded for both, switched by none
        assert published.batch_run(batch).success
    assert active_model(published) == "minilm"
    assert answered(published)[0] == "sub/b.txt"
    done = reembed.execute_in_process(instance=published.instance, resources={"corpus": CorpusResource()}, tags=request.tags)
    assert done.success and active_model(published) == "other"
    assert (answered(published)[0], len(answered(published))) == ("sub/b.txt", 3)
    assert corpus.look().batches == ()
    assert isinstance(tick(published), dg.SkipReason)
