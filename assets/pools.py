"""Concurrency pools: what this machine does once at a time. A run waits in the queue until every pool of its assets has room for it.

Their limits are those of the instance (`dagster.yaml`, *Deployment > Concurrency* in the UI): one each. Other work, such as maintenance, is in
no pool and never waits for an ingest.
"""

PARSER_POOL = "parser"
EMBEDDER_POOL = "embedder"
KEYWORD_WRITER_POOL = "keyword_writer"
