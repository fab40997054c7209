"""What is expected of chunks: exact, dense, not blank, within their limit; and lengths that search can use."""

# great_expectations re-exports its expectations without saying so.
# pyright: reportPrivateImportUsage=false

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

LEAST_MEDIAN_FILL = 0.025
MOST_SHORT, SHORT_TOKENS = 0.3, 10
MOST_BEYOND_WINDOW = 0.25


def suite() -> "list[Expectation]":
    """Of CHUNK_FACTS."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnValuesToBeInSet(
            column="is_exact", value_set=[True], description="The text between a chunk's offsets is its content."
        ),
        gxe.ExpectColumnPairValuesToBeEqual(
            column_A="chunk_index", column_B="position", description="Chunk indexes are dense, from 0."
        ),
        gxe.ExpectCompoundColumnsToBeUnique(column_list=["partition_key", "chunk_index"], description="A chunk index occurs once per document."),
        gxe.ExpectColumnValuesToBeInSet(column="is_blank", value_set=[False], description="No chunk is blank."),
        gxe.ExpectColumnPairValuesAToBeGreaterThanB(
            column_A="limit", column_B="measure", or_equal=True, ignore_row_if="either_value_is_missing",
            description="No chunk is longer than its strategy allows.",
        ),
    ]  # fmt: skip


def drift() -> "list[Expectation]":
    """Of CHUNK_FACTS with `fill` (measure / limit), `is_short` and `is_beyond_window` (1 or 0), for the whole corpus."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnMedianToBeBetween(
            column="fill", min_value=LEAST_MEDIAN_FILL, description=f"The median chunk fills at least {LEAST_MEDIAN_FILL:.1%} of its limit."
        ),
        gxe.ExpectColumnMeanToBeBetween(
            column="is_short", max_value=MOST_SHORT, description=f"At most {MOST_SHORT:.0%} of the chunks have fewer than {SHORT_TOKENS} tokens."
        ),
        gxe.ExpectColumnMeanToBeBetween(
            column="is_beyond_window", max_value=MOST_BEYOND_WINDOW,
            description=f"At most {MOST_BEYOND_WINDOW:.0%} of the chunks are longer than the embedding model reads at once.",
        ),
    ]  # fmt: skip
