"""Layers: for every asset of the chain, how much of it is not what the library gives, and why, in one sentence."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import polars as pl

from sql import load_queries
from stemma.library.staleness import ABOVE, ASSETS, n_sources, stale_counts
from stemma.settings import SETTINGS, Fingerprints, Settings, Stage
from stemma.store.postgres import Connection
from stemma.store.rows import AssetStage

RECIPE_OF: dict[AssetStage, Stage] = {
    "documents": "parsing", "chunks": "chunking", "contextualized_chunks": "contextualizing", "embeddings": "embedding", "bm25_index": "bm25",
}  # fmt: skip
"""The stage whose settings an asset is made by; `corpus` has none."""


@dataclass(frozen=True)
class Layer:
    """One asset of the chain."""

    asset: AssetStage
    sources: int
    """Documents of the library that are not being deleted."""
    stale: int
    """Those of which this asset, or something it is made from, is not what file and wanted recipe give."""
    stale_from_here: int
    """Those of which it is the first that differs."""
    reasons: Mapping[str, int]
    """Why -> how many of the stale ones, most first."""

    @property
    def sentence(self) -> str:
        """As a check shows it."""
        if not self.stale:
            return f"all {self.sources:,} up to date"
        why = "; ".join(f"{reason} ({count:,})" if len(self.reasons) > 1 else reason for reason, count in self.reasons.items())
        return f"{self.stale:,} of {self.sources:,} stale: {why}"


def layers(connection: Connection, settings: Settings, wanted: Fingerprints, *, now: datetime) -> list[Layer]:
    """Every asset of the chain, in order."""
    return layers_of(connection, settings, wanted, stale_counts(connection, settings, wanted, now=now))


def layers_of(connection: Connection, settings: Settings, wanted: Fingerprints, counts: pl.DataFrame) -> list[Layer]:
    """The same from counts (COUNT_SCHEMA) of the whole library that were taken a moment ago."""
    row = connection.execute("SELECT count(*) FROM sources WHERE deletion_intent IS NULL").fetchone()
    counts = counts.filter(pl.col("waits_for").is_null() | (pl.col("waits_for") != "deletion"))
    changes = changed_recipes(connection, settings, wanted) if not counts.is_empty() else {}
    return [_layer(asset, row[0] if row else 0, counts, changes) for asset in ASSETS]


def changed_recipes(connection: Connection, settings: Settings, wanted: Fingerprints) -> dict[str, str]:
    """Asset -> what differs between the recipes that made some of it and the wanted one, in words; the most used recipe first."""
    found: dict[str, list[str]] = {}
    now_set = settings.frozen()
    for asset, fingerprint, then_set in connection.execute(load_queries("staleness")["recipes"]).fetchall():
        stage = RECIPE_OF[asset]
        if fingerprint != getattr(wanted, stage):
            words = _difference(stage, then_set, now_set)
            found[asset] = list(dict.fromkeys([*found.get(asset, []), words]))
    return {asset: " or ".join(words) for asset, words in found.items()}


def _difference(stage: Stage, then_set: dict[str, Any] | None, now_set: dict[str, Any]) -> str:
    if then_set is None:
        return f"another {stage} recipe made them"
    names = [name for name, info in SETTINGS.items() if info.stage == stage]
    if stage == "chunking" and now_set["CHUNKING_STRATEGY"] == "semantic":
        names.append("EMBEDDING_MODEL")  # it decides the cuts
    changed = [f"{name} was {then_set.get(name)}, is {now_set[name]}" for name in names if then_set.get(name) != now_set[name]]
    return ", ".join(changed) or f"the code or a model of {stage} changed"


def _layer(asset: AssetStage, total: int, counts: pl.DataFrame, changes: Mapping[str, str]) -> Layer:
    chain: tuple[AssetStage, ...] = (*ABOVE[asset], asset)
    affected = counts.filter(pl.any_horizontal(pl.col(name).is_not_null() for name in chain))
    reasons: Counter[str] = Counter()
    for row in affected.iter_rows(named=True):
        stage = next(name for name in chain if row[name] is not None)
        reason: str = row[stage]
        reasons[changes.get(stage, reason) if reason.endswith("recipe changed") else reason] += row["sources"]
    return Layer(asset, total, n_sources(affected), n_sources(counts.filter(pl.col("stage") == asset)), dict(reasons.most_common()))
