"""Looks at the library: what the last one left for the next, and when someone asked for another."""

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime

from stemma.store.app_settings import read_note, write_note
from stemma.store.postgres import Connection

REQUESTED_NOTE = "_reconcile_requested"
LOOKED_NOTE = "_reconcile_looked"
FULL_CHECK_NOTE = "_full_check_requested"
OUTDATED_NOTE = "_outdated_load"


@dataclass(frozen=True)
class LastLook:
    """What the last look at the library left for the next one."""

    at: datetime | None = None
    remaining: int = 0
    library_away: bool = False
    settling: dict[str, str] = field(default_factory=dict[str, str])
    """source_id -> when a look first found it modified a moment ago, and each look since."""
    notices: tuple[str, ...] = ()
    """What the last walk that came to a conclusion found worth an operator's attention, a sentence each."""


def last_look(connection: Connection) -> LastLook:
    """As it was noted; an empty one before the first."""
    note = read_note(connection, LOOKED_NOTE)
    if note is None:
        return LastLook()
    fields = json.loads(note)
    return LastLook(**fields | {"at": datetime.fromisoformat(fields["at"]), "notices": tuple(fields.get("notices", ()))})


def note_look(connection: Connection, look: LastLook) -> None:
    """Keep it for the next one."""
    write_note(connection, LOOKED_NOTE, json.dumps(asdict(look), default=datetime.isoformat))


def last_request(connection: Connection) -> datetime | None:
    """When someone last asked for a look; None: never."""
    requested = read_note(connection, REQUESTED_NOTE)
    return datetime.fromisoformat(requested) if requested else None


def request_look(connection: Connection, *, now: datetime) -> None:
    """The next tick of the sensor looks, however short ago the last one was."""
    write_note(connection, REQUESTED_NOTE, now.isoformat())


def request_full_check(connection: Connection, *, now: datetime) -> None:
    """What was hashed before now counts as due for its periodic hash; the next tick looks."""
    write_note(connection, FULL_CHECK_NOTE, now.isoformat())
    request_look(connection, now=now)


def last_full_check(connection: Connection) -> datetime | None:
    """When someone last asked for every file to be hashed; None: never."""
    requested = read_note(connection, FULL_CHECK_NOTE)
    return datetime.fromisoformat(requested) if requested else None


def note_outdated(connection: Connection, load: str) -> None:
    """A run found that the code which asked for it is not the code it runs: who was loaded as `load` is to ask for nothing more."""
    write_note(connection, OUTDATED_NOTE, load)


def is_outdated(connection: Connection, load: str) -> bool:
    """Whether the code on disk is another than what was loaded as `load`."""
    return read_note(connection, OUTDATED_NOTE) == load
