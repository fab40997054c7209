"""`/api/chunks/{chunk_id}/lineage` and `/api/documents/{id}/lineage`: from a passage to the bytes it came from."""

from typing import Annotated, Any

from fastapi import APIRouter, Path

from stemma.library.lineage import trace
from stemma.retrieval.scope import without_unstorable
from stemma.retrieval.snapshot import snapshot
from stemma.service.lineage import LinkedLineage, with_links
from stemma.service.problems import PROBLEMS, Problem
from stemma.service.routes_documents import DocumentId
from stemma.service.routes_search import RunningService
from stemma.service.state import Service

REFUSED: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "`unknown_document`, `unknown_chunk`, or `nothing_to_trace` while no version is live."},
    410: {"model": Problem, "description": "`superseded_document`: the id is of an older version; `present_doc_id` is the live one."},
    **PROBLEMS,
}

router = APIRouter(prefix="/api", tags=["lineage"])


@router.get("/chunks/{chunk_id}/lineage", responses=REFUSED, summary="Where a passage comes from")
def chunk_lineage(
    chunk_id: Annotated[str, Path(description="As a hit has it: a doc_id, `::` and a number.", examples=["0f3c9a1b2d4e5f60::3"])],
    service: RunningService,
) -> LinkedLineage:
    """The chunk, its place in the text, the version of the document, the file and whether its bytes are still those, the recipe of every
    stage, and the run. The file is hashed once more, so that a large one takes a moment."""
    return _traced(chunk_id if "::" in chunk_id else f"{chunk_id}::", service)


@router.get("/documents/{id}/lineage", responses=REFUSED, summary="Where a document comes from")
def document_lineage(document: DocumentId, service: RunningService) -> LinkedLineage:
    """The same without a chunk."""
    return _traced(document, service)


def _traced(identifier: str, service: Service) -> LinkedLineage:
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        stored = trace(connection, without_unstorable(identifier))
    return with_links(stored.compared(service.settings.library), service.settings)
