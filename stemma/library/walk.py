"""The walk: every entry of the library in one fixed order, at the price of a stat per file and an open of none."""

import errno
import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from stemma.errors import Unavailable
from stemma.library.files import FileStat
from stemma.library.paths import source_name, source_names

EXPORTS_FOLDER = "stemma-exports"

SkipReason = Literal[
    "reserved", "own_files", "hidden", "leftover", "link_inside", "link_outside", "link_to_folder", "link_broken", "special_file"
]
"""Why an entry is no document: the exports folder; a folder in which Stemma itself writes; a leading dot; litter of an editor or an operating system; a link to a file that
has a path of its own in the library, or lies outside, or to a folder, or to nothing; a pipe, socket or device."""

_LEFTOVER_NAMES = frozenset(
    ("thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "__macosx", "$recycle.bin", "system volume information", "lost+found")
)
_LEFTOVER_BEGINNINGS = ("~$", ".~lock.", ".ds_store", "._", ".#")
_LEFTOVER_ENDINGS = ("~", ".swp", ".swo", ".swx", ".tmp", ".temp", ".part", ".partial", ".crdownload", ".download")
_VANISHED = frozenset((errno.ENOENT, errno.ENOTDIR))


class LibraryUnavailable(Unavailable):
    """The library's folder is absent or cannot be listed."""

    code, remedy = "library_unavailable", "Check STEMMA_LIBRARY and that its disk is mounted; nothing is removed meanwhile."


class Found(NamedTuple):
    """A regular file."""

    disk_path: bytes
    """Relative to the library, as the file system spells it."""
    source_path: str
    stat: FileStat


class Skipped(NamedTuple):
    """An entry that is no document; if a folder, then with all it holds."""

    disk_path: bytes
    source_path: str
    reason: SkipReason


class Entered(NamedTuple):
    """A folder; what lies in it comes next."""

    disk_path: bytes
    source_path: str


class Unlistable(NamedTuple):
    """A folder whose entries, or their stats, could not be had: what lies below it is unknown, not missing."""

    disk_path: bytes
    """Empty for the library itself."""
    source_path: str
    reason: Literal["permission_denied", "path_too_long", "io_error"]


Entry = Found | Skipped | Entered | Unlistable


@dataclass(frozen=True, slots=True)
class _Folder:
    disk_path: bytes
    source_path: str
    entries: Iterator[tuple[os.DirEntry[bytes], str]]
    """By the bytes of their names, with their names as text."""


def walk(library: Path, *, after: bytes | None = None, own_folders: Iterable[Path] = ()) -> Iterator[Entry]:
    """Every entry below the library, folders before their contents, siblings by the bytes of their names.

    Links are never followed, so the walk ends and stays inside; what vanishes meanwhile is left out.

    Args:
        own_folders: where Stemma keeps what it makes: skipped under whatever path they are met, or each look would find new files.
        after: `disk_path` of the last Found, Skipped or Entered that an earlier walk gave; this one goes on behind it.
    Raises:
        LibraryUnavailable: the library itself cannot be listed.
    """
    root = os.fsencode(library.resolve())
    try:
        pending = [_Folder(b"", "", _entries(root))]
    except OSError as error:
        raise LibraryUnavailable(f"The library {library} cannot be listed: {error.strerror}") from error
    own = _identities(own_folders)
    cursor = _Cursor(after)
    while pending:
        folder = pending[-1]
        entry, name = next(folder.entries, (None, ""))
        if entry is None:
            pending.pop()
            cursor.passed()
            continue
        position = cursor.position(entry.name, depth=len(pending))
        if position == "before":
            continue
        disk_path, source_path = (
            (b"%b/%b" % (folder.disk_path, entry.name), f"{folder.source_path}/{name}") if folder.disk_path else (entry.name, name)
        )
        try:
            found = _classified(root, entry, disk_path, source_path, own)
        except OSError as error:
            if error.errno not in _VANISHED:
                pending.pop()
                yield Unlistable(folder.disk_path, folder.source_path, _reason(error))
            continue
        if isinstance(found, Entered):
            try:
                pending.append(_Folder(disk_path, source_path, _entries(entry.path)))
            except OSError as error:
                if error.errno not in _VANISHED:
                    yield Unlistable(disk_path, source_path, _reason(error))
                continue
        if found and position == "behind":
            yield found


class _Cursor:
    """Where an earlier walk ended: nothing before it is met again, and of the folders above it only what comes behind."""

    def __init__(self, after: bytes | None) -> None:
        self._names = after.split(b"/") if after else []

    def position(self, name: bytes, *, depth: int) -> Literal["before", "on", "behind"]:
        """Of an entry in the folder that is `depth` levels down, counted from 1; the folders above it are on the cursor or behind."""
        if not self._names:
            return "behind"
        wanted = self._names[depth - 1]
        if name < wanted:
            return "before"
        if name > wanted or depth == len(self._names):
            self.passed()
        return "on" if name == wanted else "behind"

    def passed(self) -> None:
        """Everything from here on comes behind."""
        self._names = []


def is_reserved(name: bytes) -> bool:
    """Whether an entry of this name at the root is the exports folder, in whatever case."""
    text = unicodedata.normalize("NFC", name.decode("utf-8", "replace"))
    return text.casefold() == EXPORTS_FOLDER


def _entries(path: bytes) -> Iterator[tuple[os.DirEntry[bytes], str]]:
    with os.scandir(path) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    # Litter must not take a name from a document, so it is named by itself.
    documents = [entry for entry in entries if skipped_by_name(entry.name, at_root=False) is None]
    names = dict(zip((entry.name for entry in documents), source_names(entry.name for entry in documents), strict=True))
    return iter([(entry, names.get(entry.name) or source_name(entry.name)) for entry in entries])


def _identities(folders: Iterable[Path]) -> frozenset[tuple[int, int]]:
    """Those of the folders that are there."""
    found: set[tuple[int, int]] = set()
    for folder in folders:
        with suppress(OSError):
            found.add(_identity(folder.stat()))
    return frozenset(found)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _classified(
    root: bytes, entry: os.DirEntry[bytes], disk_path: bytes, source_path: str, own: frozenset[tuple[int, int]]
) -> Entry | None:
    if reason := skipped_by_name(entry.name, at_root=b"/" not in disk_path):
        return Skipped(disk_path, source_path, reason)
    if entry.is_symlink():
        return Skipped(disk_path, source_path, _link_reason(root, entry.path))
    if entry.is_dir(follow_symlinks=False):
        is_own = bool(own) and _identity(entry.stat(follow_symlinks=False)) in own
        return Skipped(disk_path, source_path, "own_files") if is_own else Entered(disk_path, source_path)
    result = entry.stat(follow_symlinks=False)
    if stat.S_ISREG(result.st_mode):
        return Found(disk_path, source_path, FileStat.of(result))
    if stat.S_ISDIR(result.st_mode) or stat.S_ISLNK(result.st_mode):
        return None  # replaced since it was listed: the next walk sees what it is
    return Skipped(disk_path, source_path, "special_file")


def skipped_by_name(name: bytes, *, at_root: bool = False) -> SkipReason | None:
    """Why an entry is no document whatever it holds; None: its name says nothing against it."""
    text = name.decode("utf-8", "replace").lower()
    if text.startswith(_LEFTOVER_BEGINNINGS) or text.endswith(_LEFTOVER_ENDINGS) or text in _LEFTOVER_NAMES:
        return "leftover"
    if text.startswith("#") and text.endswith("#"):
        return "leftover"  # Emacs' autosave
    if text.startswith("."):
        return "hidden"
    return "reserved" if at_root and is_reserved(name) else None


def _link_reason(root: bytes, path: bytes) -> SkipReason:
    try:
        target = os.path.realpath(path, strict=True)
        mode = Path(os.fsdecode(target)).stat().st_mode
    except OSError:  # to nothing, in a circle, or where we may not look: in every case there is nothing to read
        return "link_broken"
    if stat.S_ISDIR(mode):
        return "link_to_folder"
    return "link_inside" if target.startswith(root.rstrip(b"/") + b"/") else "link_outside"


def _reason(error: OSError) -> Literal["permission_denied", "path_too_long", "io_error"]:
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "permission_denied"
    return "path_too_long" if error.errno == errno.ENAMETOOLONG else "io_error"
