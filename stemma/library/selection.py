"""Selections: which documents someone means who wants them deleted, and what became of each."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import FileNotRemoved
from stemma.library.deletion import delete_sources, mark_deleting
from stemma.store.postgres import Connection, Pool, explained


@dataclass(frozen=True)
class Selection:
    """Documents by what names them; the parts add up, and an empty selection is nothing, never everything."""

    documents: tuple[str, ...] = ()
    """source_ids, or doc_ids of live versions."""
    paths: tuple[str, ...] = ()
    """Source paths of files."""
    folders: tuple[str, ...] = ()
    """Folders relative to the library; each stands for its subtree. The library itself is none."""
    workspaces: tuple[str, ...] = ()
    """Keys."""


@dataclass(frozen=True)
class Named:
    """A source of a selection."""

    source_id: UUID
    source_path: str


@dataclass(frozen=True)
class Selected:
    """What a selection means in this corpus."""

    sources: tuple[Named, ...]
    """By path, each once."""
    not_found: tuple[str, ...]
    """Names that stand for nothing that is left to delete, in the order in which they were asked for."""


@dataclass(frozen=True)
class DeletionReport:
    """What became of everything that was selected, by path."""

    deleted: tuple[Named, ...] = ()
    """Gone, and listed no more."""
    excluded: tuple[Named, ...] = ()
    """Out of the corpus; the file stays where it is."""
    changed: tuple[Named, ...] = ()
    """Those of `deleted` whose file had been changed and stays: the next walk finds a new document."""
    failed: tuple[tuple[Named, FileNotRemoved], ...] = ()
    """Out of every search, but the file could not be removed."""
    pending: tuple[Named, ...] = ()
    """Out of every search; another process is carrying the deletion out."""
    not_found: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Match:
    name: str
    source_id: UUID
    source_path: str
    deleting: bool
    excluded: bool


def select_sources(connection: Connection, selection: Selection, *, remove_file: bool) -> Selected:
    """The sources that a selection means; one that was deleted before with its file kept counts only if the file is to go now."""
    folders = {name: unicodedata.normalize("NFC", name).strip("/") for name in selection.folders}
    folders = {name: folder for name, folder in folders.items() if folder}
    ids = {name: source_id for name in selection.documents if (source_id := _uuid(name))}
    parameters = {
        "names_of_ids": list(ids), "source_ids": list(ids.values()), "doc_ids": [name for name in selection.documents if name not in ids],
        "paths": list(selection.paths), "names_of_folders": list(folders), "folders": list(folders.values()),
        "workspaces": list(selection.workspaces),
    }  # fmt: skip
    with connection.cursor(row_factory=class_row(_Match)) as cursor:
        matches = cursor.execute(load_queries("library")["select_sources"], parameters).fetchall()
    matches = [match for match in matches if match.deleting or remove_file or not match.excluded]
    found = {match.name for match in matches}
    asked = dict.fromkeys((*selection.documents, *selection.paths, *selection.folders, *selection.workspaces))
    sources = dict.fromkeys(Named(match.source_id, match.source_path) for match in matches)
    return Selected(tuple(sources), tuple(name for name in asked if name not in found))


def delete_selected(
    pool: Pool,
    selected: Selected,
    remove_sparse: Callable[[list[int]], None],
    *,
    library: Path,
    intent: Literal["keep_file", "remove_file"],
    now: datetime | None = None,
) -> DeletionReport:
    """Mark and delete the sources with all that lies in them; what is being deleted already is carried on with.

    Raises as `delete_sources`: everything selected is out of every search by then, and the same call or the reconciler ends it.
    """
    by_id = {source.source_id: source for source in selected.sources}
    with explained(), pool.connection() as connection:
        mark_deleting(connection, list(by_id), intent, now=now or datetime.now(UTC))
    outcome = delete_sources(pool, list(by_id), remove_sparse, library=library, now=now)
    settled = {*outcome.deleted, *outcome.excluded, *outcome.failed}
    named = {
        name: tuple(by_id[source_id] for source_id in by_id if source_id in source_ids)
        for name, source_ids in (
            ("deleted", set(outcome.deleted)), ("excluded", set(outcome.excluded)), ("changed", set(outcome.changed)),
            ("pending", by_id.keys() - settled),
        )
    }  # fmt: skip
    failed = tuple((source, outcome.failed[source.source_id]) for source in selected.sources if source.source_id in outcome.failed)
    return DeletionReport(**named, failed=failed, not_found=selected.not_found)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
