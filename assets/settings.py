"""Settings: one observed asset per stage; its data version is the stage's fingerprint, so that a change marks what it affects."""

from dataclasses import asdict

import dagster as dg

from resources.corpus import CorpusResource
from resources.observations import settings_key
from stemma.settings import CORPUS_STAGES, SETTINGS, Stage
from stemma.stages.installation import wanted_fingerprints


def _settings_asset(stage: Stage) -> dg.SourceAsset:
    names = ", ".join(f"`{name}`" for name, info in SETTINGS.items() if info.stage == stage)

    @dg.observable_source_asset(
        key=settings_key(stage),
        group_name="corpus",
        description=f"What the stage `{stage}` depends on besides its input: {names}, its code and its models. "
        "Changed with `stemma settings set`; the data version is their fingerprint.",
    )
    def stage_settings(corpus: CorpusResource) -> dg.DataVersion:
        """The fingerprint that is wanted now; the sensor and every run report it too."""
        return dg.DataVersion(asdict(wanted_fingerprints(corpus.installation.settings()))[stage])

    return stage_settings


stage_settings = [_settings_asset(stage) for stage in CORPUS_STAGES]
