"""What is expected of documents: the text is whole, and what has words can be found."""

# great_expectations re-exports its expectations without saying so.
# pyright: reportPrivateImportUsage=false

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

MOST_FAILED = 0.1
"""Share of the library's documents that may have failed before it is worth a warning."""
LEAST_ENGLISH = 0.5
"""Share of the documents with words that should be in the language that the model and the keyword index know best."""


def suite() -> "list[Expectation]":
    """Of DOCUMENT_FACTS."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnPairValuesToBeEqual(column_A="n_read", column_B="n_chars", description="The text is as long as was recorded."),
        gxe.ExpectColumnValuesToBeInSet(column="is_searchable", value_set=[True], description="A text with visible characters has chunks."),
    ]


def drift(*, english_only: bool) -> "list[Expectation]":
    """Of DOCUMENT_FACTS with `is_english` (1 or 0; null without enough words), for the whole corpus.

    Args:
        english_only: whether the embedding model or the keyword index knows English alone.
    """
    import great_expectations.expectations as gxe

    if not english_only:
        return []
    says = f"At least {LEAST_ENGLISH:.0%} of the documents are in English, which is what the model and the keyword index know."
    return [gxe.ExpectColumnMeanToBeBetween(column="is_english", min_value=LEAST_ENGLISH, description=says)]


def failures() -> "list[Expectation]":
    """Of STATUSES with `is_failed` (1 or 0), for the whole library."""
    import great_expectations.expectations as gxe

    says = f"At most {MOST_FAILED:.0%} of the documents have failed."
    return [gxe.ExpectColumnMeanToBeBetween(column="is_failed", max_value=MOST_FAILED, description=says)]
