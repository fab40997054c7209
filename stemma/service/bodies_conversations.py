"""What requests about conversations carry and what they return, the events of a chat included."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from stemma.chat.answer import Cited, Engine, Retrieved, Stored
from stemma.chat.citations import Citation
from stemma.chat.conversations import NEW_TITLE, Conversation, SourceScope
from stemma.chat.messages import StoredMessage, TargetCorpus
from stemma.lexical.index import Scope
from stemma.library.paths import DEFAULT_WORKSPACE
from stemma.service.bodies import ScopeBody, Text, cleaned

Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), BeforeValidator(cleaned)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), BeforeValidator(cleaned)]

GROUNDING = "Where answers are looked for: null is the whole library, an empty object is nothing. Documents are kept by source_id."


def stored_scope(body: ScopeBody | None) -> SourceScope | None:
    """A scope as a conversation keeps it: without its null parts. One that has nothing but those restricts nothing, unlike an empty one."""
    if body is None:
        return None
    parts = body.model_dump(mode="json", exclude_none=True)
    return None if not parts and body.model_fields_set else parts


def scope_of(source_scope: SourceScope) -> Scope:
    """The scope that a search takes, of what a conversation kept."""
    return ScopeBody.model_validate(source_scope).scope()


class ConversationBody(BaseModel):
    """A conversation without its messages."""

    model_config = ConfigDict(from_attributes=True)

    conversation_id: str
    workspace: str = Field(description="Key of its owner.")
    group_id: str | None
    title: str = Field(description=f"`{NEW_TITLE}` until the first question, whose beginning it becomes.")
    source_scope: dict[str, Any] | None = Field(description=GROUNDING)
    document_ids: list[UUID] = Field(description="The documents that the scope names, those that were deleted too.")
    deleted_document_ids: list[UUID] = Field(description="Those of them that were deleted; when all were, it is about nothing.")
    document_id: UUID | None = Field(description="The one document of its scope, as long as it was not deleted.")
    agent_session_id: str | None = Field(description="Not null: an outside agent answers, and its session holds the turns.")
    target_corpus: TargetCorpus | None = Field(description="What the last question was asked of.")
    n_messages: int
    created_at: datetime
    updated_at: datetime = Field(description="Of the last turn; renaming and moving leave it.")

    @classmethod
    def of(cls, conversation: Conversation) -> "ConversationBody":
        """The body of a conversation."""
        return cls.model_validate(conversation)


class ConversationList(BaseModel):
    """A page of conversations, the one with the latest turn first."""

    conversations: list[ConversationBody]
    next_cursor: str | None = Field(description="Give it as `cursor` to get the next page; null after the last.")


class NewConversation(BaseModel):
    """A conversation to be."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{}, {"title": "Leave", "source_scope": {"folders": ["handbook"]}}]}
    )

    title: Title = NEW_TITLE
    workspace: Text = Field(DEFAULT_WORKSPACE, description="Key of its owner.")
    group_id: Text | None = None
    source_scope: ScopeBody | None = Field(None, description=GROUNDING)


class ConversationPatch(BaseModel):
    """What to change; what is absent stays."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"title": "Leave and holidays"}, {"group_id": None}]})

    title: Title | None = Field(None, description="Null changes nothing.")
    group_id: Text | None = Field(None, description="Null: out of its group.")
    source_scope: ScopeBody | None = Field(None, description=GROUNDING)

    def changes(self) -> dict[str, Any]:
        """The parts that were given, as `update_conversation` takes them."""
        given: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set}
        return given | ({"source_scope": stored_scope(self.source_scope)} if "source_scope" in given else {})


class GroupBody(BaseModel):
    """A folder of conversations."""

    model_config = ConfigDict(from_attributes=True)

    group_id: str
    name: str = Field(description="Two groups may have one.")
    created_at: datetime
    n_conversations: int


class GroupList(BaseModel):
    """Every group, by name."""

    groups: list[GroupBody]


class GroupName(BaseModel):
    """What a group is called."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "Research"}]})

    name: Name


class EvidenceBody(BaseModel):
    """A passage that an answer stands on, as it was when the answer was given."""

    model_config = ConfigDict(extra="ignore")

    rank: int = Field(description="From 1, best first.")
    chunk_id: str = Field(description="May stand for nothing any more; of another kind of evidence, its key.")
    source_id: UUID | None = Field(description="The document across its versions.")
    source_deleted_at: datetime | None = Field(default=None, description="Not null: the document is gone; what is shown of it stays.")
    present_doc_id: str | None = Field(
        default=None, description="The live version; where it differs from `trace.doc_id`, the text may have changed."
    )
    trace: dict[str, Any] = Field(
        description="Everything that is shown of it: `content`, `context`, `source`, `file_name`, `page`, `char_start`, …, and under `trace` "
        "the retrieval trace. With a `kind`, it is no chunk."
    )


class CitationBody(BaseModel):
    """A quote, verified before it was shown: in the version `doc_id`, the text between the two offsets is the quote."""

    model_config = ConfigDict(extra="ignore")

    position: int = Field(description="From 1, in the order of the answer.")
    marker: str = Field(description="What stands for it in the answer's text.")
    chunk_id: str
    doc_id: str = Field(description="The version that was quoted.")
    source_id: UUID
    source_deleted_at: datetime | None = None
    present_doc_id: str | None = Field(default=None, description="The version that is live; the offsets hold for it if it is `doc_id`.")
    source_path: str
    title: str
    page_start: int | None
    page_end: int | None
    section_path: list[str]
    quote: str
    quote_char_start: int = Field(description="Code points of the document's text.")
    quote_char_end: int = Field(description="Exclusive.")

    @classmethod
    def of(cls, citation: Citation, position: int) -> "CitationBody":
        """The body of a citation that was just made."""
        hit = citation.hit
        return cls(
            position=position, marker=citation.marker, chunk_id=hit.chunk_id, doc_id=hit.doc_id, source_id=UUID(hit.source_id),
            present_doc_id=hit.doc_id, source_path=hit.source_path, title=hit.title, page_start=hit.page_start, page_end=hit.page_end,
            section_path=hit.section_path, quote=citation.quote, quote_char_start=citation.quote_char_start,
            quote_char_end=citation.quote_char_end,
        )  # fmt: skip


class MessageBody(BaseModel):
    """A question, or an answer with how it was made."""

    message_id: str
    conversation_id: str
    turn_index: int = Field(description="The order, from 0; unique in its conversation.")
    role: Literal["user", "assistant", "system"]
    content: str = Field(description="An answer carries the marker `[citation:<chunk_id>]` behind each quote.")
    content_parts: dict[str, Any] = Field(description="Of a question: the scope it was asked of, with how many documents that meant.")
    created_at: datetime
    completed_at: datetime | None = Field(description="Null, of imported messages only: broken off.")
    retrieval_method: str | None
    latency_ms: dict[str, int] | None = Field(description="Per stage: condense, retrieval, generation, total.")
    reasoning: str | None
    condensed_query: str | None = Field(description="What was searched for instead of the question; null: the question itself.")
    chat_engine: str | None
    target_corpus: TargetCorpus | None
    graph_evidence: dict[str, Any] | None
    model: str | None = Field(description="Null: passages were quoted without one.")
    degraded: list[str] = Field(description="Why the answer is less than what was asked for, a sentence each.")
    n_quotes_dropped: int = Field(description="Quotes of the model that are not in the documents: never shown, only counted.")
    sources: list[EvidenceBody]
    citations: list[CitationBody]

    @classmethod
    def of(cls, stored: StoredMessage) -> "MessageBody":
        """The body of a stored message."""
        return cls.model_validate(stored.message | {"sources": stored.sources, "citations": stored.citations})


class MessageList(BaseModel):
    """A page of messages, by turn_index."""

    messages: list[MessageBody]
    next_cursor: int | None = Field(description="Give it as `cursor` to get the next page; null after the last.")


class ChatBody(BaseModel):
    """A question to a conversation, or the first one of a new conversation."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"question": "How often are backups tested?"},
                {"question": "And who does it?", "conversation_id": "5b1f0c2e6a7d4e0f9c3b2a1908f7e6d5"},
                {"question": "How many days carry over?", "source_scope": {"folders": ["handbook"]}, "method": "bm25", "k": 4},
            ]
        },
    )

    question: Text = Field(description="At most 10,000 characters.")
    conversation_id: Text | None = Field(None, description="Null: a new conversation, which exists once it is answered.")
    workspace: Text = Field(DEFAULT_WORKSPACE, description="Owner of a new conversation, by key.")
    group_id: Text | None = Field(None, description="Group of a new conversation.")
    source_scope: ScopeBody | None = Field(None, description=f"Of a new conversation. {GROUNDING}")
    method: Text | None = Field(None, description="Retrieval method; null: the setting RETRIEVAL_METHOD.")
    k: int = Field(8, strict=True, ge=1, le=50, description="Passages to answer from.")
    engine: Engine | None = Field(None, description="How a follow-up is searched for; null: the setting CHAT_ENGINE.")
    corpus: TargetCorpus | None = Field(None, description="What is asked; it is recorded even if the documents have to answer.")


class RetrievalEvent(BaseModel):
    """`retrieval`: what is searched for and what was found, before anything is written about it."""

    query: str
    condensed_query: str | None
    method: str
    degraded: list[str]
    sources: list[EvidenceBody]

    @classmethod
    def of(cls, found: Retrieved) -> "RetrievalEvent":
        """The event of what was retrieved."""
        sources = [
            EvidenceBody(
                rank=shown.rank, chunk_id=shown.hit.chunk_id, source_id=UUID(shown.hit.source_id), present_doc_id=shown.hit.doc_id,
                trace=shown.snapshot(),
            )
            for shown in found.evidence
        ]  # fmt: skip
        return cls(query=found.query, condensed_query=found.condensed_query, method=found.method, degraded=found.degraded, sources=sources)


class TokenEvent(BaseModel):
    """`token` and `reasoning`: a piece of the answer, or of what the model thinks beforehand."""

    text: str


class CitationsEvent(BaseModel):
    """`citations`: the quotes of the whole answer."""

    citations: list[CitationBody]
    n_quotes_dropped: int

    @classmethod
    def of(cls, found: Cited) -> "CitationsEvent":
        """The event of what was cited."""
        bodies = [CitationBody.of(citation, position) for position, citation in enumerate(found.citations, start=1)]
        return cls(citations=bodies, n_quotes_dropped=found.n_dropped)


class DoneEvent(BaseModel):
    """`done`: the turn is stored, and reads as it was shown."""

    model_config = ConfigDict(from_attributes=True)

    conversation_id: str
    question_id: str = Field(description="message_id.")
    answer_id: str = Field(description="message_id.")
    latency_ms: dict[str, int]
    degraded: list[str]

    @classmethod
    def of(cls, stored: Stored) -> "DoneEvent":
        """The event of what was stored."""
        return cls.model_validate(stored)
