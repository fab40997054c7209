"""What is expected of embeddings: one sound vector per chunk in the index that searches read."""

# great_expectations re-exports its expectations without saying so.
# pyright: reportPrivateImportUsage=false

from typing import TYPE_CHECKING

from stemma.embedding.embedder import EmbeddingSpec

if TYPE_CHECKING:
    from great_expectations.expectations.expectation import Expectation

NORM_TOLERANCE = 1e-3


def suite(spec: EmbeddingSpec) -> "list[Expectation]":
    """Of VECTOR_FACTS. pgvector holds no NaN and no infinite number, so that a norm within bounds is a finite vector."""
    import great_expectations.expectations as gxe

    expected: list[Expectation] = [
        gxe.ExpectColumnValuesToNotBeNull(column="dimension", description="Every chunk has a vector."),
        gxe.ExpectCompoundColumnsToBeUnique(column_list=["partition_key", "chunk_index"], description="No chunk has two vectors."),
        gxe.ExpectColumnValuesToBeInSet(column="dimension", value_set=[spec.dimension], description=f"Vectors have {spec.dimension} numbers."),
    ]  # fmt: skip
    if spec.normalized:
        expected.append(
            gxe.ExpectColumnValuesToBeBetween(
                column="norm", min_value=1 - NORM_TOLERANCE, max_value=1 + NORM_TOLERANCE, description="Vectors are finite and of length 1."
            )
        )
    return expected
