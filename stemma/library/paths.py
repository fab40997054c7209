"""Names: how a path on disk becomes a `source_path`, a Dagster partition key, a workspace and a chain of folders, and back.

A `source_path` is text that PostgreSQL, JSON and URLs can carry: POSIX, relative to the library, NFC. A disk name that is valid
UTF-8 reads as its NFC spelling. What text cannot carry is written `%XX`, one per byte from 80 to FF; a literal `%` is written
`%25`, but only where it would otherwise read as one of these marks. `%~` begins the hash of a path that was cut.
"""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath

from stemma.errors import PathTooLong

MAX_SOURCE_PATH_BYTES = 2_000
MAX_PARTITION_KEY_BYTES = 2_400
MAX_FOLDER_DEPTH = 8
MAX_NAME_KEY_BYTES = 1_000  # part of an index, whose rows hold 2,704 bytes
DEFAULT_WORKSPACE = "default"

_NEEDS_ESCAPE = re.compile(rb"%(?=25|~|[89A-F][0-9A-F])")
_MARK = re.compile(rb"%(25|[89A-F][0-9A-F])")
_FOREIGN_BYTE = re.compile("[\udc80-\udcff]")
_KEY_NEEDS_ESCAPE = re.compile(r"%(?=[01][0-9A-F]|25|2E|40)")
_KEY_FORBIDDEN = re.compile(r"[\x00-\x1f]")
_KEY_MARK = re.compile(r"%([01][0-9A-F]|25|2E|40)")

_SURELY_FITS = MAX_SOURCE_PATH_BYTES // 4  # characters: no character needs more than four bytes, in either form
_PREFIX_BYTES = 400  # of a cut path: enough to recognise it, short enough to list


def source_names(names: Iterable[bytes]) -> list[str]:
    """The names of one folder's entries as components of a source_path, in the order given, all different.

    Two spellings of one NFC name: the NFC spelling keeps it, else the smallest by bytes; the others are escaped byte by byte.
    The outcome depends on the set of names alone.
    """
    spelled = list(names)
    plain = [source_name(name) for name in spelled]
    contested = {name for name, count in Counter(plain).items() if count > 1} if len(set(plain)) < len(plain) else set[str]()
    keeper = {name: _keeper(name, [disk for disk, other in zip(spelled, plain, strict=True) if other == name]) for name in contested}
    return [name if name not in contested or keeper[name] == disk else _escaped(disk) for disk, name in zip(spelled, plain, strict=True)]


def source_name(name: bytes) -> str:
    """One disk name as text: its NFC spelling if it is UTF-8, else with its foreign bytes escaped."""
    unambiguous = _NEEDS_ESCAPE.sub(b"%25", name) if b"%" in name else name
    try:
        text = unambiguous.decode("utf-8")
    except UnicodeDecodeError:
        # surrogateescape turns a foreign byte b into the lone surrogate DC00 + b
        text = _FOREIGN_BYTE.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", unambiguous.decode("utf-8", "surrogateescape"))
        return text if unicodedata.is_normalized("NFC", text) else _escaped(name)
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def disk_name(name: str) -> bytes:
    """The bytes that a component of a source_path stands for: what was escaped exactly, the rest in its NFC spelling."""
    return _MARK.sub(lambda mark: bytes([int(mark[1], 16)]), name.encode())


def _escaped(name: bytes) -> str:
    return "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in _NEEDS_ESCAPE.sub(b"%25", name))


def _keeper(name: str, spellings: list[bytes]) -> bytes:
    return min(spellings, key=lambda spelling: (spelling != disk_name(name), spelling))


def partition_key(source_path: str) -> str:
    """The key of a file's partition: its source_path, percent-encoded only where Dagster forbids a character.

    Encoded are `...`, control characters, the `@` at the beginning that marks what is no file, the empty path, and a `%` that
    would read as one of these.
    """
    if source_path in {"", "%"}:
        return "%25" if source_path else "%"
    key = _KEY_NEEDS_ESCAPE.sub("%25", source_path)
    key = _KEY_FORBIDDEN.sub(lambda control: f"%{ord(control[0]):02X}", key).replace("...", "..%2E")
    return "%40" + key[1:] if key.startswith("@") else key


def source_path_of(key: str) -> str:
    """The source_path of a file's partition. Raises ValueError for the key of what is no file (`@note/…`)."""
    if key.startswith("@"):
        raise ValueError(f"{key} is the partition of no file")
    return "" if key == "%" else _KEY_MARK.sub(lambda mark: chr(int(mark[1], 16)), key)


def fitted(source_path: str, disk_path: bytes) -> tuple[str, PathTooLong | None]:
    """The path under which a file is listed: its own, or, when an index cannot hold it, its beginning and a hash of the disk path."""
    if len(source_path) <= _SURELY_FITS or (
        len(source_path.encode()) <= MAX_SOURCE_PATH_BYTES and len(partition_key(source_path).encode()) <= MAX_PARTITION_KEY_BYTES
    ):
        return source_path, None
    beginning = source_path.encode()[:_PREFIX_BYTES].decode("utf-8", "ignore").rstrip("/%")
    listed = f"{beginning}%~{sha256(disk_path).hexdigest()[:32]}"
    return listed, PathTooLong(listed, f"The path is {len(disk_path):,} bytes long, over {MAX_SOURCE_PATH_BYTES:,}")


def workspace_key(source_path: str) -> str:
    """The first folder, or `default` for a file at the root."""
    first, slash, _ = source_path.partition("/")
    return first if slash else DEFAULT_WORKSPACE


def folders_of(source_path: str) -> list[str]:
    """Every folder above the file, from the top: `a/b/c.txt` -> `["a", "a/b"]`."""
    parts = source_path.split("/")[:-1]
    return [
        "/".join(parts[: depth + 1]) for depth in range(len(parts)) if parts[depth]
    ]  # of `mail.eml//a/b.txt`: `mail.eml`, `mail.eml//a`


def contained_path(container_path: str, member_path: str) -> str:
    """The path of what lies in a mail or archive. No file has it: a path on disk has no empty component."""
    return f"{container_path}//{member_path}"


def absolute_source(library: Path, disk_path: bytes, source_path: str) -> str:
    """Where a file lies, or a document within it, on this machine: provenance, never identity."""
    file = os.fsencode(library / os.fsdecode(disk_path)).decode("utf-8", "backslashreplace")
    return "//".join((file, *member_chain(source_path)))


def member_chain(source_path: str) -> tuple[str, ...]:
    """How a contained document is reached from its file, container by container; empty for a file."""
    return tuple(source_path.split("//")[1:])


def file_type(source_path: str) -> str:
    """The extension in lower case without its dot; "" if there is none."""
    return PurePosixPath(source_path).suffix[1:].lower()


def document_id(source_path: str, content_hash: str) -> str:
    """doc_id: 16 hex digits that differ for another path and for other bytes."""
    return sha256(f"{source_path}:{content_hash}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class FolderName:
    """One level of the folder tree under a workspace."""

    name: str
    """As shown: NFC."""
    name_key: str
    """Case-folded: unique among the folders beside it."""
    disk_name: str
    """As spelled on disk; bytes that are not UTF-8 are escaped."""


def folder_names(source_path: str, disk_path: bytes) -> tuple[FolderName, ...]:
    """The chain of folders between the workspace's own and the file; levels past the eighth are joined into the eighth."""
    names, spellings = source_path.split("/")[1:-1], disk_path.split(b"/")[1:-1]
    chain = [_folder_name(name, [spelling]) for name, spelling in zip(names, spellings, strict=True)]
    if len(chain) <= MAX_FOLDER_DEPTH:
        return tuple(chain)
    last = MAX_FOLDER_DEPTH - 1
    return (*chain[:last], _folder_name(" / ".join(names[last:]), spellings[last:]))


def _folder_name(name: str, spellings: list[bytes]) -> FolderName:
    key = unicodedata.normalize("NFC", name).casefold()
    if len(key.encode()) > MAX_NAME_KEY_BYTES:
        key = f"{key[: MAX_NAME_KEY_BYTES // 8]}%~{sha256(key.encode()).hexdigest()}"
    return FolderName(name, key, " / ".join(_spelling(spelling) for spelling in spellings))


def _spelling(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return source_name(name)
