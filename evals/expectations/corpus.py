"""What is expected of the corpus: every document is live under the name that its bytes give it, with all its chunks, and nothing is orphaned."""

# great_expectations re-exports its expectations without saying so.
# pyright: reportPrivateImportUsage=false

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def suite() -> "list[Expectation]":
    """Of PUBLICATION_FACTS."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnValuesToBeInSet(column="state", value_set=["live"], description="Its publication is live."),
        gxe.ExpectColumnPairValuesToBeEqual(column_A="n_stored", column_B="n_chunks", description="It has as many chunks as it says."),
        gxe.ExpectColumnValuesToBeInSet(
            column="named_by_its_bytes", value_set=[True], description="Its doc_id is made of its path and its bytes."
        ),
        gxe.ExpectColumnValuesToBeUnique(column="doc_id", description="No two documents share a doc_id."),
    ]


def no_orphans() -> "list[Expectation]":
    """Of ORPHANS: every row is one too many."""
    import great_expectations.expectations as gxe

    return [gxe.ExpectColumnValuesToBeNull(column="orphan", description="Nothing is live without a document, or ready without a live one.")]
