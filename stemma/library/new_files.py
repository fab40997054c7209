"""New files: what a path decides is worked out once, when a source comes into the catalog."""

from collections.abc import Sequence
from datetime import datetime

from sql import load_queries
from stemma.library.folders import folder_ids, workspace_ids
from stemma.library.paths import file_type, fitted, folder_names, partition_key, workspace_key
from stemma.library.walk import Found
from stemma.store.postgres import Connection


def insert_new(connection: Connection, files: Sequence[Found], scan_id: int, *, now: datetime) -> int:
    """Bring files into the catalog, their stats from the batch in `walked`; returns how many there are now.

    A path too long for an index is listed by its beginning and a hash, as failed.
    """
    if not files:
        return 0
    workspaces = workspace_ids(connection, (workspace_key(file.source_path) for file in files), now=now)
    in_workspace = [workspaces[workspace_key(file.source_path)] for file in files]
    chains = [(workspace, folder_names(file.source_path, file.disk_path)) for workspace, file in zip(in_workspace, files, strict=True)]
    listed = [fitted(file.source_path, file.disk_path) for file in files]
    row = connection.execute(
        load_queries("library")["insert_sources"],
        {
            "source_paths": [source_path for source_path, _ in listed],
            "partition_keys": [partition_key(source_path) for source_path, _ in listed],
            "workspace_ids": in_workspace,
            "folder_ids": folder_ids(connection, chains, now=now),
            "file_types": [file_type(file.source_path) for file in files],
            "error_codes": [error.code if error else None for _, error in listed],
            "error_messages": [error.message if error else None for _, error in listed],
            "scan_id": scan_id,
            "now": now,
        },
    ).fetchone()
    assert row is not None, "an aggregate returns a row"
    return row[0]
