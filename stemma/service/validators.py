"""Validators: answers about documents carry an ETag, and who has the present one already is told so instead of being sent it again."""

from hashlib import sha256

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_WHOLE = ("application/json", "text/plain")
"""What is in memory as a whole anyway: its ETag is the hash of its bytes."""


class Validators:
    """The ASGI middleware, for GET below `/api/documents`. An ETag that the answer has already is used as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith("/api/documents"):
            return await self.app(scope, receive, send)
        answer = _Answer(Headers(scope=scope).get("if-none-match", ""), send)
        return await self.app(scope, receive, answer.send)


class _Answer:
    """One response on its way."""

    def __init__(self, known: str, send: Send) -> None:
        self._known, self._send = {tag.strip().removeprefix("W/") for tag in known.split(",") if tag.strip()}, send
        self._held: Message | None = None
        self._body = b""
        self._unchanged = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            whole = headers.get("content-type", "").startswith(_WHOLE)
            if message["status"] != 200 or not (whole or "etag" in headers):
                return await self._send(message)
            self._held = message
            if "etag" in headers:
                await self._begin(headers["etag"])
        elif self._unchanged:
            return None  # the body that is not sent
        elif self._held is None:
            return await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._begin(f'W/"{sha256(self._body).hexdigest()[:32]}"')
                if not self._unchanged:
                    await self._send({"type": "http.response.body", "body": self._body})
        return None

    async def _begin(self, etag: str) -> None:
        """The held beginning, or 304 where the client has this already."""
        assert self._held is not None
        headers, self._unchanged = MutableHeaders(scope=self._held), etag.removeprefix("W/") in self._known or "*" in self._known
        headers["ETag"] = etag
        headers.setdefault("Cache-Control", "private, no-cache")
        if self._unchanged:
            self._held["status"] = 304
            for name in ("content-length", "content-type", "content-disposition"):
                del headers[name]
        await self._send(self._held)
        self._held = None
        if self._unchanged:
            await self._send({"type": "http.response.body", "body": b""})
