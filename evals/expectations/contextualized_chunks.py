"""What is expected of contextualized chunks: the string that is embedded and indexed is the context, a blank line and the content."""

# great_expectations re-exports its expectations without saying so.
# pyright: reportPrivateImportUsage=false

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

MOST_CONTEXT_CHARS = 10_000


def suite() -> "list[Expectation]":
    """Of CHUNK_FACTS."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnValuesToBeInSet(
            column="is_composed", value_set=[True], description="The string for search is the context, a blank line and the content."
        ),
        gxe.ExpectColumnValuesToBeBetween(
            column="context_chars", min_value=1, max_value=MOST_CONTEXT_CHARS,
            description=f"A context is not blank and has at most {MOST_CONTEXT_CHARS:,} characters.",
        ),
    ]  # fmt: skip
