"""The partitions of the corpus: one per document, named by its path in the library."""

import dagster as dg

DOCUMENTS = "documents"

document_partitions = dg.DynamicPartitionsDefinition(name=DOCUMENTS)

OWNERS = ["team:corpus"]
"""Who answers for the assets; a team of the installation may be put in its place."""

BATCH_SIZE = 200
"""Partitions that a backfill started in the UI puts into one run."""

one_batch_per_run = dg.BackfillPolicy.multi_run(max_partitions_per_run=BATCH_SIZE)
