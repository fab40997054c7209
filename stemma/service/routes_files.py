"""Files and pages of documents, documents by title, and how far the work on them is."""

import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack
from typing import Annotated, Any
from urllib.parse import quote

import anyio
import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from sql import load_queries
from stemma.errors import DocumentError, StemmaError
from stemma.library.files import open_source
from stemma.library.listing import count_by_status, source_of
from stemma.library.titles import find_titles
from stemma.retrieval.scope import without_unstorable
from stemma.retrieval.snapshot import snapshot
from stemma.service.bodies import SourceBody
from stemma.service.bodies_library import LibraryProgress, PageBody, PageList, PagePreview, TitleHit, TitleHits
from stemma.service.events import MEDIA_TYPE, encoded
from stemma.service.problems import PROBLEMS, DocumentNotPublished, NoFile, NoPage, Problem, problem_of
from stemma.service.routes_documents import ONE, DocumentId
from stemma.service.routes_search import RunningService
from stemma.service.state import Service
from stemma.store.publications import decompressed

POLL_S = 0.5
SILENCE_S = 15  # after which a comment keeps the connection alive, and finds out whether it still is
_PIECE_BYTES = 1 << 18

router = APIRouter(prefix="/api", tags=["documents"])

_watchers = CapacityLimiter(4)

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": 'event: progress\ndata: {"status": "processing", …}\n\n'}},
        "description": "The events.",
    }
}

FILE_HEADERS = {
    # Whatever the file is, a browser stores it and runs nothing of it.
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}


@router.get(
    "/documents/{id}/file",
    responses={**ONE, 200: {"content": {"application/octet-stream": {}}, "description": "The bytes."}, 404: {"model": Problem, "description": "`unknown_document`; `no_file`: it lies in another file, or its file is gone."}},
    response_class=StreamingResponse,
    summary="Download the file of a document",
)  # fmt: skip
def download(document: DocumentId, service: RunningService) -> StreamingResponse:
    """The file as it lies in the library now, to be stored, never shown."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        source = source_of(connection, without_unstorable(document))
        ((source_path, disk_path),) = connection.execute(load_queries("files")["file_of"], {"source_id": source.source_id}).fetchall()
    if disk_path is None:
        raise NoFile(f"{source_path} is no file of its own")
    opened = ExitStack()
    try:
        descriptor = opened.enter_context(open_source(service.settings.library, bytes(disk_path), source_path))
        status = os.fstat(descriptor)
    except DocumentError as error:
        opened.close()
        raise NoFile(f"{source_path}: {error.detail}") from error
    name = source_path.rpartition("/")[2]
    headers = FILE_HEADERS | {
        "Content-Length": str(status.st_size),
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "ETag": f'"{status.st_mtime_ns:x}-{status.st_size:x}"',
    }
    return StreamingResponse(_pieces(descriptor, status.st_size, opened), media_type="application/octet-stream", headers=headers)


def _pieces(descriptor: int, size: int, opened: ExitStack) -> Iterator[bytes]:
    with opened:
        while size > 0 and (piece := os.read(descriptor, min(_PIECE_BYTES, size))):
            size -= len(piece)
            yield piece


@router.get("/documents/{id}/pages", responses=ONE, summary="The pages of a document")
def read_pages(document: DocumentId, service: RunningService) -> PageList:
    """Pages, slides or sheets, each with the stretch of the text that it contributed."""
    doc_id, pages = _pages(document, service)
    return PageList(doc_id=doc_id, pages=pages)


@router.get("/documents/{id}/pages/{number}", responses=ONE, summary="One page of a document")
def read_page(
    document: DocumentId, number: Annotated[int, Path(ge=1, le=2**31 - 1, description="From 1.", examples=[1])], service: RunningService
) -> PagePreview:
    """Its text, as the corpus holds it: it is there after a restore, too, and when the file is gone."""
    _, pages = _pages(document, service)
    page = next((page for page in pages if page.number == number), None)
    if page is None:
        raise NoPage(f"there is no page {number}; it has {len(pages)}")
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        source = source_of(connection, without_unstorable(document))
        asked = {"source_id": source.source_id, "char_start": page.char_start, "char_end": page.char_end}
        found = connection.execute(load_queries("files")["page_text"], asked).fetchone()
    if found is None:
        raise DocumentNotPublished(f"{source.source_path} is {source.status}")
    doc_id, text, chunk_ids = found
    return PagePreview(**page.model_dump(), doc_id=doc_id, text=text, chunk_ids=chunk_ids)


@router.get("/titles", responses=PROBLEMS, summary="Find documents by title")
def read_titles(
    service: RunningService,
    query: Annotated[str, Query(max_length=500, description="A title or file name, or about so.", examples=["handbok travle"])],
    workspace: Annotated[str | None, Query(description="Only of the workspace with this key.", examples=["handbook"])] = None,
    limit: Annotated[int, Query(ge=1, le=100, description="Documents wanted.", examples=[10])] = 10,
) -> TitleHits:
    """By the trigrams that query and title share, so that what is mistyped is found too."""
    key = None if workspace is None else without_unstorable(workspace)
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        found = find_titles(connection, without_unstorable(query), workspace=key, limit=limit)
    return TitleHits(documents=[TitleHit(**vars(document), similarity=round(similarity, 4)) for document, similarity in found])


@router.get("/documents/{id}/progress", responses=ONE | EVENTS, response_class=StreamingResponse, summary="Follow the work on a document")
async def follow_document(document: DocumentId, request: Request, service: RunningService) -> StreamingResponse:
    """An event `progress` with the document at once and whenever it changes, until it is neither waiting nor being worked on."""

    def look() -> tuple[SourceBody, bool]:
        with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
            source = source_of(connection, without_unstorable(document))
        return SourceBody.model_validate(source), source.status not in ("pending", "processing") or source.deletion_intent is not None

    return await _followed(look, request)


@router.get("/progress", responses=PROBLEMS | EVENTS, response_class=StreamingResponse, summary="Follow the work on the library")
async def follow_library(
    request: Request,
    service: RunningService,
    until_idle: Annotated[bool, Query(description="End as soon as nothing waits or is worked on.", examples=[False])] = False,
) -> StreamingResponse:
    """An event `progress` with the number of documents by status, at once and whenever it changes."""

    def look() -> tuple[LibraryProgress, bool]:
        counts = _counts(service)
        return counts, until_idle and not {"pending", "processing"} & counts.by_status.keys()

    return await _followed(look, request)


def _counts(service: Service) -> LibraryProgress:
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        return LibraryProgress(by_status=count_by_status(connection))


def _pages(document: str, service: Service) -> tuple[str, list[PageBody]]:
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        source = source_of(connection, without_unstorable(document))
        found = connection.execute(load_queries("files")["read_pages"], {"source_id": source.source_id}).fetchone()
    if found is None:
        raise DocumentNotPublished(f"{source.source_path} is {source.status}")
    doc_id, compressed = found
    pages: list[dict[str, Any]] = decompressed(bytes(compressed)) if compressed else []
    return doc_id, [PageBody.model_validate(page) for page in pages]


async def _followed(look: Callable[[], tuple[BaseModel, bool]], request: Request) -> StreamingResponse:
    """What `look` sees, told whenever it differs, until it says that this was the last. It looks in threads apart from those of searches."""
    first = await anyio.to_thread.run_sync(look, limiter=_watchers)

    async def told() -> AsyncGenerator[bytes]:
        (seen, last), silent_s = first, 0.0
        yield encoded("progress", seen)
        while not last:
            await anyio.sleep(POLL_S)
            try:
                now_seen, last = await anyio.to_thread.run_sync(look, limiter=_watchers)
            except StemmaError as error:
                yield encoded("error", problem_of(error, request_id=getattr(request.state, "request_id", None)))
                return
            silent_s += POLL_S
            if now_seen != seen:
                seen, silent_s = now_seen, 0.0
                yield encoded("progress", seen)
            elif silent_s >= SILENCE_S:
                silent_s = 0.0
                yield b": still here\n\n"

    return StreamingResponse(told(), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
