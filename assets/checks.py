"""The check that every layer has per partition: what the run published, held against the layer's suite of Great Expectations."""

import dagster as dg

from assets.partitions import document_partitions
from resources.expectations import EXPECTATIONS


def expectations_of(asset: str, says: str) -> dg.AssetCheckSpec:
    """The check `expectations` of an asset; `says` tells a person what is expected. It blocks nothing: what guards a promise is tested
    before the write and fails its document with a code."""
    return dg.AssetCheckSpec(EXPECTATIONS, asset=asset, partitions_def=document_partitions, description=says)
