"""Progress: how far the work since some moment is, by the walks and attempts since then."""

from dataclasses import dataclass
from datetime import datetime

from sql import load_queries
from stemma.library.looks import last_look, last_request
from stemma.store.postgres import Connection


@dataclass(frozen=True)
class Progress:
    """How far the work since some moment is."""

    walk_complete: bool
    """A walk that began since then is complete."""
    n_open: int
    """Attempts that are queued or running."""
    n_remaining: int
    """Stale sources that wait to be claimed."""
    library_away: bool
    """The last look could not list the library."""
    published: int
    failed: int
    runs: int
    parse_calls: int
    context_calls: int
    embed_calls: int
    seen: int
    new: int
    changed: int
    vanished: int
    notices: tuple[str, ...]
    """What the last look found worth an operator's attention."""

    @property
    def done(self) -> bool:
        """Nothing is left to do for what was seen since then."""
        return self.walk_complete and self.n_open == 0 and self.n_remaining == 0


def progress(connection: Connection, since: datetime) -> Progress:
    """What happened since that moment, by the walks that began and the attempts that ended or are open."""
    queries = load_queries("reconcile")
    walk = connection.execute(queries["walks_since"], {"since": since}).fetchone()
    attempts = connection.execute(queries["attempts_since"], {"since": since}).fetchone()
    assert walk is not None and attempts is not None
    look = last_look(connection)
    fresh = look.at is not None and look.at >= max(since, last_request(connection) or since)  # members that were listed wait for a look
    complete, seen, new, changed, vanished = walk
    n_open, published, failed, runs, parsed, contexts, embedded = attempts
    return Progress(
        complete and fresh,
        n_open,
        look.remaining,
        fresh and look.library_away,
        published,
        failed,
        runs,
        parsed,
        contexts,
        embedded,
        seen,
        new,
        changed,
        vanished,
        look.notices if fresh else (),
    )
