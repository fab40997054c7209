"""Messages: a turn is stored whole or not at all, and read again as it was shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from sql import load_queries
from stemma.chat.citations import Citation
from stemma.chat.conversations import new_id
from stemma.chat.errors import UnknownConversation
from stemma.chat.evidence import Evidence
from stemma.chat.prompts import Said
from stemma.lexical.index import Scope
from stemma.retrieval.scope import as_parameters
from stemma.store.postgres import Connection

HISTORY_MAX_MESSAGES, HISTORY_MAX_CHARS = 40, 12_000
"""What a model is given of the history at most; older messages stay stored and shown."""

TITLE_CHARS = 80

TargetCorpus = Literal["rag", "graph"]


@dataclass(frozen=True)
class Turn:
    """A question with its answer, ready to be stored; everything by value, so that it outlives settings and documents."""

    question: str
    question_parts: dict[str, Any]
    asked_at: datetime
    answer: str
    answered_at: datetime
    evidence: Sequence[Evidence]
    citations: Sequence[Citation]
    retrieval_method: str
    latency_ms: Mapping[str, int]
    reasoning: str | None
    condensed_query: str | None
    chat_engine: str
    target_corpus: TargetCorpus | None
    model: str | None
    degraded: Sequence[str] = ()
    n_quotes_dropped: int = 0


@dataclass(frozen=True)
class History:
    """What a model is given of a conversation."""

    said: list[Said] = field(default_factory=list[Said])
    """In the order in which it was said."""
    trimmed_to: tuple[str, int] | None = None
    """message_id and turn_index of its first message, if older ones were left out."""


@dataclass(frozen=True)
class StoredMessage:
    """A message with its evidence and quotes."""

    message: dict[str, Any]
    sources: list[dict[str, Any]]
    citations: list[dict[str, Any]]


def title_of(question: str) -> str:
    """The beginning of a question, fit for a list."""
    line = " ".join(question.split())
    if len(line) <= TITLE_CHARS:
        return line
    cut = line[: TITLE_CHARS - 1]
    return f"{cut[: cut.rfind(' ')] if ' ' in cut else cut}…"


def append_turn(connection: Connection, conversation_id: str, turn: Turn, *, trimmed_to: tuple[str, int] | None = None) -> tuple[str, str]:
    """Store a turn behind the others and bring its conversation to the front; returns the message_ids of question and answer.

    The caller owns the transaction: with it, everything stands or nothing does. Turns that are appended at once queue up.
    Raises UnknownConversation: it was deleted meanwhile.
    """
    queries = load_queries("conversations")
    # Sources before conversations, as a deletion takes them: it marks this evidence, or this sees that it began.
    held = sorted({UUID(shown.hit.source_id) for shown in turn.evidence} | {UUID(citation.hit.source_id) for citation in turn.citations})
    connection.execute(queries["hold_sources"], {"source_ids": held})
    if connection.execute(queries["lock_conversation"], {"conversation_id": conversation_id}).fetchone() is None:
        raise UnknownConversation(f"No conversation has the id {conversation_id!r}")
    ((last,),) = connection.execute(queries["last_turn_index"], {"conversation_id": conversation_id}).fetchall()
    question_id, answer_id = new_id(), new_id()
    connection.execute(queries["insert_message"], _question_row(turn, conversation_id, question_id, last + 1))
    connection.execute(queries["insert_message"], _answer_row(turn, conversation_id, answer_id, last + 2))
    _insert_evidence(connection, answer_id, turn)
    touched = {"conversation_id": conversation_id, "title": title_of(turn.question), "now": turn.answered_at}
    connection.execute(queries["touch_conversation"], touched)
    if trimmed_to:
        message_id, turn_index = trimmed_to
        connection.execute(
            queries["trim_history"], {"conversation_id": conversation_id, "message_id": message_id, "turn_index": turn_index}
        )
    return question_id, answer_id


def read_history(connection: Connection, conversation_id: str) -> History:
    """The latest messages that fit, oldest first."""
    asked = {"conversation_id": conversation_id, "limit": HISTORY_MAX_MESSAGES + 1}
    rows = connection.execute(load_queries("conversations")["read_history"], asked).fetchall()
    kept: list[tuple[str, int, Said]] = []
    n_chars = 0
    for message_id, turn_index, role, content in rows[:HISTORY_MAX_MESSAGES]:
        n_chars += len(content)
        if n_chars > HISTORY_MAX_CHARS:
            break
        kept.append((message_id, turn_index, Said(role, content)))
    kept.reverse()
    trimmed = len(kept) < len(rows) and bool(kept)
    return History([said for _, _, said in kept], kept[0][:2] if trimmed else None)


def read_messages(connection: Connection, conversation_id: str, *, after: int = -1, limit: int) -> tuple[list[StoredMessage], int | None]:
    """A page of messages by turn_index, each with its evidence by rank and its quotes by position, and the cursor of the next page."""
    queries = load_queries("conversations")
    with connection.cursor(row_factory=dict_row) as cursor:
        asked = {"conversation_id": conversation_id, "after": after, "limit": limit + 1}
        found = cursor.execute(queries["read_messages"], asked).fetchall()
        page = found[:limit]
        of_page = {"message_ids": [message["message_id"] for message in page]}
        sources = cursor.execute(queries["read_message_sources"], of_page).fetchall()
        citations = cursor.execute(queries["read_citations"], of_page).fetchall()
    messages = [
        StoredMessage(
            message,
            [source for source in sources if source["message_id"] == message["message_id"]],
            [citation for citation in citations if citation["message_id"] == message["message_id"]],
        )
        for message in page
    ]
    return messages, page[-1]["turn_index"] if len(found) > limit else None


def resolved_scope(connection: Connection, scope: Scope) -> dict[str, Any]:
    """How many documents a scope meant when it was asked, and a hash of which: recorded then, never computed again."""
    query = load_queries("conversations")["scope_documents"].format(in_scope=load_queries("retrieval")["in_scope"])
    with connection.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(query, as_parameters(scope)).fetchone()  # pyright: ignore[reportArgumentType]
    assert found is not None
    return found


def _question_row(turn: Turn, conversation_id: str, message_id: str, turn_index: int) -> dict[str, Any]:
    return dict.fromkeys(_OF_ANSWERS) | {
        "message_id": message_id, "conversation_id": conversation_id, "turn_index": turn_index, "role": "user", "content": turn.question,
        "content_parts": Jsonb(turn.question_parts), "created_at": turn.asked_at, "completed_at": turn.asked_at,
        "degraded": [], "n_quotes_dropped": 0,
    }  # fmt: skip


def _answer_row(turn: Turn, conversation_id: str, message_id: str, turn_index: int) -> dict[str, Any]:
    return {
        "message_id": message_id, "conversation_id": conversation_id, "turn_index": turn_index, "role": "assistant", "content": turn.answer,
        "content_parts": Jsonb({}), "created_at": turn.asked_at, "completed_at": turn.answered_at, "retrieval_method": turn.retrieval_method,
        "latency_ms": Jsonb(dict(turn.latency_ms)), "reasoning": turn.reasoning, "condensed_query": turn.condensed_query,
        "chat_engine": turn.chat_engine, "target_corpus": turn.target_corpus, "graph_evidence": None, "model": turn.model,
        "degraded": list(turn.degraded), "n_quotes_dropped": turn.n_quotes_dropped,
    }  # fmt: skip


_OF_ANSWERS = (
    "retrieval_method", "latency_ms", "reasoning", "condensed_query", "chat_engine", "target_corpus", "graph_evidence", "model",
)  # fmt: skip


def _insert_evidence(connection: Connection, message_id: str, turn: Turn) -> None:
    queries = load_queries("conversations")
    evidence = {
        "message_id": message_id, "now": turn.answered_at,
        "ranks": [shown.rank for shown in turn.evidence],
        "chunk_ids": [shown.hit.chunk_id for shown in turn.evidence],
        "source_ids": [UUID(shown.hit.source_id) for shown in turn.evidence],
        "traces": [Jsonb(shown.snapshot()) for shown in turn.evidence],
    }  # fmt: skip
    connection.execute(queries["insert_message_sources"], evidence)
    with connection.cursor() as cursor:
        cursor.executemany(
            queries["insert_citation"],
            [_citation_row(message_id, position, citation, turn.answered_at) for position, citation in enumerate(turn.citations, start=1)],
        )


def _citation_row(message_id: str, position: int, citation: Citation, now: datetime) -> dict[str, Any]:
    hit = citation.hit
    return {
        "message_id": message_id, "position": position, "marker": citation.marker, "chunk_id": hit.chunk_id, "doc_id": hit.doc_id,
        "source_id": UUID(hit.source_id), "source_path": hit.source_path, "title": hit.title, "page_start": hit.page_start,
        "page_end": hit.page_end, "section_path": hit.section_path, "quote": citation.quote,
        "quote_char_start": citation.quote_char_start, "quote_char_end": citation.quote_char_end, "now": now,
    }  # fmt: skip
