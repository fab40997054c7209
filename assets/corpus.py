"""Corpus: what readers see. A document goes live whole, in one transaction."""

from collections.abc import Iterator

import dagster as dg

from assets.checks import expectations_of
from assets.columns import columns_of
from assets.partitions import OWNERS, document_partitions, one_batch_per_run
from resources.batch import DocumentBatch
from resources.corpus import CorpusResource
from resources.recorder import Recorder
from stemma.stages.corpus import publish_documents
from stemma.stages.figures import EARLIER_FIGURES, keep_figures
from stemma.stages.run import enter


@dg.multi_asset(
    name="corpus",
    can_subset=True,
    specs=[
        dg.AssetSpec(
            "corpus",
            deps=["documents", "embeddings", "bm25_index"],
            partitions_def=document_partitions,
            group_name="corpus",
            description="The published document: text, chunks, vectors and keyword entries of one version, visible all at once.",
            kinds={"postgres"},
            owners=OWNERS,
            tags={"layer": "corpus"},
            metadata=columns_of("corpus"),
        )
    ],
    check_specs=[
        dg.AssetCheckSpec("published", asset="corpus", partitions_def=document_partitions, description="The document is live."),
        expectations_of("corpus", "The version is live under the name that its bytes give it, with all its chunks."),
    ],
    backfill_policy=one_batch_per_run,
)
def corpus(context: dg.AssetExecutionContext, batch: DocumentBatch, corpus: CorpusResource) -> Iterator[dg.MaterializeResult]:
    """Publish what is still wanted; then fail the run if any of its documents failed, so that the UI shows them."""
    run = corpus.run(context, batch)
    enter(run, "corpus")
    recorder = Recorder(context, run, corpus.installation, check="published")
    sources = run.sources()
    outcome = publish_documents(run, sources)
    recorder.record(outcome)
    keep_figures(run.pool, run.lake, run.settings, source_ids=sources["source_id"].to_list(), limit=sources.height + EARLIER_FIGURES)
    yield dg.MaterializeResult(asset_key="corpus")
