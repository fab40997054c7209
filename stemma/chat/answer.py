"""One turn: history -> query -> passages -> answer -> verified quotes -> stored, told as events while it happens.

Nothing is stored before the last event but one was taken: whoever stops listening before leaves nothing behind.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Literal

import structlog

from stemma.chat.citations import Citation, CitationFilter
from stemma.chat.condense import standalone_query
from stemma.chat.conversations import NEW_TITLE, SourceScope, create_conversation, new_id, read_conversation
from stemma.chat.errors import AgentConversation, EmptyQuestion
from stemma.chat.evidence import Evidence, evidence_of
from stemma.chat.extractive import extractive_answer
from stemma.chat.messages import History, TargetCorpus, Turn, append_turn, read_history, resolved_scope
from stemma.chat.prompts import answering
from stemma.errors import StemmaError
from stemma.lexical.index import Scope
from stemma.library.paths import DEFAULT_WORKSPACE
from stemma.llm import LanguageModel
from stemma.retrieval.answer import Hit, SearchAnswer
from stemma.retrieval.scope import EVERYWHERE, matches_nothing, normalized, without_unstorable
from stemma.retrieval.search import SearchRequest
from stemma.settings import Settings
from stemma.store.postgres import Connection, Pool, explained

Engine = Literal["condense", "simple"]
"""How a follow-up is searched: rewritten so that it stands alone, or as it was asked."""

NO_MODEL = "No language model is configured (STEMMA_LLM_URL)."
NO_GRAPH = "There is no knowledge graph to ask: the documents answered."

_log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Question:
    """What is asked, and of what."""

    text: str
    conversation_id: str | None = None
    """None: a new conversation, which exists once the answer does."""
    method: str | None = None
    k: int = 8
    engine: Engine | None = None
    """None: the setting CHAT_ENGINE."""
    corpus: TargetCorpus | None = None
    workspace: str = DEFAULT_WORKSPACE
    """These three are of a new conversation."""
    group_id: str | None = None
    source_scope: SourceScope | None = None


@dataclass(frozen=True)
class Retrieved:
    """The evidence, before anything is written about it."""

    query: str
    condensed_query: str | None
    method: str
    evidence: list[Evidence]
    degraded: list[str]


@dataclass(frozen=True)
class Written:
    """A piece of the answer, or of what the model thinks beforehand."""

    kind: Literal["text", "reasoning"]
    text: str


@dataclass(frozen=True)
class Cited:
    """Every quote of the answer, verified; and how many were not in the documents and are not shown."""

    citations: list[Citation]
    n_dropped: int


@dataclass(frozen=True)
class Stored:
    """The turn is in the conversation."""

    conversation_id: str
    question_id: str
    answer_id: str
    latency_ms: dict[str, int]
    degraded: list[str]


Event = Retrieved | Written | Cited | Stored

ScopeOf = Callable[[SourceScope], Scope]
"""Reads a stored scope; an empty one has been dealt with."""


@dataclass
class _Answer:
    """What grows while a turn is worked on."""

    began: float = field(default_factory=perf_counter)
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    latency_ms: dict[str, int] = field(default_factory=dict[str, int])
    degraded: list[str] = field(default_factory=list[str])
    text: str = ""
    reasoning: str = ""
    citations: Sequence[Citation] = ()
    n_dropped: int = 0
    model: str | None = None

    def measured(self, stage: str, since: float) -> None:
        self.latency_ms[stage] = round((perf_counter() - since) * 1000)


@dataclass(frozen=True)
class _Material:
    """What an answer is made from."""

    question: str
    query: str
    history: History
    evidence: Sequence[Evidence]
    about_nothing: str | None
    """Why nothing could be found, if nothing could."""

    @property
    def hits(self) -> list[Hit]:
        return [shown.hit for shown in self.evidence]


def answer_question(
    question: Question, *, pool: Pool, settings: Settings, search: Callable[[SearchRequest], SearchAnswer], model: LanguageModel | None,
    scope_of: ScopeOf,
) -> Generator[Event]:  # fmt: skip
    """The events of a turn, in the order Retrieved, Written..., Cited, Stored. Closing the generator before the end stores nothing.

    A model that is away before it wrote anything is replaced by quotes of the best passages; one that ends in the middle ends the turn.

    Raises:
        EmptyQuestion, UnknownConversation, UnknownGroup, UnknownWorkspace, UnknownDocument, AgentConversation: it cannot be asked.
        StemmaError: whatever the search or the model raises.
    """
    text = without_unstorable(question.text).strip()
    if not text:
        raise EmptyQuestion("the question is empty")
    answer = _Answer()
    conversation_id, source_scope, history, about_nothing = _conversation(question, pool)
    engine: Engine = question.engine or settings.chat_engine
    began = perf_counter()
    standalone = standalone_query(text, history.said, model=model, enabled=engine == "condense" and settings.condense_enabled)
    if history.said and engine == "condense":
        answer.measured("condense", began)
    answer.degraded += [standalone.fallback] if standalone.fallback else []
    answer.degraded += [NO_GRAPH] if question.corpus == "graph" else []

    scope = EVERYWHERE if source_scope is None else scope_of(source_scope) if source_scope else Scope(documents=())
    began = perf_counter()
    found = search(SearchRequest(standalone.query, method=question.method, k=question.k, scope=scope))
    answer.degraded += found.degraded
    with explained(), pool.connection() as connection:
        evidence = evidence_of(connection, found.hits)
        parts = {} if source_scope is None else {"source_scope": source_scope | {"resolved": _resolved(connection, scope)}}
    answer.measured("retrieval", began)
    condensed = standalone.query if standalone.condensed else None
    yield Retrieved(standalone.query, condensed, found.method, evidence, list(answer.degraded))

    began = perf_counter()
    yield from _written(answer, _Material(text, standalone.query, history, evidence, about_nothing), model, settings)
    answer.measured("generation", began)
    yield Cited(list(answer.citations), answer.n_dropped)

    answer.measured("total", answer.began)
    turn = Turn(
        question=text, question_parts=parts, asked_at=answer.asked_at, answer=answer.text, answered_at=datetime.now(UTC), evidence=evidence,
        citations=answer.citations, retrieval_method=question.method or settings.retrieval_method, latency_ms=answer.latency_ms,
        reasoning=answer.reasoning or None, condensed_query=condensed, chat_engine=engine, target_corpus=question.corpus, model=answer.model,
        degraded=answer.degraded, n_quotes_dropped=answer.n_dropped,
    )  # fmt: skip
    with explained(), pool.connection() as connection, connection.transaction():
        if question.conversation_id is None:
            create_conversation(
                connection, now=answer.asked_at, conversation_id=conversation_id, workspace=question.workspace, group_id=question.group_id,
                title=NEW_TITLE, source_scope=source_scope,
            )  # fmt: skip
        question_id, answer_id = append_turn(connection, conversation_id, turn, trimmed_to=history.trimmed_to)
    yield Stored(conversation_id, question_id, answer_id, answer.latency_ms, answer.degraded)


def _conversation(question: Question, pool: Pool) -> tuple[str, SourceScope | None, History, str | None]:
    """conversation_id, scope, history, and why there is nothing to look in, if there is not."""
    with explained(), pool.connection() as connection:
        if question.conversation_id is None:
            # Made and taken back: whatever it refuses is refused before any work, and nothing is left of it.
            with connection.transaction(force_rollback=True):
                made = create_conversation(
                    connection, now=datetime.now(UTC), conversation_id=new_id(), workspace=question.workspace, group_id=question.group_id,
                    source_scope=question.source_scope,
                )  # fmt: skip
                conversation = read_conversation(connection, made)
            history = History()
        else:
            conversation = read_conversation(connection, question.conversation_id)
            history = read_history(connection, conversation.conversation_id)
    if conversation.agent_session_id is not None:
        raise AgentConversation("an outside agent answers in this conversation")
    about_nothing = None
    if conversation.lost_its_documents:
        about_nothing = "Every document that this conversation is about was deleted."
    elif conversation.source_scope == {}:
        about_nothing = "This conversation is about no documents: nothing is selected."
    return conversation.conversation_id, conversation.source_scope, history, about_nothing


def _written(answer: _Answer, material: _Material, model: LanguageModel | None, settings: Settings) -> Generator[Written]:
    if model is not None and material.hits:
        try:
            yield from _by_model(answer, material, model, settings)
            return
        except StemmaError as error:
            if answer.text:
                raise  # it cannot be taken back
            _log.warning("language model did not answer", code=error.code)
            reason = f"The language model did not answer ({error.code})."
            answer.degraded.append(f"{reason} The best passages are quoted instead.")
            answer.model, answer.reasoning = None, ""
    else:
        reason = material.about_nothing or (NO_MODEL if model is None else "No answer was written.")
    extracted = extractive_answer(material.query, material.hits, reason=reason)
    answer.text, answer.citations = extracted.text, extracted.citations
    yield Written("text", extracted.text)


def _by_model(answer: _Answer, material: _Material, model: LanguageModel, settings: Settings) -> Generator[Written]:
    answer.model = model.model
    checked = CitationFilter(material.hits)
    request = answering(material.history.said, material.question, material.hits)
    with closing(model.stream(request, max_tokens=settings.chat_max_tokens)) as deltas:
        for delta in deltas:
            piece = without_unstorable(delta.text)
            if delta.kind == "reasoning":
                answer.reasoning += piece
                yield Written("reasoning", piece)
            elif shown := checked.feed(piece):
                answer.text += shown
                yield Written("text", shown)
    if rest := checked.finish():
        answer.text += rest
        yield Written("text", rest)
    answer.citations, answer.n_dropped = checked.citations, checked.n_dropped


def _resolved(connection: Connection, scope: Scope) -> dict[str, Any]:
    return resolved_scope(connection, Scope(documents=()) if matches_nothing(scope) else normalized(scope))
