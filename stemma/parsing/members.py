"""Contained documents: what a mail, a mailbox or an archive holds is listed when it is parsed, and taken out when it is wanted.

Both go through the container once, in its own order, and give every member the same path.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from stemma.errors import DocumentError, UnpacksTooLarge, error_codes
from stemma.parsing.cleaning import clean_line
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import Source
from stemma.parsing.member_names import MemberPaths

MAX_MEMBERS = 10_000
"""Of one container; those beyond are only counted."""

MAX_MEMBER_BYTES = 1_000_000_000
MAX_CONTENT_BYTES = 2_000_000_000
"""Of all members of one container, unpacked."""

_MAX_NAME = 200  # characters of a name that is shown

Pieces = Iterator[bytes]


@dataclass(frozen=True)
class Entry:
    """One member as its container's reader meets it."""

    names: tuple[str, ...]
    """From the outermost folder to its own name, as the container spells them."""
    pieces: Callable[[], Pieces]
    """Its bytes, read when asked for; raises DocumentError where they cannot be had."""
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """One member as the listing of its container says."""

    path: str
    """In the container, and unique there."""
    name: str
    """Its own name as a reader knows it."""
    media_type: str | None = None
    size: int | None = None
    sha256: str | None = None
    """Of its bytes; None when they cannot be had."""
    error_code: str | None = None
    error_detail: str | None = None
    """Why they cannot, a clause without full stop."""

    def error(self, source_path: str) -> DocumentError | None:
        """Why this member, known as `source_path`, cannot be taken out; None when it can."""
        if self.sha256 is not None:
            return None
        error = error_codes()[self.error_code or "corrupt"]
        assert issubclass(error, DocumentError)
        return error(source_path, self.error_detail or "it cannot be taken out")


class Listing:
    """The members of one container, hashed one by one as they are met."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._paths = MemberPaths()
        self._members: list[Member] = []
        self._n_bytes = 0
        self._n_left_out = 0

    def add(self, entry: Entry) -> Member | None:
        """List one member; None when there are too many."""
        if len(self._members) == MAX_MEMBERS:
            self._n_left_out += 1
            return None
        path, name = self._paths.of(entry.names), clean_line(entry.names[-1])[:_MAX_NAME]
        digest, size = sha256(), 0
        try:
            for piece in _bounded(entry, self._source, MAX_CONTENT_BYTES - self._n_bytes):
                digest.update(piece)
                size += len(piece)
        except DocumentError as error:
            member = Member(path, name, entry.media_type, error_code=error.code, error_detail=error.detail)
        else:
            member = Member(path, name, entry.media_type, size, digest.hexdigest())
        self._n_bytes += size
        self._members.append(member)
        return member

    @property
    def members(self) -> list[Member]:
        """Those listed so far, in the container's order."""
        return self._members

    @property
    def metadata(self) -> dict[str, Any]:
        """What the container's document says of its members."""
        left_out = [f"{self._n_left_out:,} members beyond the first {MAX_MEMBERS:,}"] if self._n_left_out else []
        return {"contained": [_described(member) for member in self._members], "unreadable_parts": left_out}


def contained_in(document: ParsedDocument) -> tuple[Member, ...]:
    """The members that a parsed container lists."""
    return tuple(Member(**fields) for fields in document.metadata.get("contained", ()))


def take_out(source: Source, entries: Iterable[Entry], targets: Mapping[str, Path]) -> dict[str, DocumentError | None]:
    """Write members (path -> file) out of their container; path -> None, or why not. A path that no member has is absent."""
    paths, taken = MemberPaths(), dict[str, DocumentError | None]()
    for n_before, entry in enumerate(entries):
        if n_before == MAX_MEMBERS or len(taken) == len(targets):
            break
        if (path := paths.of(entry.names)) not in targets:
            continue
        taken[path] = None
        try:
            with targets[path].open("wb") as target:
                for piece in _bounded(entry, source, MAX_MEMBER_BYTES):
                    target.write(piece)
        except DocumentError as error:
            taken[path] = error
    return taken


def _bounded(entry: Entry, source: Source, n_left: int) -> Pieces:
    n_bytes = 0
    for piece in entry.pieces():
        n_bytes += len(piece)
        if n_bytes > MAX_MEMBER_BYTES:
            raise UnpacksTooLarge(source.source_path, f"unpacked it has more than {MAX_MEMBER_BYTES:,} bytes")
        if n_bytes > n_left:
            raise UnpacksTooLarge(source.source_path, f"unpacked, it and those before it have more than {MAX_CONTENT_BYTES:,} bytes")
        yield piece


def _described(member: Member) -> dict[str, Any]:
    fields = {name: getattr(member, name) for name in Member.__slots__}
    return {name: value for name, value in fields.items() if value is not None}
