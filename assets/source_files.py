"""Source files: what lies in the library, observed; the data version is the sha256 of the bytes."""

import dagster as dg

from assets.partitions import document_partitions
from resources.observations import SOURCE_FILES

source_files = dg.AssetSpec(
    SOURCE_FILES,
    partitions_def=document_partitions,
    group_name="library",
    description="One file of the library. Its data version is the sha256 of its bytes, observed whenever they are read.",
    kinds={"file"},
)
