"""Pruning: which files that vanished leave the corpus by themselves, and which wait for an operator's word.

Files that are missing stay searchable until they are pruned. A disk that is away looks like files that were removed, so what is
missing in bulk is held back: a whole workspace or first folder, or more than PRUNE_MAX_SHARE and PRUNE_MIN_COUNT of a workspace.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import RequestError
from stemma.failpoints import reach
from stemma.library.deletion import delete_sources, mark_deleting
from stemma.library.looks import request_look
from stemma.settings import Settings
from stemma.store.postgres import Connection, Pool, explained


class UnknownWorkspace(RequestError):
    """No workspace has this key."""

    code, remedy = "unknown_workspace", "`stemma documents` lists every document with its workspace."


@dataclass(frozen=True)
class Loss:
    """What is missing below one first folder of the library, which is a workspace; files at its root belong to the workspace `default`."""

    workspace: str
    """Key."""
    folder: str
    """The first folder; "" for the files at the root."""
    n_files: int
    """Known files, the missing ones included."""
    n_missing: int
    n_due: int
    """Missing in two complete walks PRUNE_GRACE_S apart."""
    held: str | None
    """Why none of them leaves by itself, a full sentence; None when they do once they are due."""


@dataclass(frozen=True)
class Pruned:
    """What was pruned, and what is missing and was not."""

    losses: tuple[Loss, ...]
    """Every first folder that misses a file, as found before anything was marked."""
    marked: tuple[UUID, ...]
    """Sources that are now marked for deletion, ascending."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What is held back and why, a sentence each."""
        return tuple(loss.held for loss in self.losses if loss.held)


@dataclass(frozen=True)
class _Folder:
    workspace: str
    folder: str
    n_files: int
    n_missing: int
    n_due: int
    emptied: bool


def losses(connection: Connection, settings: Settings, *, now: datetime) -> tuple[Loss, ...]:
    """Every first folder that misses a file, as the last complete walk left it, by workspace."""
    with connection.cursor(row_factory=class_row(_Folder)) as cursor:
        folders = cursor.execute(load_queries("library")["losses"], {"missing_before": _missing_before(settings, now)}).fetchall()
    return tuple(
        Loss(
            folder.workspace, folder.folder, folder.n_files, folder.n_missing, folder.n_due,
            held=_reason(folder, [beside for beside in folders if beside.workspace == folder.workspace], settings),
        )
        for folder in folders if folder.n_missing
    )  # fmt: skip


def prune(
    connection: Connection,
    settings: Settings,
    *,
    confirm: bool = False,
    workspaces: Collection[str] | None = None,
    dry_run: bool = False,
    now: datetime,
) -> Pruned:
    """Mark for deletion what is missing and due, except where it is held back.

    Args:
        confirm: the files are gone indeed: mark everything that is missing, held back or not, due or not.
        workspaces: only of the workspaces with these keys; None: of all.
        dry_run: mark nothing; `marked` has what would be.
    Raises:
        UnknownWorkspace: a key belongs to none.
    """
    if workspaces is not None:
        known = {key for (key,) in connection.execute("SELECT key FROM workspaces WHERE key = ANY(%s)", [list(workspaces)])}
        if unknown := sorted(set(workspaces) - known):
            raise UnknownWorkspace(f"There is no workspace {unknown[0]!r}")
    found = tuple(loss for loss in losses(connection, settings, now=now) if workspaces is None or loss.workspace in workspaces)
    parameters = {
        "folders": [loss.folder for loss in found if confirm or not loss.held],
        "even_early": confirm,
        "missing_before": _missing_before(settings, now),
    }
    due = [source_id for (source_id,) in connection.execute(load_queries("library")["missing_sources"], parameters)]
    reach("prune.before_marking")
    marked = due if dry_run else mark_deleting(connection, due, "vanished", now=now)
    return Pruned(found, tuple(marked))


def prune_and_delete(
    pool: Pool,
    settings: Settings,
    remove_sparse: Callable[[list[int]], None],
    *,
    confirm: bool = False,
    workspaces: Collection[str] | None = None,
    dry_run: bool = False,
    now: datetime,
) -> Pruned:
    """`prune`, and the deletions that follow from it carried out; the library is looked at next, since what is said of it has changed.

    Raises as `prune` and `delete_sources`.
    """
    with explained(), pool.connection() as connection:
        found = prune(connection, settings, confirm=confirm, workspaces=workspaces, dry_run=dry_run, now=now)
        if found.marked and not dry_run:
            request_look(connection, now=now)
    if not dry_run:
        delete_sources(pool, found.marked, remove_sparse, library=settings.library, now=now)
    return found


def _missing_before(settings: Settings, now: datetime) -> datetime:
    return now - timedelta(seconds=settings.prune_grace_s)


def _reason(folder: _Folder, of_workspace: list[_Folder], settings: Settings) -> str | None:
    n_files, n_missing = (sum(getattr(beside, count) for beside in of_workspace) for count in ("n_files", "n_missing"))
    if folder.emptied:
        which = "The only file" if folder.n_files == 1 else f"Each of the {folder.n_files} files"
        where = f"of the folder {folder.folder}" if folder.folder else "at the root of the library"
        why = f"{which} {where} is missing, as when a disk is away"
    elif n_missing > settings.prune_min_count and n_missing > settings.prune_max_share * n_files:
        why = f"{n_missing} of {n_files} files of the workspace {folder.workspace} are missing, more than {settings.prune_max_share:.0%}"
    else:
        return None
    return f"{why}: nothing is removed unless `stemma prune --confirm` says so."
