"""`/api/stale` and `/api/ingest`: what is not up to date, and asking for it to be."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query

from stemma.library.layers import layers_of
from stemma.library.restriction import Restriction
from stemma.library.staleness import LISTED, kinds_of, stale_counts, stale_sources
from stemma.library.wishes import wish
from stemma.retrieval.scope import without_unstorable
from stemma.retrieval.snapshot import snapshot
from stemma.service.bodies import Accepted, IngestBody, LayerBody, StaleDocument, StaleKind, StaleReport
from stemma.service.problems import PROBLEMS
from stemma.service.routes_search import RunningService
from stemma.stages.installation import wanted_fingerprints
from stemma.store.postgres import explained
from stemma.store.rows import AssetStage

LIMIT_MAX = 1_000

router = APIRouter(prefix="/api", tags=["freshness"])


@router.get("/stale", responses=PROBLEMS, summary="What is not up to date, and why?")
def read_stale(
    service: RunningService,
    stage: Annotated[AssetStage | None, Query(description="Only what is stale from this stage on.", examples=["chunks"])] = None,
    workspace: Annotated[str | None, Query(description="Only the workspace with this key.", examples=["handbook"])] = None,
    cursor: Annotated[str | None, Query(description="`next_cursor` of the page before.", examples=["handbook/travel.md"])] = None,
    limit: Annotated[int, Query(ge=0, le=LIMIT_MAX, description="Documents per page; 0: counts alone.", examples=[100])] = 100,
) -> StaleReport:
    """Counts by stage and reason, every layer of the whole library in a sentence, and a page of the documents.

    It is computed from what each stage was made from: taking a change back makes fresh again what it had made stale.
    """
    after, workspace = (None if value is None else without_unstorable(value) for value in (cursor, workspace))
    settings, now, restriction = service.current_settings(), datetime.now(UTC), Restriction(workspace=workspace)
    wanted = wanted_fingerprints(settings)
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        everything = stale_counts(connection, settings, wanted, now=now)
        counts = everything if workspace is None else stale_counts(connection, settings, wanted, restriction=restriction, now=now)
        page = stale_sources(connection, settings, wanted, restriction=restriction, stage=stage, after=after, limit=limit, now=now)
        found = layers_of(connection, settings, wanted, everything)
    kinds = [StaleKind(**kind) for kind in kinds_of(counts, stage)]
    return StaleReport(
        stale=sum(kind.documents for kind in kinds),
        kinds=kinds,
        layers=[LayerBody.model_validate(layer) for layer in found],
        documents=[StaleDocument(**row) for row in page.select(LISTED).iter_rows(named=True)],
        next_cursor=page["source_path"][-1] if limit and page.height == limit else None,
    )


@router.post("/ingest", status_code=202, responses=PROBLEMS, summary="Bring documents up to date")
def ingest(body: IngestBody, service: RunningService) -> Accepted:
    """Have the library looked at now, and what is stale of the selection brought up to date; with `reingest`, all of it is made again.

    The answer comes before the work: `/api/stale` and `/api/status` say how far it is. Documents stay searchable meanwhile.
    """
    settings, now = service.current_settings(), datetime.now(UTC)
    restriction = Restriction(body.paths, body.workspace, body.made_by)
    force = body.reingest or bool(body.made_by)
    with explained(), service.pool.connection() as connection:
        documents = wish(connection, settings, wanted_fingerprints(settings), restriction, stage=body.stage, force=force, now=now)
    return Accepted(documents=documents, asked_at=now)
