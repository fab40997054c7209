"""What a run of ingestion imports and builds sooner or later: done once, in the process that runs are forked from."""

import dagster_postgres  # noqa: F401  # named in Dagster's configuration
import sentence_transformers  # noqa: F401  # imported at first use elsewhere

from evals.expectations.validation import expectations_context
from pipelines.definitions import defs

defs.get_repository_def()  # kept by it
expectations_context()
