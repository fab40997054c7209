"""Jobs: the asset job that a claimed batch runs in, and the one that records wishes."""

from datetime import UTC, datetime

import dagster as dg

from assets.audit import AUDIT_CHECKS
from assets.partitions import OWNERS
from resources.corpus import CorpusResource
from stemma.library.paths import source_path_of
from stemma.library.wishes import request_ingest
from stemma.stages.run import SHOWN

ingest_batch = dg.define_asset_job(
    "ingest_batch",
    selection=dg.AssetSelection.assets(*SHOWN) - dg.AssetSelection.checks(*AUDIT_CHECKS),
    description="Take one batch of documents from their files to what readers see. Started by the sensor `reconcile`; "
    "started here by hand, it takes the partition or range that you choose.",
    owners=OWNERS,
    executor_def=dg.in_process_executor,
)


class IngestDocuments(dg.Config):
    """What to look at again. Empty: the whole library."""

    partitions: list[str] = []  # noqa: RUF012 -- pydantic copies the default
    """Partition keys of files or folders."""
    force: bool = False
    """Parse again even what is up to date."""


@dg.op(name="request_ingest")
def request_documents(context: dg.OpExecutionContext, config: IngestDocuments, corpus: CorpusResource) -> None:
    """Record the wish; the sensor `reconcile` claims and launches within seconds."""
    with corpus.installation.pool.connection() as connection:
        paths = [source_path_of(key) for key in config.partitions] or None
        wished = request_ingest(connection, paths=paths, force=config.force, now=datetime.now(UTC))
    context.log.info("the library is looked at now; %s documents are parsed again", wished)


@dg.job(executor_def=dg.in_process_executor, owners=OWNERS)
def ingest_documents() -> None:
    """Look at the library now, and bring everything stale up to date; `force` redoes what is up to date as well."""
    request_documents()
