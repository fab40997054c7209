"""Back-pressure: what cannot be begun soon is refused at once, so that a crowd makes the service say no, not stand still."""

from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from stemma.errors import Unavailable
from stemma.service.metrics import Metrics
from stemma.service.problems import problem_of, respond


class Overloaded(Unavailable):
    """More requests are waiting than the service works off in a few seconds."""

    code, remedy = "overloaded", "Repeat the request after the seconds that Retry-After says."


@dataclass
class _Line:
    """Requests that share what they wait for."""

    limit: int
    length: int = 0


class Backpressure:
    """The ASGI middleware. It counts what is being worked on and what waits; beyond a line's limit the answer is 503 with Retry-After.

    Probes, metrics and the page are never refused. Streams hold their place for long, so they have lines of their own.
    """

    def __init__(self, app: ASGIApp, *, metrics: Metrics, requests: int = 64, chats: int = 16, watchers: int = 64) -> None:
        self.app, self._metrics = app, metrics
        self._requests, self._chats, self._watchers = _Line(requests), _Line(chats), _Line(watchers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = self._line_of(scope["path"]) if scope["type"] == "http" else None
        if line is None:
            return await self.app(scope, receive, send)
        if line.length >= line.limit:
            self._metrics.refused.inc()
            refusal = problem_of(Overloaded(f"{line.limit} requests are waiting"), request_id=scope["state"]["request_id"])
            return await respond(refusal)(scope, receive, send)
        line.length += 1
        self._metrics.in_flight.inc()
        try:
            await self.app(scope, receive, send)
        finally:
            line.length -= 1
            self._metrics.in_flight.dec()
        return None

    def _line_of(self, path: str) -> _Line | None:
        if not path.startswith("/api/") or path.startswith("/api/health"):
            return None
        if path == "/api/chat":
            return self._chats
        return self._watchers if path.endswith("/progress") else self._requests
