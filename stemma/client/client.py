"""The client: one method per thing a program wants of the service, refusals as exceptions."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx

from stemma.client.shapes import ChunkList, Document, DocumentList, Event, Problem, Scope, SearchAnswer, Source

DEFAULT_URL = "http://127.0.0.1:8765"


class ServiceAway(Exception):
    """No service answers at the address."""


class ServiceRefused(Exception):
    """The service refused; `problem` says why, with a stable `code`."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem

    @property
    def code(self) -> str:
        """What a program should look at."""
        return self.problem["code"]

    def __str__(self) -> str:
        return f"{self.problem['code']}: {self.problem['detail']} {self.problem['remedy']}"


class StemmaClient:
    """Connects to `url` and nowhere else: no proxy, no redirect. Safe from any thread.

    Every method raises ServiceAway when nothing answers and ServiceRefused when the service says no.
    """

    def __init__(self, url: str = DEFAULT_URL, *, timeout_s: float = 60.0, transport: httpx.BaseTransport | None = None) -> None:
        self._http = httpx.Client(base_url=url, timeout=timeout_s, trust_env=False, transport=transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a call made later fails."""
        self._http.close()

    def search(self, query: str, *, method: str | None = None, k: int = 10, scope: Scope | None = None, **options: Any) -> SearchAnswer:
        """Ranked passages. `options` are further fields of `SearchBody`."""
        return self._json("POST", "/api/search", json={"query": query, "method": method, "k": k, "scope": scope, **options})

    def list_documents(
        self, *, workspace: str | None = None, status: str | None = None, cursor: str | None = None, limit: int = 100
    ) -> DocumentList:
        """A page of the library, by path."""
        given = {"workspace": workspace, "status": status, "cursor": cursor, "limit": limit}
        return self._json("GET", "/api/documents", params={name: value for name, value in given.items() if value is not None})

    def documents(self, *, workspace: str | None = None, status: str | None = None) -> Iterator[Source]:
        """Every document, page after page."""
        cursor = None
        while True:
            page = self.list_documents(workspace=workspace, status=status, cursor=cursor, limit=1_000)
            yield from page["documents"]
            if (cursor := page["next_cursor"]) is None:
                return

    def document(self, document: str) -> Document:
        """One document, by source_id or doc_id."""
        return self._json("GET", f"/api/documents/{_part(document)}")

    def text(self, document: str) -> str:
        """The live text: every offset counts its code points."""
        return self._send("GET", f"/api/documents/{_part(document)}/text").text

    def chunks(self, document: str) -> ChunkList:
        """The live chunks, in the order of the text."""
        return self._json("GET", f"/api/documents/{_part(document)}/chunks")

    def lineage(self, identifier: str) -> dict[str, Any]:
        """Every step between a chunk (its chunk_id) or a document and the bytes it came from."""
        kind = "chunks" if "::" in identifier else "documents"
        return self._json("GET", f"/api/{kind}/{_part(identifier)}/lineage")

    def titles(self, query: str, *, limit: int = 10) -> list[dict[str, Any]]:
        """Documents whose title resembles the query, mistyped or not."""
        return self._json("GET", "/api/titles", params={"query": query, "limit": limit})["documents"]

    def status(self) -> dict[str, Any]:
        """What the library and the corpus look like now."""
        return self._json("GET", "/api/status")

    def upload(self, path: Path, *, folder: str = "") -> dict[str, Any]:
        """What became of one file, which keeps its clock."""
        data = {"folder": folder, "modified_ms": str(path.stat().st_mtime_ns // 1_000_000)}
        with path.open("rb") as content:
            return self._json("POST", "/api/upload", data=data, files=[("files", (path.name, content))])["files"][0]

    def chat(self, question: str, *, conversation_id: str | None = None, **options: Any) -> Iterator[Event]:
        """The events of a turn as they come; whoever stops before `done` leaves nothing stored. `options` are fields of `ChatBody`.

        An `error` that comes in the middle is raised as ServiceRefused.
        """
        body = {"question": question, "conversation_id": conversation_id, **options}
        try:
            with self._http.stream("POST", "/api/chat", json=body) as response:
                if not response.is_success:
                    response.read()
                    raise _refusal(response)
                yield from _events(response.iter_lines())
        except httpx.TransportError as error:
            raise ServiceAway(f"nothing answers at {self._http.base_url} ({type(error).__name__})") from error

    def _json(self, method: str, path: str, **request: Any) -> Any:
        return self._send(method, path, **request).json()

    def _send(self, method: str, path: str, **request: Any) -> httpx.Response:
        if "json" in request:  # by ourselves: a str may hold lone surrogates, which have no UTF-8; escaped, the service leaves them out
            request |= {"content": json.dumps(request.pop("json")), "headers": {"Content-Type": "application/json"}}
        try:
            response = self._http.request(method, path, **request)
        except httpx.TransportError as error:
            raise ServiceAway(f"nothing answers at {self._http.base_url} ({type(error).__name__})") from error
        if not response.is_success:
            raise _refusal(response)
        return response


def _part(identifier: str) -> str:
    return quote(identifier, safe="")


def _refusal(response: httpx.Response) -> Exception:
    """The problem of a refusal; whatever answers without one is another program."""
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if isinstance(problem, dict) and "code" in problem:
        return ServiceRefused(cast(Problem, problem))
    return ServiceAway(f"another program answers at {response.url.host}:{response.url.port} (status {response.status_code})")


def _events(lines: Iterator[str]) -> Iterator[Event]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            data = json.loads(line.removeprefix("data: "))
            if name == "error":
                raise ServiceRefused(data)
            yield cast(Event, {"name": name, "data": data})
