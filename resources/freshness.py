"""How stale each layer is, told to Dagster when it changed: as a check, and as numbers that its UI plots over time."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

import dagster as dg

from stemma.library.layers import Layer
from stemma.store.app_settings import read_note, write_note
from stemma.store.postgres import Connection

UP_TO_DATE = "up_to_date"
"""Name of the check."""

REPORTED_NOTE = "_freshness_reported"
AT_MOST_EVERY = timedelta(minutes=1)
"""While a backfill goes on the numbers change with every look; so often they are told. Becoming stale or fresh is told at once."""


def layer_metadata(layer: Layer) -> dict[str, dg.MetadataValue]:
    """The numbers of a layer."""
    return {
        "stale": dg.MetadataValue.int(layer.stale),
        "stale_from_here": dg.MetadataValue.int(layer.stale_from_here),
        "documents": dg.MetadataValue.int(layer.sources),
        "reasons": dg.MetadataValue.json(dict(layer.reasons)),
    }


def report_layers(instance: dg.DagsterInstance, connection: Connection, found: Sequence[Layer], *, now: datetime) -> list[str]:
    """Report the layers that are not as they were reported last, and return their assets.

    Two events per layer and minute at most: a backfill of any size makes no more.
    """
    note = read_note(connection, REPORTED_NOTE)
    before: dict[str, dict[str, str | bool]] = json.loads(note) if note else {}
    changed = [layer for layer in found if _is_news(layer, before.get(layer.asset), now)]
    for layer in changed:
        key = dg.AssetKey(layer.asset)
        instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                key, UP_TO_DATE, not layer.stale, layer_metadata(layer), severity=dg.AssetCheckSeverity.WARN, description=layer.sentence
            )
        )
        instance.report_runless_asset_event(dg.AssetObservation(key, description=layer.sentence, metadata=layer_metadata(layer)))
    if changed:
        told = {layer.asset: {"sentence": layer.sentence, "fresh": not layer.stale, "at": now.isoformat()} for layer in changed}
        write_note(connection, REPORTED_NOTE, json.dumps(before | told))
    return [layer.asset for layer in changed]


def _is_news(layer: Layer, before: dict[str, str | bool] | None, now: datetime) -> bool:
    if before is None:
        return True
    if before["sentence"] == layer.sentence:
        return False
    told_at = datetime.fromisoformat(str(before["at"]))
    return before["fresh"] == bool(layer.stale) or not told_at <= now < told_at + AT_MOST_EVERY  # in the future: the clock was set back
