"""`/api/documents`: every source with its status, and what is published of it."""

import unicodedata
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse, Response
from psycopg.rows import dict_row

from sql import load_queries
from stemma.library.cancellation import Chosen, NothingToCancel, NothingToRetry, cancel_documents, retry_documents
from stemma.library.listing import SourceRow, Status, UnknownDocument, contained_sources, list_sources, source_of
from stemma.library.selection import DeletionReport, Named, Selected, Selection, delete_selected, select_sources
from stemma.orchestrator import terminate_runs
from stemma.retrieval.scope import without_unstorable
from stemma.retrieval.snapshot import snapshot
from stemma.service.bodies import (
    AssetBody,
    AssetList,
    ChunkBody,
    ChunkList,
    DeleteBody,
    DeletionBody,
    DocumentBody,
    FailedDeletion,
    NamedSource,
    SourceBody,
    SourceList,
)
from stemma.service.problems import PROBLEMS, ConfirmationRequired, DocumentNotPublished, NoPicture, Problem
from stemma.service.routes_search import RunningService
from stemma.service.state import Service
from stemma.stages.installation import wanted_fingerprints
from stemma.store.lake import Lake, MissingObject
from stemma.store.postgres import Connection, autocommitted, explained

LIMIT_MAX = 1_000

DocumentId = Annotated[str, Path(alias="id", description="A source_id or a doc_id.", examples=["0f8fad5b-d9cb-469f-a165-70867728950e"])]

ONE: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "`unknown_document`, or `document_not_published` where a live version is needed."},
    410: {"model": Problem, "description": "`superseded_document`: the doc_id is of an older version; `present_doc_id` is the live one."},
    **PROBLEMS,
}

router = APIRouter(prefix="/api/documents", tags=["documents"])


@router.get("", responses=PROBLEMS, summary="List the library")
def list_documents(
    *,
    service: RunningService,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.", examples=["handbook/travel.md"])] = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="Documents per page.", examples=[100])] = 100,
    status: Annotated[Status | None, Query(description="Only those with this status.", examples=["failed"])] = None,
    workspace: Annotated[str | None, Query(description="Only those of the workspace with this key.", examples=["handbook"])] = None,
    folder: Annotated[str | None, Query(description="Only those below this folder.", examples=["handbook/2026"])] = None,
) -> SourceList:
    """Every source by path, failed ones too: no file that was seen is left out."""
    after, workspace, folder = (None if value is None else without_unstorable(value) for value in (cursor, workspace, folder))
    below = None if folder is None else unicodedata.normalize("NFC", folder).strip("/")
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        page, next_cursor = list_sources(connection, status=status, workspace=workspace, folder=below, after=after, limit=limit)
    return SourceList(documents=[SourceBody.model_validate(row) for row in page], next_cursor=next_cursor)


@router.get("/{id}", responses=ONE, summary="One document")
def read_document(document: DocumentId, service: RunningService) -> DocumentBody:
    """The source that the id names, with its status, what is live of it, what holds it and what it holds."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        source = source_of(connection, without_unstorable(document))
        contained = contained_sources(connection, source.source_id)
    return DocumentBody.model_validate(asdict(source) | {"contained": contained})


@router.get(
    "/{id}/text",
    responses={**ONE, 200: {"content": {"text/plain": {"example": "Chapter 1\n\nIt was a bright cold day …"}}}},
    response_class=PlainTextResponse,
    summary="The text of a document",
)
def read_text(document: DocumentId, service: RunningService) -> PlainTextResponse:
    """The live text, as UTF-8: every offset that Stemma gives counts code points of exactly this text. Its version is in `X-Doc-Id`."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        source = _published(connection, document)
        ((doc_id, text),) = connection.execute(load_queries("retrieval")["read_text"], {"source_id": source.source_id}).fetchall()
    return PlainTextResponse(text, headers={"X-Doc-Id": doc_id})


@router.get("/{id}/chunks", responses=ONE, summary="The chunks of a document")
def read_chunks(document: DocumentId, service: RunningService) -> ChunkList:
    """The live chunks, in the order of the text."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        source = _published(connection, document)
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(load_queries("retrieval")["read_chunks"], {"source_id": source.source_id}).fetchall()
    return ChunkList(doc_id=str(source.doc_id), source_id=str(source.source_id), chunks=[ChunkBody(**row) for row in rows])


@router.get("/{id}/assets", responses=ONE, summary="The tables and figures of a document")
def read_assets(document: DocumentId, service: RunningService) -> AssetList:
    """Those of the live version, in the order of the text; a figure without text of its own has an empty span."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        source = _published(connection, document)
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(load_queries("figures")["read_assets"], {"source_id": source.source_id}).fetchall()
    return AssetList(doc_id=str(source.doc_id), source_id=str(source.source_id), assets=[AssetBody(**row) for row in rows])


@router.get(
    "/{id}/assets/{index}/picture",
    responses={**ONE, 200: {"content": {"image/png": {}, "image/jpeg": {}}}},
    response_class=Response,
    summary="The picture of a figure",
)
def read_picture(
    document: DocumentId,
    index: Annotated[int, Path(ge=0, le=2**31 - 1, description="`asset_index` of the figure.", examples=[0])],
    service: RunningService,
) -> Response:
    """A PNG or JPEG without metadata, at most 2,400 pixels a side."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        source = _published(connection, document)
        with connection.cursor(row_factory=dict_row) as cursor:
            rows = cursor.execute(load_queries("figures")["read_assets"], {"source_id": source.source_id}).fetchall()
    kept = next((row for row in rows if row["asset_index"] == index and row["sha256"]), None)
    try:
        data = Lake(service.settings.lake_url).picture(kept["sha256"]) if kept else None
    except MissingObject:
        data = None
    if kept is None or data is None:
        raise NoPicture(f"{source.source_path} has no picture {index}")
    return Response(data, media_type=kept["mime_type"], headers={"ETag": f'"{kept["sha256"]}"', "X-Content-Type-Options": "nosniff"})


@router.post(
    "/{id}/cancel",
    responses=ONE | {409: {"model": Problem, "description": "`nothing_to_cancel`: it is neither waiting nor being worked on."}},
    summary="Stop working on a document",
)
def cancel_document(document: DocumentId, service: RunningService) -> SourceBody:
    """Its status becomes `cancelled` until a retry or a change of file, settings or code; what is live of it stays live."""
    settings = service.current_settings()
    with autocommitted(service.pool) as connection:
        source = source_of(connection, without_unstorable(document))
        chosen = Chosen(source_id=source.source_id)
        cancelled = cancel_documents(connection, chosen, settings, wanted_fingerprints(settings), now=datetime.now(UTC))
        if not cancelled.source_ids:
            raise NothingToCancel(f"{source.source_path} is {source.status}")
        changed = source_of(connection, str(source.source_id))
    terminate_runs(settings, cancelled.idle_runs)
    return SourceBody.model_validate(changed)


@router.post(
    "/{id}/retry",
    responses=ONE | {409: {"model": Problem, "description": "`nothing_to_retry`: it neither failed nor was cancelled."}},
    summary="Try a failed or cancelled document again",
)
def retry_document(document: DocumentId, service: RunningService) -> SourceBody:
    """It is taken up within seconds, with all its attempts before it."""
    settings = service.current_settings()
    with autocommitted(service.pool) as connection:
        source = source_of(connection, without_unstorable(document))
        chosen = Chosen(source_id=source.source_id)
        if not retry_documents(
            connection, chosen, settings, wanted_fingerprints(settings), of=("failed", "cancelled"), now=datetime.now(UTC)
        ):
            raise NothingToRetry(f"{source.source_path} is {source.status}")
        return SourceBody.model_validate(source_of(connection, str(source.source_id)))


@router.delete(
    "/{id}",
    responses=ONE | {409: {"model": Problem, "description": "`file_not_removed`: out of every search, but the file is still there."}},
    summary="Delete a document",
)
def delete_document(
    document: DocumentId,
    service: RunningService,
    remove_file: Annotated[
        bool,
        Query(description="Remove the file from the library too; without it, it stays and is not read again.", examples=[False]),
    ] = False,
) -> DeletionBody:
    """Out of every search at once, then out of the keyword indexes and the corpus. What a store holds up is answered 503 and goes on by itself."""
    with explained(), service.pool.connection() as connection:
        source = source_of(connection, without_unstorable(document))
        selected = select_sources(connection, Selection(documents=(str(source.source_id),)), remove_file=remove_file)
    if not selected.sources:
        raise UnknownDocument(f"{source.source_path} was deleted before; its file stays in the library")
    report = _deleted(service, selected, remove_file=remove_file)
    for _, error in report.failed:
        raise error
    return _body(selected, report)


@router.post(
    "/delete",
    responses=PROBLEMS | {409: {"model": Problem, "description": "`confirmation_required`: `expected` is missing or wrong."}},
    summary="Delete many documents",
)
def delete_documents(body: DeleteBody, service: RunningService) -> DeletionBody:
    """As one document is deleted, for all of them together. Names that stand for nothing come back in `not_found` and stop nothing."""
    selection = Selection(documents=tuple(body.documents), folders=tuple(body.folders), workspaces=tuple(body.workspaces))
    with explained(), service.pool.connection() as connection:
        selected = select_sources(connection, selection, remove_file=body.remove_file)
    if body.dry_run:
        return _body(selected, DeletionReport(not_found=selected.not_found))
    n_documents = len(selected.sources)
    if body.expected != n_documents and (body.expected is not None or (n_documents and (body.folders or body.workspaces))):
        raise ConfirmationRequired(n_documents)
    return _body(selected, _deleted(service, selected, remove_file=body.remove_file))


def _deleted(service: Service, selected: Selected, *, remove_file: bool) -> DeletionReport:
    if not selected.sources:
        return DeletionReport(not_found=selected.not_found)
    return delete_selected(
        service.pool, selected, service.stores.remove_sparse,
        library=service.settings.library, intent="remove_file" if remove_file else "keep_file",
    )  # fmt: skip


def _body(selected: Selected, report: DeletionReport) -> DeletionBody:
    def named(sources: Iterable[Named]) -> list[NamedSource]:
        return [NamedSource.model_validate(source) for source in sources]

    failed = [
        FailedDeletion(source_id=source.source_id, source_path=source.source_path, error_code=error.code, error_message=error.message)
        for source, error in report.failed
    ]
    return DeletionBody(
        selected=named(selected.sources), deleted=named(report.deleted), excluded=named(report.excluded), changed=named(report.changed),
        failed=failed, pending=named(report.pending), not_found=list(report.not_found),
    )  # fmt: skip


def _published(connection: Connection, document: str) -> SourceRow:
    source = source_of(connection, without_unstorable(document))
    if source.doc_id is None:
        raise DocumentNotPublished(f"{source.source_path} is {source.status}")
    return source
