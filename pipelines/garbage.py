"""The sensor `garbage`: once an hour, the lake and the vector cache are brought below their limits."""

from datetime import UTC, datetime

import dagster as dg

from assets.partitions import OWNERS
from resources.corpus import CorpusResource
from stemma.stages.garbage import collect_garbage

INTERVAL_S = 3_600


@dg.sensor(
    minimum_interval_seconds=INTERVAL_S,
    default_status=dg.DefaultSensorStatus.RUNNING,
    owners=OWNERS,
    description="Once an hour, removes what the lake and the vector cache hold above LAKE_MAX_BYTES and EMBEDDING_CACHE_MAX_BYTES and no document "
    "stands on, and what interrupted work left behind. Launches nothing; `stemma gc` does the same.",
)
def garbage(context: dg.SensorEvaluationContext, corpus: CorpusResource) -> dg.SkipReason:
    """Collect the garbage now, and say what was removed."""
    here = corpus.installation
    return dg.SkipReason(collect_garbage(here.pool, here.lake, here.settings(), now=datetime.now(UTC)).message)
