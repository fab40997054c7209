"""Settings: one observed asset per stage; its data version is the stage's fingerprint, so that a change marks what it affects."""

import dagster as dg

from resources.observations import settings_key
from stemma.settings import CORPUS_STAGES, SETTINGS

stage_settings = [
    dg.AssetSpec(
        settings_key(stage),
        group_name="settings",
        description=f"What the stage `{stage}` depends on besides its input: "
        + (", ".join(f"`{name}`" for name, info in SETTINGS.items() if info.stage == stage) or "its code")
        + ". Changed with `stemma settings set`; the data version is their fingerprint.",
    )
    for stage in CORPUS_STAGES
]
