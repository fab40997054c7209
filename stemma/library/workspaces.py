"""Workspaces: first folders of the library under a name that a person gave."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import RequestError
from stemma.library.placing import make_folder
from stemma.library.pruning import UnknownWorkspace
from stemma.library.upload_names import upload_place
from stemma.store.postgres import Connection


class WorkspaceExists(RequestError):
    """The library has a first folder of this name already."""

    code, remedy = "workspace_exists", "Use it, or choose another name."


class LinkedRootsNotBuilt(RequestError):
    """A workspace takes its files from the library alone."""

    code, remedy = "linked_roots_not_built", "Put the files, or a mount of their folder, below the library."


@dataclass(frozen=True)
class Root:
    """Where files of a workspace lie."""

    root_id: int
    kind: Literal["managed", "linked"]
    name: str
    disk_path: str
    """Of a managed root, relative to the library; empty for the library's own files."""
    state: str


@dataclass(frozen=True)
class Workspace:
    """A workspace with what it holds."""

    key: str
    """Its first folder; `default` is that of files at the root."""
    name: str
    created_at: datetime
    updated_at: datetime
    n_sources: int
    n_documents: int


def list_workspaces(connection: Connection) -> list[Workspace]:
    """Every workspace by name, those without documents too."""
    return _workspaces(connection, None)


def create_workspace(connection: Connection, name: str, *, library: Path, now: datetime) -> Workspace:
    """A workspace under this name, with a folder of the library called after it.

    Raises WorkspaceExists, UnsafePath, ReservedPath, LibraryNotWritable.
    """
    _, key = upload_place("", name.replace("/", " ").replace("\\", " "))
    made = connection.execute(load_queries("files")["insert_workspace"], {"key": key, "name": name, "now": now}).fetchone()
    if made is None:
        raise WorkspaceExists(f"{key!r} is there already")
    make_folder(library, key)
    return _workspaces(connection, key)[0]


def rename_workspace(connection: Connection, key: str, name: str, *, now: datetime) -> Workspace:
    """The workspace under another name; its key and its folder stay. Raises UnknownWorkspace."""
    if connection.execute(load_queries("files")["rename_workspace"], {"key": key, "name": name, "now": now}).fetchone() is None:
        raise UnknownWorkspace(f"No workspace has the key {key!r}")
    return _workspaces(connection, key)[0]


def roots_of(connection: Connection, key: str) -> list[Root]:
    """Where the files of a workspace lie. Raises UnknownWorkspace."""
    with connection.cursor(row_factory=class_row(Root)) as cursor:
        found = cursor.execute(load_queries("files")["roots_of"], {"key": key}).fetchall()
    if not found:
        raise UnknownWorkspace(f"No workspace has the key {key!r}")
    return found


def _workspaces(connection: Connection, key: str | None) -> list[Workspace]:
    with connection.cursor(row_factory=class_row(Workspace)) as cursor:
        return cursor.execute(load_queries("files")["list_all_workspaces"], {"key": key}).fetchall()
