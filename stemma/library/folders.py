"""Workspaces and folders: the tree that the paths of the sources span."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sql import load_queries
from stemma.library.paths import DEFAULT_WORKSPACE, MAX_FOLDER_DEPTH, FolderName
from stemma.store.postgres import Connection

_DEFAULT_NAME = "My Workspace"
_MAX_WORKSPACE_NAME = 200  # characters

FolderChain = tuple[int, tuple[FolderName, ...]]
"""A workspace_id and the folders from its top down to one; none of them for the workspace's own."""


def ensure_default_workspace(connection: Connection, *, now: datetime) -> None:
    """Make the workspace of files at the root, if there is none; two at once make it once."""
    workspace_ids(connection, [DEFAULT_WORKSPACE], now=now)


def workspace_ids(connection: Connection, keys: Iterable[str], *, now: datetime) -> dict[str, int]:
    """Key -> workspace_id; those that are missing are made, named after their key."""
    wanted = sorted(set(keys))
    names = [_DEFAULT_NAME if key == DEFAULT_WORKSPACE else key.strip()[:_MAX_WORKSPACE_NAME].strip() or "(blank)" for key in wanted]
    connection.execute(load_queries("library")["insert_workspaces"], {"keys": wanted, "names": names, "now": now})
    return dict(connection.execute("SELECT key, workspace_id FROM workspaces WHERE key = ANY(%s)", [wanted]).fetchall())


def folder_ids(connection: Connection, chains: Sequence[FolderChain], *, now: datetime) -> list[int | None]:
    """The folder_id at the end of each chain, None for an empty one; those that are missing are made, level by level."""
    known: dict[tuple[int, tuple[str, ...]], int] = {}
    for depth in range(1, MAX_FOLDER_DEPTH + 1):
        level = {(workspace, _keys(folders[:depth])): folders[depth - 1] for workspace, folders in chains if len(folders) >= depth}
        if not level:
            break
        asked = {
            "workspace_ids": [workspace for workspace, _ in level],
            "parent_ids": [known.get((workspace, keys[:-1])) for workspace, keys in level],
            "name_keys": [folder.name_key for folder in level.values()],
        }
        spelled = {"names": [folder.name for folder in level.values()], "disk_names": [folder.disk_name for folder in level.values()]}
        connection.execute(load_queries("library")["insert_folders"], asked | spelled | {"depth": depth, "now": now})
        found = connection.execute(load_queries("library")["folder_ids"], asked).fetchall()
        known |= {place: folder_id for place, (folder_id,) in zip(level, found, strict=True)}
    return [known[workspace, _keys(folders)] if folders else None for workspace, folders in chains]


def _keys(folders: tuple[FolderName, ...]) -> tuple[str, ...]:
    return tuple(folder.name_key for folder in folders)
