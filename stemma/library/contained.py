"""Contained documents in the catalog: what a mail or an archive holds are sources of their own, which follow it wherever it goes.

A container's members are written down when its text was made, before that text is recorded: killed in between, it is made and
listed again. From then on they are claimed as files are; their bytes are taken out of the file that they lie in.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import DocumentError, NestedTooDeeply, TooManyContained
from stemma.library.deletion import mark_deleting
from stemma.library.looks import request_look
from stemma.library.paths import contained_path, file_type, fitted, member_chain, partition_key
from stemma.library.walk import skipped_by_name
from stemma.parsing.members import Member
from stemma.store.locks import giving_way, lock_sources, portions, share_corpus
from stemma.store.postgres import Connection, Pool, autocommitted, explained

MAX_DEPTH = 3
"""Mails or archives in each other that are opened; what lies deeper is listed as failed."""

MAX_PER_FILE = 10_000
"""Documents taken from one file of the library, all levels together."""

CONTAINERS_PER_TRANSACTION = 100


@dataclass(frozen=True)
class Contents:
    """What the document of a container lists."""

    output_hash: str | None
    """Of the document; None for one that is no container any more."""
    members: tuple[Member, ...] = ()


@dataclass(frozen=True)
class _Container:
    source_id: UUID
    file_id: UUID
    source_path: str
    workspace_id: int
    folder_id: int | None
    listed_output: str | None
    n_others: int


@dataclass(frozen=True)
class _Known:
    """A member that the catalog has."""

    source_id: UUID
    container_id: UUID
    member_path: str
    source_path: str
    partition_key: str
    member_hash: str | None
    presence: str
    deleting: bool
    error_code: str | None


@dataclass(frozen=True)
class _Listed:
    """A member that is to be in the catalog."""

    container_id: UUID
    member: Member
    source_path: str
    error: DocumentError | None

    @property
    def member_hash(self) -> str | None:
        """None for what is not to be taken out."""
        return None if isinstance(self.error, NestedTooDeeply) else self.member.sha256

    def differs(self, known: _Known) -> bool:
        """Whether anything that the catalog has of it would change."""
        refused = self.error.code if self.error else None
        known_refusal = (
            known.error_code if known.member_hash is None or known.error_code in {"path_too_long", "container_changed"} else None
        )
        return (self.member.path, self.member_hash, "present", refused) != (
            known.member_path,
            known.member_hash,
            known.presence,
            known_refusal,
        )


@dataclass
class _Changes:
    inserted: list[_Listed] = field(default_factory=list[_Listed])
    updated: list[tuple[_Known, _Listed]] = field(default_factory=list[tuple[_Known, _Listed]])
    unlisted: list[UUID] = field(default_factory=list[UUID])
    listed: dict[UUID, str | None] = field(default_factory=dict[UUID, str | None])
    refused: dict[str, DocumentError] = field(default_factory=dict[str, DocumentError])


def record_contents(pool: Pool, run_id: str, contents: Mapping[str, Contents], *, now: datetime) -> dict[str, DocumentError]:
    """Bring the members of containers (source_id -> contents) into the catalog; only while this run holds the container.

    An unchanged container costs a query. A member that has another name and the bytes of one that is gone is that one, if
    there is no doubt. Returns source_id -> why a container's members are not taken; of these nothing is written.
    """
    refused: dict[str, DocumentError] = {}
    containers = sorted(map(UUID, contents))
    with explained(), autocommitted(pool) as connection:
        for start in range(0, len(containers), CONTAINERS_PER_TRANSACTION):
            some = containers[start : start + CONTAINERS_PER_TRANSACTION]
            refused |= giving_way(connection, lambda some=some: _record(connection, run_id, some, contents, now=now))
    return refused


def follow_containers(connection: Connection, *, now: datetime) -> None:
    """Give members the paths that follow from where their containers lie now, and mark for deletion those that nothing holds any more.

    The connection is in autocommit; every step may be repeated.
    """
    for _ in range(MAX_DEPTH + 1):  # a level after the other
        if not _move(connection, now=now):
            break
    orphans = connection.execute(load_queries("contained")["members_to_delete"]).fetchall()
    mark_deleting(connection, [source_id for (source_id,) in orphans], "vanished", now=now)


def _record(
    connection: Connection, run_id: str, container_ids: Sequence[UUID], contents: Mapping[str, Contents], *, now: datetime
) -> dict[str, DocumentError]:
    queries = load_queries("contained")
    asked = {"run_id": run_id, "source_ids": list(container_ids)}
    share_corpus(connection)
    lock_sources(connection, {place for held in _containers(connection, asked) for place in (held.source_id, held.file_id)})
    containers = _containers(connection, asked)
    with connection.cursor(row_factory=class_row(_Known)) as cursor:
        known = cursor.execute(queries["known_members"], {"source_ids": [container.source_id for container in containers]}).fetchall()
    changes = _changes(containers, known, contents)
    if changes.unlisted:
        connection.execute(queries["mark_unlisted"], {"source_ids": sorted(changes.unlisted), "now": now})
    if changes.updated:
        columns = _columns([listed for _, listed in changes.updated]) | {"source_ids": [before.source_id for before, _ in changes.updated]}
        connection.execute(queries["update_members"], columns | {"now": now})
        _retire(connection, [before.partition_key for before, _ in changes.updated], now=now)
    if changes.inserted:
        row = connection.execute(queries["insert_members"], _columns(changes.inserted) | {"now": now}).fetchone()
        if row is None or row[0] < len(changes.inserted):  # a place is still held by one that is being deleted
            changes.listed |= {listed.container_id: "" for listed in changes.inserted}
    emptied = [source_id for source_id, output_hash in changes.listed.items() if output_hash is None]
    connection.execute(queries["forget_stages_of"], {"source_ids": emptied})
    connection.execute(queries["note_listed"], {"source_ids": list(changes.listed), "outputs": list(changes.listed.values())})
    if changes.inserted or changes.updated or changes.unlisted:
        request_look(connection, now=now)
    return changes.refused


def _containers(connection: Connection, asked: Mapping[str, object]) -> list[_Container]:
    with connection.cursor(row_factory=class_row(_Container)) as cursor:
        return cursor.execute(load_queries("contained")["containers_to_list"], asked).fetchall()


def _changes(containers: Sequence[_Container], known: Sequence[_Known], contents: Mapping[str, Contents]) -> _Changes:
    changes = _Changes()
    known_of: dict[UUID, dict[str, _Known]] = defaultdict(dict)
    for member in known:
        known_of[member.container_id][member.member_path] = member
    added: Counter[UUID] = Counter()  # by containers of the same file before this one
    for container in containers:
        wanted, there = contents[str(container.source_id)], known_of[container.source_id]
        listed = {member.member.path: member for member in _listed(container, wanted.members)}
        if container.n_others + added[container.file_id] + len(listed) > MAX_PER_FILE:
            changes.refused[str(container.source_id)] = TooManyContained(
                container.source_path, f"its file holds more than {MAX_PER_FILE:,} documents"
            )
            continue
        added[container.file_id] += max(0, len(listed) - sum(member.presence == "present" for member in there.values()))
        changes.listed[container.source_id] = wanted.output_hash
        new = {path: member for path, member in listed.items() if path not in there}
        gone = {path: member for path, member in there.items() if path not in listed and not member.deleting}
        for before, member in _renamed(gone, new):
            changes.updated.append((before, member))
            del gone[before.member_path], new[member.member.path]
        for path in listed.keys() & there.keys():
            if there[path].deleting:
                changes.listed[container.source_id] = ""
            elif listed[path].differs(there[path]):
                changes.updated.append((there[path], listed[path]))
        changes.inserted += new.values()
        changes.unlisted += [member.source_id for member in gone.values() if member.presence == "present"]
    return changes


def _listed(container: _Container, members: Sequence[Member]) -> Iterator[_Listed]:
    """Members with their paths in the library; what a walk would leave out by its name is left out here, too."""
    too_deep = len(member_chain(container.source_path)) >= MAX_DEPTH
    for member in members:
        if any(skipped_by_name(name.encode()) for name in member.path.split("/")):
            continue
        in_library = contained_path(container.source_path, member.path)
        source_path, error = fitted(in_library, in_library.encode())
        if too_deep:
            yield _Listed(
                container.source_id, member, source_path, NestedTooDeeply(source_path, f"it lies more than {MAX_DEPTH} levels deep")
            )
        else:
            yield _Listed(container.source_id, member, source_path, error or member.error(source_path))


def _renamed(gone: Mapping[str, _Known], new: Mapping[str, _Listed]) -> list[tuple[_Known, _Listed]]:
    """Pairs with the same bytes, where one member alone lost and one alone got them."""
    lost, found = Counter(member.member_hash for member in gone.values()), Counter(member.member_hash for member in new.values())
    sole = {member.member_hash: member for member in gone.values() if member.member_hash and lost[member.member_hash] == 1}
    return [(sole[member.member_hash], member) for member in new.values() if member.member_hash in sole and found[member.member_hash] == 1]


def _columns(listed: Sequence[_Listed]) -> dict[str, list[object]]:
    return {
        "container_ids": [member.container_id for member in listed],
        "member_paths": [member.member.path for member in listed],
        "source_paths": [member.source_path for member in listed],
        "partition_keys": [partition_key(member.source_path) for member in listed],
        "file_types": [file_type(member.member.path) for member in listed],
        "media_types": [member.member.media_type for member in listed],
        "sizes": [member.member.size for member in listed],
        "member_hashes": [member.member_hash for member in listed],
        "error_codes": [member.error.code if member.error else None for member in listed],
        "error_messages": [member.error.message if member.error else None for member in listed],
    }


def _move(connection: Connection, *, now: datetime) -> int:
    """Members of the highest level that has to follow; returns how many did."""
    queries = load_queries("contained")
    n_moved = 0
    rows = connection.execute(queries["members_to_move"]).fetchall()
    moves = {source_id: (contained_path(container_path, member_path), key) for source_id, container_path, member_path, _, key in rows}
    listed = {source_id: fitted(path, path.encode()) for source_id, (path, _) in moves.items()}
    for some in portions([source_id for source_id, _, _, source_path, _ in rows if listed[source_id][0] != source_path]):
        refusals = [listed[source_id][1] for source_id in some]
        columns = {
            "source_ids": some,
            "source_paths": [listed[source_id][0] for source_id in some],
            "partition_keys": [partition_key(listed[source_id][0]) for source_id in some],
            "error_codes": [refusal.code if refusal else None for refusal in refusals],
            "error_messages": [refusal.message if refusal else None for refusal in refusals],
        }
        with connection.transaction():
            share_corpus(connection)
            lock_sources(connection, some)
            connection.execute(queries["move_members"], columns | {"now": now})
            _retire(connection, [moves[source_id][1] for source_id in some], now=now)
            connection.execute(load_queries("library")["revive_partitions"], {"partition_keys": columns["partition_keys"]})
        n_moved += len(some)
    return n_moved


def _retire(connection: Connection, partition_keys: Sequence[str], *, now: datetime) -> None:
    connection.execute(load_queries("library")["retire_partitions"], {"partition_keys": list(partition_keys), "now": now})
