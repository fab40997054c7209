"""Definitions: everything that Dagster is to know, assembled and nothing else."""

import dagster as dg

from assets.bm25_index import bm25_index
from assets.chunks import chunks
from assets.contextualized_chunks import contextualized_chunks
from assets.corpus import corpus
from assets.documents import documents
from assets.embeddings import embeddings
from assets.settings import stage_settings
from assets.source_files import source_files
from pipelines.jobs import ingest_batch, ingest_documents
from pipelines.maintenance import check_every_file
from pipelines.prune import prune
from pipelines.reembed import indexes, record_made_outside_runs, reembed
from pipelines.schedules import nightly_full_check, nightly_prune
from pipelines.sensors import reconcile, run_cancelled, run_failed
from resources.batch import DocumentBatch
from resources.corpus import CorpusResource

defs = dg.Definitions(
    assets=[source_files, *stage_settings, documents, chunks, contextualized_chunks, embeddings, bm25_index, corpus],
    jobs=[ingest_batch, ingest_documents, check_every_file, prune, reembed, record_made_outside_runs],
    schedules=[nightly_full_check, nightly_prune],
    sensors=[reconcile, run_failed, run_cancelled, indexes],
    resources={"batch": DocumentBatch.configure_at_launch(), "corpus": CorpusResource()},
    executor=dg.in_process_executor,
)
