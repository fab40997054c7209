"""Names that come from elsewhere: what a file or folder of an upload is called in the library."""

import re
import unicodedata
from pathlib import PurePosixPath

from stemma.errors import RequestError
from stemma.library.paths import MAX_FOLDER_DEPTH, MAX_SOURCE_PATH_BYTES, source_name
from stemma.library.walk import is_reserved, skipped_by_name

MAX_NAME_BYTES = 200  # file systems hold 255; a number may be put behind it

_RESERVED_NAMES = frozenset(("con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))))
"""Devices of Windows, which opens no file of such a name."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff<>:"|?*]')
"""Controls, marks that turn the direction of text, and what file systems refuse."""


class UnsafePath(RequestError):
    """The name or path of an upload leads out of its folder, or is nothing that a file can be called."""

    code, remedy = "unsafe_path", "Give a plain name, and a folder relative to the library."


class ReservedPath(RequestError):
    """The upload would lie in, or be called like, the folder in which bundles are kept."""

    code, remedy = "reserved_path", "Choose another folder or name than stemma-exports."


class LeftoverName(RequestError):
    """The name is that of litter which editors and operating systems leave; no walk would read it."""

    code, remedy = "leftover", "Nothing to do, unless it is a document: then give it another name."


class FolderTooDeep(RequestError):
    """The folder lies deeper than eight levels below its workspace."""

    code, remedy = "folder_too_deep", "Choose a folder further up."


class UploadPathTooLong(RequestError):
    """The path is over 2,000 bytes, more than an index key can hold."""

    code, remedy = "upload_path_too_long", "Shorten the names of the file or of its folders."


def upload_place(folder: str, path: str) -> tuple[list[str], str]:
    """The folders, as a source_path has them from the library down, and the name under which an upload is stored.

    Args:
        folder: relative to the library; "" is the library itself, whose files belong to the workspace `default`.
        path: a name, or, of a folder that is uploaded, a path below that folder.
    Raises:
        UnsafePath, ReservedPath, LeftoverName, FolderTooDeep, UploadPathTooLong.
    """
    *below, name = re.split(r"[/\\]", path)
    folders = [*map(_named, filter(None, folder.split("/"))), *(source_name(_safe(part).encode()) for part in below)]
    if skipped_by_name(name.encode()) == "leftover":
        raise LeftoverName(f"{name[:100]!r} is no document")
    name = _safe(name)
    if is_reserved((folders[0] if folders else name).encode()):
        raise ReservedPath(f"{'/'.join([*folders, name])[:200]!r} is reserved for bundles")
    if len(folders) - 1 > MAX_FOLDER_DEPTH:
        raise FolderTooDeep(f"{len(folders) - 1} levels")
    if len("/".join([*folders, name]).encode()) > MAX_SOURCE_PATH_BYTES - MAX_NAME_BYTES:
        raise UploadPathTooLong("the path is too long")
    return folders, name


def numbered(name: str, number: int) -> str:
    """Another name beside one that is taken: `a.txt` -> `a (2).txt`."""
    if number == 1:
        return name
    suffix = PurePosixPath(name).suffix
    return f"{name.removesuffix(suffix)} ({number}){suffix}"


def _named(part: str) -> str:
    """One component of a folder's path, which may exist and is not changed. Raises UnsafePath where no walk would enter it."""
    if part in (".", "..") or _CONTROL.search(part) or skipped_by_name(part.encode()):
        raise UnsafePath(f"{part[:100]!r} is no folder")
    return unicodedata.normalize("NFC", part)


def _safe(part: str) -> str:
    """One component without what no file should be called. Raises UnsafePath where nothing is left, or where it climbs."""
    if part in (".", ".."):
        raise UnsafePath(f"{part!r} is no name")
    safe = unicodedata.normalize("NFC", _FORBIDDEN.sub("", part)).strip().lstrip(".").rstrip(". ")
    if not safe or "/" in safe or "\\" in safe:
        raise UnsafePath(f"{part[:100]!r} is no name")
    if safe.partition(".")[0].lower() in _RESERVED_NAMES:
        safe = f"_{safe}"
    return _shortened(safe)


def _shortened(name: str) -> str:
    if len(name.encode()) <= MAX_NAME_BYTES:
        return name
    suffix = PurePosixPath(name).suffix
    suffix = suffix if len(suffix.encode()) <= 20 else ""
    stem = name.removesuffix(suffix).encode()[: MAX_NAME_BYTES - len(suffix.encode())].decode("utf-8", "ignore")
    return f"{stem.rstrip('. ')}{suffix}"
