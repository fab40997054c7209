"""A server that speaks the OpenAI protocol and answers by a script: what a language model is in these tests."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


@dataclass(frozen=True)
class Reply:
    """What the server does with one request; without a status of its own it is a chat completion of `text`."""

    text: str = ""
    reasoning: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent as it is, whatever was asked."""
    cut_after: int | None = None
    """Pieces of a stream after which the connection ends."""
    pieces: list[str] | None = None
    """The text as it is streamed; default: word by word."""
    release: Event | None = None
    """Waited for before anything is sent (at most 30 s): a server that is slow."""


Script = Callable[[dict[str, Any]], Reply | str]


@dataclass
class ScriptedLlm:
    """The running server: its URL for STEMMA_LLM_URL, and what it was asked."""

    url: str
    script: Script
    """Request body -> reply; may be exchanged while it runs."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def say(self, *replies: Reply | str) -> None:
        """Give these replies in turn, the last one again and again."""
        left = list(replies)
        self.script = lambda _: left.pop(0) if len(left) > 1 else left[0]


@contextmanager
def scripted_llm(script: Script | Reply | str = "An answer.") -> Iterator[ScriptedLlm]:
    """A server on a free port of the loopback, ended with the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    llm = ScriptedLlm(f"http://127.0.0.1:{server.server_port}/v1", script if callable(script) else lambda _: script)
    server.llm = llm  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield llm
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: a test says what went wrong."""

    def do_POST(self) -> None:
        llm: ScriptedLlm = self.server.llm  # type: ignore[attr-defined]
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        llm.requests.append(request)
        llm.headers.append(dict(self.headers))
        reply = llm.script(request) if self.path == "/v1/chat/completions" else Reply(status=404)
        reply = Reply(reply) if isinstance(reply, str) else reply
        if reply.release:
            reply.release.wait(30)
        try:
            if reply.body is not None or reply.status != 200:
                self._send(reply.status, reply.body if reply.body is not None else _error(reply), reply.headers)
            elif request.get("stream"):
                self._stream(reply)
            else:
                message = {"role": "assistant", "content": reply.text, "reasoning_content": reply.reasoning}
                self._send(
                    200, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode(), reply.headers
                )
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client left, as some tests have it do

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json", "Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, reply: Reply) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        pieces = (
            reply.pieces if reply.pieces is not None else [f"{word} " for word in reply.text.split(" ")][:-1] + reply.text.split(" ")[-1:]
        )
        deltas = [{"reasoning_content": reply.reasoning}] if reply.reasoning else []
        deltas += [{"content": piece} for piece in pieces]
        for delta in deltas[: reply.cut_after]:
            self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if reply.cut_after is None:
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
            self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, event: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
        self.wfile.flush()


def _error(reply: Reply) -> bytes:
    return json.dumps({"error": {"message": reply.text or "scripted refusal", "type": "scripted"}}).encode()
