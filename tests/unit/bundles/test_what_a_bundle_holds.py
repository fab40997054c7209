"""A column that a migration adds comes back from a bundle, or is named here as one that does not."""

import pytest

from stemma.bundles.records import (
    BundledAsset,
    BundledChunk,
    BundledDocument,
    BundledFigure,
    BundledRun,
    BundledSource,
    BundledStage,
    BundledWorkspace,
)
from stemma.store.rows import ROWS

LEFT_OUT = {
    "documents": {"publication_id", "workspace_id"},  # given anew
    "chunks": {"publication_id", "content_tsv"},  # given anew; derived
    "document_assets": {"publication_id"},
    "stage_state": {"source_id"},  # its document's
    "run_settings": set(),
    "figures": set(),
    "workspaces": {"workspace_id", "cloud_id", "has_unkeyed_imported_threads", "updated_at"},
    "sources": {
        "workspace_id", "folder_id", "partition_key",  # follow from the path
        "seen_size", "seen_mtime_ns", "seen_inode", "seen_device", "last_seen_scan", "first_seen_scan", "rename_hash",  # of this disk
        "hashed_mtime_ns", "hashed_inode", "hashed_device", "presence", "missing_since", "missing_scans",
        "deletion_intent", "deletion_step", "wanted_stage", "wished_at", "wished_version", "last_publication_id",  # of what was under way
        "stage", "error_code", "error_message", "failed_version", "n_failures", "retry_at",
    },
}  # fmt: skip
RECORDS = {
    "documents": BundledDocument, "chunks": BundledChunk, "document_assets": BundledAsset, "stage_state": BundledStage,
    "run_settings": BundledRun, "figures": BundledFigure, "workspaces": BundledWorkspace, "sources": BundledSource,
}  # fmt: skip


@pytest.mark.parametrize("table", RECORDS)
def test_every_column_is_in_the_bundle_or_left_out_on_purpose(table):
    assert ROWS[table].model_fields.keys() - RECORDS[table].model_fields.keys() == LEFT_OUT[table]
