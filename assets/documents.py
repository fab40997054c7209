"""Documents: each file as one canonical text, with its blocks, pages and provenance."""

from collections.abc import Iterator

import dagster as dg

from assets.checks import expectations_of
from assets.columns import columns_of
from assets.partitions import OWNERS, document_partitions, one_batch_per_run
from assets.pools import PARSER_POOL
from resources.batch import DocumentBatch
from resources.corpus import CorpusResource
from resources.observations import observe_sources
from resources.recorder import Recorder
from stemma.settings import CODE_VERSIONS
from stemma.stages.documents import parse_documents, spool_files
from stemma.stages.run import enter


@dg.multi_asset(
    name="documents",
    pool=PARSER_POOL,
    can_subset=True,
    specs=[
        dg.AssetSpec(
            "documents",
            deps=["source_files", "parsing_settings"],
            partitions_def=document_partitions,
            code_version=CODE_VERSIONS["parsing"],
            group_name="corpus",
            description="The text of a file with its blocks and pages. The data version is the hash of that, so an equal text leaves all below fresh.",
            kinds={"docling", "parquet"},
            owners=OWNERS,
            tags={"layer": "documents"},
            metadata=columns_of("documents"),
        )
    ],
    check_specs=[
        dg.AssetCheckSpec("parsed", asset="documents", partitions_def=document_partitions, description="The file could be read as text."),
        expectations_of("documents", "The text is as long as was recorded, and what has visible characters has chunks."),
    ],
    backfill_policy=one_batch_per_run,
)
def documents(context: dg.AssetExecutionContext, batch: DocumentBatch, corpus: CorpusResource) -> Iterator[dg.MaterializeResult]:
    """Copy and hash the files, then parse what no earlier result answers."""
    run = corpus.run(context, batch)
    enter(run, "documents")
    spooled = spool_files(run, run.sources())
    observe_sources(context, spooled.hashes)
    recorder = Recorder(context, run, corpus.installation, check="parsed")
    outcome = parse_documents(run, spooled)
    recorder.record(outcome)
    yield dg.MaterializeResult(asset_key="documents")
