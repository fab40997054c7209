"""Whether the service lives, whether it is ready, and what the library looks like."""

from collections.abc import Sequence
from typing import Annotated, Any

import anyio.to_thread
from anyio import CapacityLimiter
from fastapi import APIRouter, Query, Request, Response
from psycopg.rows import dict_row

from sql import load_queries
from stemma.library.listing import count_by_status
from stemma.library.looks import last_look
from stemma.retrieval.snapshot import snapshot
from stemma.service.bodies import (
    DocumentCounts,
    EmbeddingIndexStatus,
    FolderBody,
    FolderList,
    Health,
    IndexesStatus,
    Links,
    ScanStatus,
    SparseIndexStatus,
    StatusReport,
    WorkspaceStatus,
)
from stemma.service.metrics import MEDIA_TYPE as METRICS_MEDIA_TYPE
from stemma.service.metrics import Metrics
from stemma.service.problems import PROBLEMS
from stemma.service.routes_search import RunningService
from stemma.service.state import Service
from stemma.stages.index_report import IndexReport, report_indexes
from stemma.store.postgres import Connection

router = APIRouter(prefix="/api", tags=["status"])
metrics_router = APIRouter(tags=["status"])

_probes = CapacityLimiter(2)  # apart from the threads that searches may fill: a busy service still says that it lives


async def _health(service: Service) -> Health:
    reason = await anyio.to_thread.run_sync(service.not_ready, limiter=_probes)
    return Health(live=True, ready=reason is None, reason=reason)


@router.get("/health", summary="Is the service alive?")
async def health(service: RunningService) -> Health:
    """Always 200 while the process answers; `ready` says whether a search would be answered, `reason` why not."""
    return await _health(service)


@router.get("/health/ready", summary="Would a search be answered?", responses={503: {"model": Health, "description": "Not now."}})
async def readiness(service: RunningService, response: Response) -> Health:
    """The body of `/api/health`; the status is 200 when ready and 503 when not, for probes that look at the status only."""
    found = await _health(service)
    response.status_code = 200 if found.ready else 503
    return found


@metrics_router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}, summary="Figures for Prometheus")
def metrics(request: Request) -> Response:
    """Times of requests by route, times of the stages of answers, and how many requests are in flight or were refused."""
    figures: Metrics = request.app.state.metrics
    return Response(figures.exposition(), media_type=METRICS_MEDIA_TYPE)


@router.get("/status", responses={503: PROBLEMS[503]}, summary="What does the library look like?")
def status(service: RunningService) -> StatusReport:
    """Counts by status and stage, workspaces, the indexes, the latest walk, and where the Dagster UI is."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        by_status = count_by_status(connection)
        stages = {row["stage"]: row["count"] for row in _rows(connection, "count_by_stage")}
        (state,) = _rows(connection, "read_corpus_state")
        scans = _rows(connection, "read_latest_scan")
        return StatusReport(
            documents=DocumentCounts(total=sum(by_status.values()), by_status=by_status, by_stage=stages),
            workspaces=[WorkspaceStatus(**row) for row in _rows(connection, "list_workspaces")],
            indexes=_indexes(report_indexes(connection)),
            epoch=state["epoch"],
            scan=ScanStatus(**scans[0]) if scans else None,
            notices=list(last_look(connection).notices),
            links=Links(dagster=f"http://127.0.0.1:{service.settings.dagster_port}"),
        )


@router.get("/folders", responses={503: PROBLEMS[503]}, summary="The folder tree")
def folders(
    service: RunningService,
    workspace: Annotated[str | None, Query(description="Only of the workspace with this key.", examples=["handbook"])] = None,
) -> FolderList:
    """Every folder that holds documents, by path; one that is emptied is gone."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        rows = [FolderBody(**row) for row in _rows(connection, "list_folders")]
    return FolderList(folders=[row for row in rows if workspace is None or row.workspace == workspace])


def _indexes(report: IndexReport) -> IndexesStatus:
    embedding = [(index.state, EmbeddingIndexStatus.model_validate(index)) for index in report.embedding]
    sparse = [(index.state, SparseIndexStatus.model_validate(index)) for index in report.sparse]
    return IndexesStatus(
        embedding=next((index for state, index in embedding if state == "active"), None),
        sparse=next((index for state, index in sparse if state == "active"), None),
        building_embedding=[index for state, index in embedding if state == "building"],
        building_sparse=[index for state, index in sparse if state == "building"],
    )


def _rows(connection: Connection, name: str) -> Sequence[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(load_queries("service")[name]).fetchall()
