"""Holding a frame against a suite of Great Expectations, in memory: no project folder, no network, no progress bars."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from great_expectations.data_context.data_context.ephemeral_data_context import EphemeralDataContext
    from great_expectations.expectations.expectation import Expectation

SAMPLE_ROWS = 10
"""Rows that fail are shown up to this number; their count is always the whole."""


@dataclass(frozen=True)
class Broken:
    """An expectation that the frame does not meet."""

    says: str
    """What was expected, in words."""
    rows: pl.DataFrame
    """The rows that fail, with every column of the frame; empty where the expectation is about the frame as a whole."""
    observed: str | None
    """What was found, where the expectation is about the frame as a whole."""


@dataclass(frozen=True)
class Verdict:
    """What came of holding a frame against a suite."""

    n_rows: int
    expected: tuple[str, ...]
    """Every expectation in words."""
    broken: tuple[Broken, ...]

    @property
    def partitions(self) -> set[str]:
        """The partition keys of rows that fail."""
        return {key for one in self.broken for key in one.rows.get_column("partition_key")} if self.broken else set()

    def of(self, partition_key: str) -> tuple[Broken, ...]:
        """What is broken in one partition, with its rows alone."""
        kept = [Broken(one.says, one.rows.filter(pl.col("partition_key") == partition_key), one.observed) for one in self.broken]
        return tuple(one for one in kept if not one.rows.is_empty())


def validate(frame: pl.DataFrame, suite: "Sequence[Expectation]") -> Verdict:
    """Hold the frame, which has a column `partition_key`, against the suite. An empty frame meets every suite.

    Raises RuntimeError when an expectation cannot be evaluated: a fault in the suite, never in the data.
    """
    says = tuple(str(expectation.description) for expectation in suite)
    if frame.is_empty():
        return Verdict(0, says, ())
    import great_expectations as gx

    batch = expectations_context().data_sources.pandas_default.read_dataframe(frame.to_pandas())
    result = batch.validate(
        gx.ExpectationSuite(name="suite", expectations=list(suite)), result_format={"result_format": "COMPLETE", "include_unexpected_rows": False}
    )  # fmt: skip
    broken: list[Broken] = []
    for found in result.results:
        expectation = found.expectation_config
        assert expectation is not None, "a result belongs to an expectation"
        if found.exception_info.get("raised_exception", any(_raised(part) for part in found.exception_info.values())):
            raise RuntimeError(f"{expectation.type} cannot be evaluated: {found.exception_info}")
        if not found.success:
            positions = [int(position) for position in found.result.get("unexpected_index_list") or ()]
            observed = found.result.get("observed_value")
            broken.append(
                Broken(
                    str(expectation.description),
                    frame[positions] if positions else frame.clear(),
                    None if observed is None else f"{observed:.4g}" if isinstance(observed, float) else str(observed),
                )
            )
    return Verdict(frame.height, says, tuple(broken))


def _raised(part: Any) -> bool:
    return isinstance(part, dict) and bool(part.get("raised_exception"))


@cache
def expectations_context() -> "EphemeralDataContext":
    """One per process: it keeps nothing on disk."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"  # read at import
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    return context
