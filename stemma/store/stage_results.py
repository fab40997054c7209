"""Stage results: the work that was done before, found by the key of everything that it depends on."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import polars as pl

from sql import load_queries
from stemma.failpoints import reach
from stemma.store.lake import Lake
from stemma.store.postgres import Connection

ResultStage = Literal["documents", "chunks", "contextualized_chunks"]


@dataclass(frozen=True)
class StageResult:
    """One piece of work: its key, the hash of its output, and the lake object whose rows of that key are the output."""

    key: str
    output_hash: str
    object: str


def result_key(*parts: str) -> str:
    """sha256 (hex) of the parts in order, unambiguous whatever they contain."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(f"{len(data)}:".encode() + data)
    return digest.hexdigest()


def find_results(connection: Connection, lake: Lake, stage: ResultStage, keys: Sequence[str], *, now: datetime) -> dict[str, StageResult]:
    """Key -> result, for those of the keys that were done and whose object the lake still holds; marks them as used."""
    parameters = {"stage": stage, "keys": sorted(set(keys)), "now": now}
    rows = connection.execute(load_queries("stage_results")["find_results"], parameters).fetchall()
    present = {name for name in {name for _, _, name in rows} if lake.holds(name)}
    return {key: StageResult(key, output_hash, name) for key, output_hash, name in rows if name in present}


def store_results(
    connection: Connection,
    lake: Lake,
    stage: ResultStage,
    frame: pl.DataFrame,
    outputs: Mapping[str, str],
    *,
    fingerprint: str,
    now: datetime,
) -> dict[str, StageResult]:
    """Write the frame (with a column `key`) as one object, record key -> output hash for it, and return the results.

    First the bytes, then the row that says they exist. A key without rows in the frame is a result too: an empty one.
    """
    if not outputs:
        return {}
    name = lake.write(stage, frame)
    reach("lake.object_written")
    connection.execute(
        load_queries("stage_results")["store_results"],
        {"stage": stage, "keys": list(outputs), "hashes": list(outputs.values()), "fingerprint": fingerprint, "object": name, "now": now},
    )
    return {key: StageResult(key, output_hash, name) for key, output_hash in outputs.items()}


def read_results(lake: Lake, results: Iterable[StageResult], columns: Sequence[str] | None = None) -> pl.DataFrame:
    """The rows of all these results (at least one), each object read once. Raises MissingObject naming the first that is gone."""
    keys_by_object: dict[str, list[str]] = {}
    for result in results:
        keys_by_object.setdefault(result.object, []).append(result.key)
    # A column that a release added is null in what an earlier one wrote.
    return pl.concat([lake.read(name, keys, columns) for name, keys in keys_by_object.items()], how="diagonal")
