"""What the orchestrator has not heard of yet: layers that were made for the whole corpus at once, outside the runs of its documents."""

from datetime import datetime

from sql import load_queries
from stemma.store.app_settings import read_note, write_note
from stemma.store.postgres import Connection

_NOTE = "_made_outside_runs"


def note_made_outside_runs(connection: Connection, *, now: datetime) -> None:
    """Embeddings or keyword entries of live documents were made at this moment."""
    write_note(connection, _NOTE, now.isoformat())


def made_outside_runs(connection: Connection) -> str | None:
    """When something was made last that was not reported; None: all is known."""
    return read_note(connection, _NOTE)


def reported(connection: Connection, moment: str | None) -> None:
    """Everything that was made up to that moment is reported; what was made later stays noted."""
    connection.execute("DELETE FROM app_settings WHERE key = %s AND value = %s", [_NOTE, moment])


def made_versions(connection: Connection, stage: str) -> dict[str, str]:
    """Partition key -> hash of the stage's output, of every document that is live and present."""
    return dict(connection.execute(load_queries("corpus_indexes")["made_versions"], {"stage": stage}).fetchall())
