"""Contextualized chunks: what is put before each chunk for search, and the exact string that is embedded and indexed."""

from collections.abc import Iterator

import dagster as dg

from assets.checks import expectations_of
from assets.columns import columns_of
from assets.partitions import OWNERS, document_partitions, one_batch_per_run
from resources.batch import DocumentBatch
from resources.corpus import CorpusResource
from resources.recorder import Recorder
from stemma.settings import CODE_VERSIONS
from stemma.stages.contextualized_chunks import contextualize_chunks
from stemma.stages.run import enter


@dg.multi_asset(
    name="contextualized_chunks",
    can_subset=True,
    specs=[
        dg.AssetSpec(
            "contextualized_chunks",
            deps=["documents", "chunks", "contextualizing_settings"],
            partitions_def=document_partitions,
            code_version=CODE_VERSIONS["contextualizing"],
            group_name="corpus",
            description="Each chunk with its context: by default the document's title and the trail of headings above the chunk.",
            kinds={"polars", "parquet"},
            owners=OWNERS,
            tags={"layer": "contextualized_chunks"},
            metadata=columns_of("contextualized_chunks"),
        )
    ],
    check_specs=[
        dg.AssetCheckSpec(
            "contextualized",
            asset="contextualized_chunks",
            partitions_def=document_partitions,
            description="Every chunk has its string for search.",
        ),
        expectations_of("contextualized_chunks", "The string for search is the context, a blank line and the content."),
    ],
    backfill_policy=one_batch_per_run,
)
def contextualized_chunks(
    context: dg.AssetExecutionContext, batch: DocumentBatch, corpus: CorpusResource
) -> Iterator[dg.MaterializeResult]:
    """Situate the chunks that no earlier result answers."""
    run = corpus.run(context, batch)
    enter(run, "contextualized_chunks")
    recorder = Recorder(context, run, corpus.installation, check="contextualized")
    outcome = contextualize_chunks(run, run.sources())
    recorder.record(outcome)
    yield dg.MaterializeResult(asset_key="contextualized_chunks")
