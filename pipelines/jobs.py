"""Jobs: the asset job that a claimed batch runs in, and the one that records wishes."""

from datetime import UTC, datetime
from enum import Enum
from typing import cast

import dagster as dg
from pydantic import Field

from assets.audit import AUDIT_CHECKS
from assets.freshness import freshness_checks
from assets.partitions import OWNERS
from resources.corpus import CorpusResource
from stemma.library.paths import source_path_of
from stemma.library.restriction import Restriction
from stemma.library.wishes import wish
from stemma.stages.installation import wanted_fingerprints
from stemma.stages.run import SHOWN
from stemma.store.rows import AssetStage

ingest_batch = dg.define_asset_job(
    "ingest_batch",
    selection=dg.AssetSelection.assets(*SHOWN) - dg.AssetSelection.checks(*AUDIT_CHECKS) - dg.AssetSelection.checks(*freshness_checks),
    description="Take one batch of documents from their files to what readers see. Started by the sensor `reconcile`; "
    "started here by hand, it takes the partition or range that you choose.",
    owners=OWNERS,
    executor_def=dg.in_process_executor,
)


class ForcedStage(Enum):
    """The stages of the corpus, by the names of their assets."""

    documents = "documents"
    chunks = "chunks"
    contextualized_chunks = "contextualized_chunks"
    embeddings = "embeddings"
    bm25_index = "bm25_index"
    corpus = "corpus"


class IngestDocuments(dg.Config):
    """What to bring up to date. Left as it is: everything that is stale."""

    partitions: list[str] = Field([], description="Partition keys of files or folders, in any order and with any gaps; empty: all.")
    workspace: str = Field("", description="Only documents of the workspace with this key; empty: of all.")
    force_stage: ForcedStage | None = Field(
        None, description="Make the selection again from this stage on, stale or not: `documents` reads and parses the files again."
    )
    made_by: dict[str, str] = Field(
        {},
        description="Make again what this made, such as {parser: pdfium, parser_version: 5.11.0}; parser, parser_version, chunker and "
        "embedding_model are known. Without `force_stage` it begins at the stage that they speak of.",
    )


@dg.op(name="request_ingest")
def request_documents(context: dg.OpExecutionContext, config: IngestDocuments, corpus: CorpusResource) -> None:
    """Record the wish; the sensor `reconcile` claims and launches within seconds, a batch per run whatever lies between the documents."""
    settings = corpus.installation.settings()
    paths = [source_path_of(key) for key in config.partitions] or None
    restriction = Restriction(paths, config.workspace or None, config.made_by)
    stage = cast("AssetStage", config.force_stage.value) if config.force_stage else None
    with corpus.installation.pool.connection() as connection:
        asked_for = wish(
            connection, settings, wanted_fingerprints(settings), restriction,
            stage=stage, force=bool(stage or config.made_by), now=datetime.now(UTC),
        )  # fmt: skip
    context.log.info("%s documents are brought up to date", asked_for)
    context.add_output_metadata({"documents": asked_for})


@dg.job(executor_def=dg.in_process_executor, owners=OWNERS)
def ingest_documents() -> None:
    """Bring documents up to date: with the defaults everything that is stale, else a selection, or a stage of it made again.

    The work is done by runs of `ingest_batch`, which the sensor `reconcile` starts.
    """
    request_documents()
