"""What is expected of the keyword index: as many entries as published chunks, by the record and by the engine's own count."""

# great_expectations re-exports its expectations without saying so.
# pyright: reportPrivateImportUsage=false

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation


def suite() -> "list[Expectation]":
    """Of ENTRY_FACTS."""
    import great_expectations.expectations as gxe

    return [
        gxe.ExpectColumnPairValuesToBeEqual(
            column_A="n_recorded", column_B="n_chunks", description="As many entries are recorded as chunks are published."
        ),
        gxe.ExpectColumnPairValuesToBeEqual(
            column_A="n_entries", column_B="n_chunks", description="The keyword index holds as many entries as chunks are published."
        ),
    ]
