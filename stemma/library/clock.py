"""A clock that was set back: what lies in the future now was written before, and may not be waited for."""

from datetime import datetime, timedelta

import structlog

from sql import load_queries
from stemma.library.looks import last_look
from stemma.store.locks import giving_way
from stemma.store.postgres import Connection

LOOKS_OVERLAP = timedelta(minutes=1)
"""How far looks that are made at once may have begun apart: what one of them wrote is no future to the other."""

log = structlog.get_logger()


def follow_clock(connection: Connection, *, now: datetime) -> bool:
    """If the last look lies in the future by more than LOOKS_OVERLAP, bring every time that something is compared with back to now; returns whether it does.

    A wait for a retry is over, a grace begins anew, and what was read is read again: nothing is removed early, nothing waits for as
    long as the clock was set back. The connection is in autocommit.
    """
    looked_at = last_look(connection).at
    if looked_at is None or looked_at <= now + LOOKS_OVERLAP:
        return False
    log.warning("the clock was set back", last_look=looked_at.isoformat(), now=now.isoformat())

    def bring_back() -> None:
        for query in load_queries("clock").values():
            connection.execute(query, {"now": now})

    giving_way(connection, bring_back)
    return True
