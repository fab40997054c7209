"""Definitions: everything that Dagster is to know, assembled and nothing else."""

import dagster as dg

from assets.audit import audit_corpus
from assets.backup_bundles import backup_bundles
from assets.bm25_index import bm25_index
from assets.chunks import chunks
from assets.contextualized_chunks import contextualized_chunks
from assets.corpus import corpus
from assets.documents import documents
from assets.embeddings import embeddings
from assets.freshness import freshness_checks
from assets.settings import stage_settings
from assets.source_files import source_files
from pipelines.audit import audit
from pipelines.backup import back_up
from pipelines.garbage import garbage
from pipelines.jobs import ingest_batch, ingest_documents
from pipelines.maintenance import check_every_file, prune_event_log
from pipelines.prune import prune
from pipelines.reembed import indexes, record_made_outside_runs, reembed
from pipelines.schedules import nightly_backup, nightly_event_log_retention, nightly_full_check, nightly_prune, weekly_audit
from pipelines.sensors import reconcile, run_cancelled, run_failed
from resources.batch import DocumentBatch
from resources.corpus import CorpusResource

defs = dg.Definitions(
    assets=[source_files, *stage_settings, documents, chunks, contextualized_chunks, embeddings, bm25_index, corpus, backup_bundles],
    asset_checks=[audit_corpus, *freshness_checks],
    jobs=[ingest_batch, ingest_documents, audit, back_up, check_every_file, prune, prune_event_log, reembed, record_made_outside_runs],
    schedules=[nightly_backup, nightly_full_check, nightly_prune, weekly_audit, nightly_event_log_retention],
    sensors=[reconcile, run_failed, run_cancelled, indexes, garbage],
    resources={"batch": DocumentBatch.configure_at_launch(), "corpus": CorpusResource()},
    executor=dg.in_process_executor,
)
