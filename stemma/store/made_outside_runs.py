"""What the orchestrator has not heard of yet: layers that were made for the whole corpus at once, outside the runs of its documents."""

from datetime import datetime

from sql import load_queries
from stemma.store.app_settings import read_note, write_note
from stemma.store.postgres import Connection

_NOTE = "_made_outside_runs"
_RESTORED = "_restored"


def note_made_outside_runs(connection: Connection, *, now: datetime) -> None:
    """Embeddings or keyword entries of live documents were made at this moment."""
    write_note(connection, _NOTE, now.isoformat())


def made_outside_runs(connection: Connection) -> str | None:
    """When something was made last that was not reported; None: all is known."""
    return read_note(connection, _NOTE)


def note_restored(connection: Connection, *, now: datetime) -> None:
    """The whole corpus was restored at this moment: not even its partitions may be known."""
    write_note(connection, _RESTORED, now.isoformat())


def restored(connection: Connection) -> str | None:
    """When the corpus was restored last and that was not reported; None: all is known."""
    return read_note(connection, _RESTORED)


def reported(connection: Connection, made_at: str | None, restored_at: str | None) -> None:
    """Everything that was made or restored up to these moments is reported; what came later stays noted."""
    for key, moment in ((_NOTE, made_at), (_RESTORED, restored_at)):
        connection.execute("DELETE FROM app_settings WHERE key = %s AND value = %s", [key, moment])


def published_hashes(connection: Connection) -> dict[str, str]:
    """Partition key -> sha256 of the bytes of every document that is live and present."""
    return dict(connection.execute(load_queries("corpus_indexes")["published_hashes"]).fetchall())


def made_versions(connection: Connection, stage: str) -> dict[str, str]:
    """Partition key -> hash of the stage's output, of every document that is live and present."""
    return dict(connection.execute(load_queries("corpus_indexes")["made_versions"], {"stage": stage}).fetchall())
