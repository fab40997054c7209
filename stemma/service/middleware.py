"""Around every request: an id, a host that is ours, a body within bounds, headers that keep the page to itself, and one line in the log."""

import re
import uuid
from time import perf_counter
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stemma.errors import RequestError
from stemma.service.metrics import Metrics
from stemma.service.problems import MAX_BODY_BYTES, Bug, problem_of, respond

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
WILDCARD_ADDRESSES = frozenset({"0.0.0.0", "::", ""})

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
READING = ("GET", "HEAD", "OPTIONS")

_log = structlog.get_logger(__name__)


class ForeignHost(RequestError):
    """The request names a host that this service does not answer for: a page elsewhere may be rebinding its name to this machine."""

    code, remedy = "foreign_host", "Use http://127.0.0.1 or http://localhost with the service's port."


class ForeignOrigin(RequestError):
    """A page from elsewhere tried to change something here through the browser of whoever has it open."""

    code, remedy = "foreign_origin", "Send the request from this service's own page, or from a program that names no origin."


def allowed_hosts(service_host: str) -> frozenset[str] | None:
    """Names under which the service answers; None (any) when it was bound to every address of the machine on purpose."""
    return None if service_host in WILDCARD_ADDRESSES else LOOPBACK_NAMES | {service_host.lower()}


class Surroundings:
    """The ASGI middleware. It is the outermost layer, so what escapes the app is answered here, and its traceback logged."""

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str] | None, upload_bytes: int, metrics: Metrics) -> None:
        """
        Args:
            upload_bytes: most that the body of an upload may hold; of anything else MAX_BODY_BYTES.
        """
        self.app, self.hosts, self.upload_bytes, self.metrics = app, hosts, upload_bytes, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        began, status = perf_counter(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = MutableHeaders(scope=message)
                sent["X-Request-Id"] = request_id
                for name, value in SECURITY_HEADERS.items():
                    sent.setdefault(name, value)
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                if self.hosts is not None and _host_name(headers.get("host", "")) not in self.hosts:
                    refusal = problem_of(ForeignHost(f"host {headers.get('host', '')[:100]!r}"), request_id=request_id)
                    await respond(refusal.model_copy(update={"status": 421}))(scope, receive, send_with_headers)
                elif scope["method"] not in READING and _origin_host(headers) not in (None, headers.get("host")):
                    refusal = problem_of(ForeignOrigin(f"origin {headers['origin'][:100]!r}"), request_id=request_id)
                    await respond(refusal.model_copy(update={"status": 403}))(scope, receive, send_with_headers)
                else:
                    limit = self.upload_bytes if scope["path"].startswith("/api/upload") else MAX_BODY_BYTES
                    await self.app(scope, _limited(receive, limit), send_with_headers)
            except Exception:
                _log.exception("request failed", method=scope["method"], path=scope["path"])
                if status:
                    raise  # the answer is on its way: only the connection can still say that it is not whole
                await respond(problem_of(Bug("the request could not be answered"), request_id=request_id))(
                    scope, receive, send_with_headers
                )
            finally:
                # Never the query string or the body: they are what people look for.
                elapsed_s = round(perf_counter() - began, 4)
                route = getattr(scope.get("route"), "path", "none")  # never the path itself: there is no end of those
                self.metrics.requests.labels(scope["method"], route, str(status)).observe(elapsed_s)
                _log.info("request", method=scope["method"], path=scope["path"], status=status, elapsed_s=elapsed_s)
        return None


def _limited(receive: Receive, limit: int) -> Receive:
    """The body up to `limit` bytes; whoever reads further gets the exception that becomes a refusal."""
    n_bytes = 0

    async def receive_within_limit() -> Message:
        nonlocal n_bytes
        message = await receive()
        n_bytes += len(message.get("body", b""))
        if n_bytes > limit:
            raise HTTPException(413, f"more than {limit:,} bytes")
        return message

    return receive_within_limit


def _origin_host(headers: Headers) -> str | None:
    """Host and port of the page that a browser sends this for, "" where it does not say; None from a program."""
    origin = headers.get("origin")
    return None if origin is None else origin.partition("://")[2]


def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
