"""What a run of ingestion imports and builds sooner or later: done once, in the process that runs are forked from."""

import dagster_postgres  # noqa: F401  # named in Dagster's configuration

from evals.expectations.validation import expectations_context
from pipelines.definitions import defs
from stemma.embedding.sentence_transformers_embedder import import_libraries

defs.get_repository_def()  # kept by it
import_libraries()
expectations_context()
