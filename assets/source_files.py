"""Source files: what lies in the library, observed; the data version is the sha256 of the bytes."""

import dagster as dg

from assets.partitions import document_partitions
from resources.corpus import CorpusResource
from resources.observations import SOURCE_FILES, unreported_hashes
from stemma.library.listing import content_hashes


@dg.observable_source_asset(
    key=SOURCE_FILES,
    partitions_def=document_partitions,
    group_name="corpus",
    description="One file of the library. Its data version is the sha256 of its bytes, observed whenever a run reads them.",
)
def source_files(context: dg.OpExecutionContext, corpus: CorpusResource) -> dg.DataVersionsByPartition:
    """Report the hashes that runs have taken and Dagster has not seen; runs do the same for what they read."""
    with corpus.installation.pool.connection() as connection:
        hashes = content_hashes(connection)
    return dg.DataVersionsByPartition(unreported_hashes(context.instance, hashes))
