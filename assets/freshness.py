"""Freshness: one check per asset that says how much of it is stale and why, over all partitions, which Dagster's own labels cannot show."""

from datetime import UTC, datetime

import dagster as dg

from resources.corpus import CorpusResource
from resources.freshness import UP_TO_DATE, layer_metadata
from stemma.library.layers import layers
from stemma.stages.installation import wanted_fingerprints
from stemma.stages.run import SHOWN, StageAsset


def _freshness_check(asset: StageAsset) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=asset,
        name=UP_TO_DATE,
        description="No document is stale here. The sensor `reconcile` reports it when it changes; run by hand it is asked anew.",
    )
    def up_to_date(corpus: CorpusResource) -> dg.AssetCheckResult:
        """One SQL query over what every stage of every document was made from."""
        settings = corpus.installation.settings()
        with corpus.installation.pool.connection() as connection:
            found = layers(connection, settings, wanted_fingerprints(settings), now=datetime.now(UTC))
        [layer] = [layer for layer in found if layer.asset == asset]
        return dg.AssetCheckResult(
            passed=not layer.stale,
            severity=dg.AssetCheckSeverity.WARN,
            description=layer.sentence,
            metadata=layer_metadata(layer),
        )

    return up_to_date


freshness_checks = [_freshness_check(asset) for asset in SHOWN]
