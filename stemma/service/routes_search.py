"""`POST /api/search`: ranked passages with exact citations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from stemma.retrieval.answer import SearchAnswer
from stemma.service.bodies import SearchBody
from stemma.service.problems import PROBLEMS, Problem
from stemma.service.state import Service

router = APIRouter(prefix="/api", tags=["search"])


def service_of(request: Request) -> Service:
    """The service that this app runs."""
    return request.app.state.service


RunningService = Annotated[Service, Depends(service_of)]


@router.post(
    "/search",
    responses=PROBLEMS
    | {
        409: {
            "model": Problem,
            "description": "`embedding_model_not_at_hand`, `embedding_mismatch`: queries cannot be embedded by the model of the index.",
        }
    },
    summary="Search the corpus",
)
def search_corpus(body: SearchBody, service: RunningService) -> SearchAnswer:
    """The k best live passages in scope, all read from one snapshot; empty before the first ingest.

    `degraded` is not empty when the answer is less than its method promises, for instance while the keyword index is away, or when
    `hyde` has no language model. `shape` merges neighbours, folds equal texts, mixes documents and keeps a budget of tokens.
    """
    return service.search(body.request(), service.current_settings())
