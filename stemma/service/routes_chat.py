"""`POST /api/chat`: an answer from passages, told as it is written, each quote verified, stored when it is whole."""

from collections.abc import Generator
from functools import partial
from typing import Any

from anyio import CapacityLimiter
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from stemma.chat.answer import Cited, Event, Question, Retrieved, Stored, Written, answer_question
from stemma.llm import open_language_model
from stemma.service.bodies_conversations import ChatBody, CitationsEvent, DoneEvent, RetrievalEvent, TokenEvent, scope_of, stored_scope
from stemma.service.events import MEDIA_TYPE, Told, event_stream
from stemma.service.metrics import Metrics
from stemma.service.problems import PROBLEMS, Problem
from stemma.service.routes_search import RunningService
from stemma.service.state import Service

CHATS = 8  # worked on at once, in threads apart from those of searches: a model that is slow holds up no search

router = APIRouter(prefix="/api", tags=["chat"])

_threads = CapacityLimiter(CHATS)

_EXAMPLE = (
    'event: retrieval\ndata: {"query": "how often are backups tested", "sources": [{"rank": 1, …}], …}\n\n'
    'event: token\ndata: {"text": "“Backups are tested every month” [citation:0f3c9a1b2d4e5f60::3]"}\n\n'
    'event: citations\ndata: {"citations": [{"quote": "Backups are tested every month", "quote_char_start": 120, …}], "n_quotes_dropped": 0}\n\n'
    'event: done\ndata: {"conversation_id": "5b1f0c2e6a7d4e0f9c3b2a1908f7e6d5", …}\n\n'
)

ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}, "example": _EXAMPLE}}, "description": "The events."},
    404: {"model": Problem, "description": "`unknown_conversation`, `unknown_group`, `unknown_workspace` or `unknown_document`."},
    409: {"model": Problem, "description": "`agent_conversation`, or the model of the index is not at hand."},
    **PROBLEMS,
}


@router.post("/chat", responses=ANSWERS, response_class=StreamingResponse, summary="Ask a question")
async def chat(body: ChatBody, request: Request, service: RunningService) -> StreamingResponse:
    """Events, in this order: `retrieval` (the evidence), `token` (pieces of the answer) and `reasoning`, `citations`, `done`; or `error`, a
    problem, as the last. Without STEMMA_LLM_URL the best passages are quoted, and the answer says so.

    The turn is stored just before `done`: whoever hangs up earlier leaves nothing behind, no message and no conversation.
    """
    metrics: Metrics = request.app.state.metrics
    return await event_stream(
        lambda: _told(body, service, metrics), limiter=_threads, request_id=getattr(request.state, "request_id", None)
    )


def _told(body: ChatBody, service: Service, metrics: Metrics) -> Generator[Told]:
    settings = service.current_settings()
    question = Question(
        body.question, conversation_id=body.conversation_id, method=body.method, k=body.k, engine=body.engine, corpus=body.corpus,
        workspace=body.workspace, group_id=body.group_id, source_scope=stored_scope(body.source_scope),
    )  # fmt: skip
    with open_language_model(settings) as model:
        for event in answer_question(
            question,
            pool=service.pool,
            settings=settings,
            search=partial(service.search, settings=settings),
            model=model,
            scope_of=scope_of,
        ):
            if isinstance(event, Stored):
                metrics.observe_stages("chat", event.latency_ms)
            yield _named(event)


def _named(event: Event) -> Told:
    if isinstance(event, Retrieved):
        return "retrieval", RetrievalEvent.of(event)
    if isinstance(event, Written):
        return "token" if event.kind == "text" else "reasoning", TokenEvent(text=event.text)
    if isinstance(event, Cited):
        return "citations", CitationsEvent.of(event)
    return "done", DoneEvent.of(event)
