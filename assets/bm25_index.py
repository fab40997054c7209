"""BM25 index: keyword entries of each document's publication, written before it goes live."""

from collections.abc import Iterator

import dagster as dg

from assets.checks import expectations_of
from assets.columns import columns_of
from assets.partitions import OWNERS, document_partitions, one_batch_per_run
from assets.pools import KEYWORD_WRITER_POOL
from resources.batch import DocumentBatch
from resources.corpus import CorpusResource
from resources.recorder import Recorder
from stemma.settings import CODE_VERSIONS
from stemma.stages.bm25_index import index_chunks
from stemma.stages.run import enter


@dg.multi_asset(
    name="bm25_index",
    pool=KEYWORD_WRITER_POOL,
    can_subset=True,
    specs=[
        dg.AssetSpec(
            "bm25_index",
            deps=["contextualized_chunks", "bm25_settings"],
            partitions_def=document_partitions,
            code_version=CODE_VERSIONS["bm25"],
            group_name="corpus",
            description="Keyword entries, addressed by chunk and publication: a live version is never overwritten. Rebuildable without a model call.",
            kinds={"tantivy"},
            owners=OWNERS,
            tags={"layer": "bm25_index"},
            metadata=columns_of("bm25_index"),
        )
    ],
    check_specs=[
        dg.AssetCheckSpec(
            "indexed", asset="bm25_index", partitions_def=document_partitions, description="Every chunk has its keyword entry."
        ),
        expectations_of("bm25_index", "The index holds as many entries as chunks are published, by the record and by its own count."),
    ],
    backfill_policy=one_batch_per_run,
)
def bm25_index(context: dg.AssetExecutionContext, batch: DocumentBatch, corpus: CorpusResource) -> Iterator[dg.MaterializeResult]:
    """Write the entries of what is about to be published."""
    run = corpus.run(context, batch)
    enter(run, "bm25_index")
    recorder = Recorder(context, run, corpus.installation, check="indexed")
    outcome = index_chunks(run, run.sources(), index_of=corpus.installation.index_of)
    recorder.record(outcome)
    yield dg.MaterializeResult(asset_key="bm25_index")
