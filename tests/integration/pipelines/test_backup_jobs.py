"""Backups in Dagster: a bundle is a partition, and a restored corpus is known to it partition by partition."""

import shutil

import dagster as dg

from assets.backup_bundles import BUNDLES
from assets.partitions import DOCUMENTS
from pipelines.backup import back_up
from pipelines.reembed import record_made_outside_runs
from resources.corpus import CorpusResource
from stemma.bundles.restore import restore_bundle


def execute(pipeline, job, **config):
    run_config = {"ops": {"export_bundle": {"config": config}}} if config else {}
    return job.execute_in_process(instance=pipeline.instance, resources={"corpus": CorpusResource()}, run_config=run_config)


def test_a_bundle_is_a_partition_and_after_a_restore_every_layer_is_materialized_and_nothing_is_due(pipeline):
    corpus = pipeline.corpus
    corpus.write("a.txt", "An apple a day.")
    corpus.write("sub/b.txt", "Bananas ripen in a bag.")
    corpus.ingest()  # outside of Dagster: it knows nothing of these documents, as after the loss of its storage
    assert execute(pipeline, back_up, label="first").success
    [bundle] = pipeline.instance.get_dynamic_partitions(BUNDLES)
    assert pipeline.instance.get_materialized_partitions(dg.AssetKey("backup_bundles")) == {bundle}
    assert execute(pipeline, back_up, retention=False).success
    assert len(pipeline.instance.get_dynamic_partitions(BUNDLES)) == 1, "nothing changed, so no second bundle"
    shutil.rmtree(corpus.settings.home / "bm25")
    restore_bundle(corpus.installation, bundle)
    assert execute(pipeline, record_made_outside_runs).success
    assert set(pipeline.instance.get_dynamic_partitions(DOCUMENTS)) == {"a.txt", "sub/b.txt"}
    for asset in ("documents", "chunks", "contextualized_chunks", "embeddings", "bm25_index", "corpus"):
        recorded = corpus.value(
            "SELECT output_hash FROM stage_state JOIN sources USING (source_id) WHERE source_path = 'a.txt' AND stage_state.stage = %s",
            [asset],
        )
        assert pipeline.version(asset, "a.txt") == recorded, asset
    assert corpus.look().batches == ()
    assert corpus.keyword_hits("apple")
