"""Chunks: the retrieval units of each document, addressed by exact offsets into its text."""

from collections.abc import Iterator

import dagster as dg

from assets.checks import expectations_of
from assets.columns import columns_of
from assets.partitions import OWNERS, document_partitions, one_batch_per_run
from assets.pools import EMBEDDER_POOL
from resources.batch import DocumentBatch
from resources.corpus import CorpusResource
from resources.recorder import Recorder
from stemma.settings import CODE_VERSIONS
from stemma.stages.chunks import chunk_documents
from stemma.stages.run import enter


@dg.multi_asset(
    name="chunks",
    pool=EMBEDDER_POOL,
    can_subset=True,
    specs=[
        dg.AssetSpec(
            "chunks",
            deps=["documents", "chunking_settings"],
            partitions_def=document_partitions,
            code_version=CODE_VERSIONS["chunking"],
            group_name="corpus",
            description="One row per chunk; its content equals the document's text between char_start and char_end.",
            kinds={"polars", "parquet"},
            owners=OWNERS,
            tags={"layer": "chunks"},
            metadata=columns_of("chunks"),
        )
    ],
    check_specs=[
        dg.AssetCheckSpec(
            "chunked", asset="chunks", partitions_def=document_partitions, description="Offsets are exact, nothing is lost or blank."
        ),
        expectations_of("chunks", "Offsets are exact, indexes dense and unique, no chunk is blank or longer than its strategy allows."),
    ],
    backfill_policy=one_batch_per_run,
)
def chunks(context: dg.AssetExecutionContext, batch: DocumentBatch, corpus: CorpusResource) -> Iterator[dg.MaterializeResult]:
    """Chunk what no earlier result answers."""
    run = corpus.run(context, batch)
    enter(run, "chunks")
    recorder = Recorder(context, run, corpus.installation, check="chunked")
    outcome = chunk_documents(run, run.sources(), embedder_of=corpus.installation.embedder_of)
    recorder.record(outcome)
    yield dg.MaterializeResult(asset_key="chunks")
