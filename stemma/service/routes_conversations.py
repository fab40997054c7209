"""`/api/conversations` and `/api/conversation-groups`: what was asked and answered, and in which folders it is kept."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from stemma.chat.conversations import (
    create_conversation,
    create_group,
    delete_conversation,
    delete_group,
    list_conversations,
    list_groups,
    read_conversation,
    rename_group,
    update_conversation,
)
from stemma.chat.messages import read_messages
from stemma.library.listing import source_of
from stemma.retrieval.scope import without_unstorable
from stemma.retrieval.snapshot import snapshot
from stemma.service.bodies_conversations import (
    ConversationBody,
    ConversationList,
    ConversationPatch,
    GroupBody,
    GroupList,
    GroupName,
    MessageBody,
    MessageList,
    NewConversation,
    stored_scope,
)
from stemma.service.problems import PROBLEMS, InvalidCursor, Problem
from stemma.service.routes_search import RunningService
from stemma.store.postgres import explained

LIMIT_MAX = 200

ConversationId = Annotated[str, Path(alias="id", description="A conversation_id.", examples=["5b1f0c2e6a7d4e0f9c3b2a1908f7e6d5"])]
GroupId = Annotated[str, Path(alias="id", description="A group_id.", examples=["0d9c8b7a6f5e4d3c2b1a09f8e7d6c5b4"])]

ONE: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "`unknown_conversation`, `unknown_group`, `unknown_workspace` or `unknown_document`."},
    **PROBLEMS,
}

router = APIRouter(prefix="/api", tags=["conversations"])


@router.get("/conversations", responses=ONE, summary="List conversations")
def list_all(
    *,
    service: RunningService,
    cursor: Annotated[
        str | None, Query(description="`next_cursor` of the page before.", examples=["2026-11-30T09:00:00+00:00 5b1f"])
    ] = None,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="Conversations per page.", examples=[50])] = 50,
    group: Annotated[str | None, Query(description="Only those of this group.", examples=["0d9c8b7a6f5e4d3c2b1a09f8e7d6c5b4"])] = None,
    ungrouped: Annotated[bool, Query(description="Only those of no group.", examples=[False])] = False,
    workspace: Annotated[str | None, Query(description="Only those of the workspace with this key.", examples=["default"])] = None,
    document: Annotated[
        str | None,
        Query(description="Only those whose scope names this document: a source_id or doc_id.", examples=["5c0b7a4e21f09d83"]),
    ] = None,
) -> ConversationList:
    """The one with the latest turn first."""
    after = None if cursor is None else _after(cursor)
    group, workspace = (None if value is None else without_unstorable(value) for value in (group, workspace))
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        documents = None if document is None else [source_of(connection, without_unstorable(document)).source_id]
        page, last = list_conversations(
            connection, limit=limit, after=after, workspace=workspace, group_id=group, ungrouped=ungrouped, documents=documents
        )
    next_cursor = f"{last[0].isoformat()} {last[1]}" if last else None
    return ConversationList(conversations=[ConversationBody.of(conversation) for conversation in page], next_cursor=next_cursor)


@router.post("/conversations", status_code=201, responses=ONE, summary="Begin a conversation")
def create(body: NewConversation, service: RunningService) -> ConversationBody:
    """An empty one. `POST /api/chat` makes one by itself, with its first turn."""
    with explained(), service.pool.connection() as connection:
        conversation_id = create_conversation(
            connection, now=datetime.now(UTC), workspace=body.workspace, group_id=body.group_id, title=body.title,
            source_scope=stored_scope(body.source_scope),
        )  # fmt: skip
        return ConversationBody.of(read_conversation(connection, conversation_id))


@router.get("/conversations/{id}", responses=ONE, summary="One conversation")
def read(conversation: ConversationId, service: RunningService) -> ConversationBody:
    """Without its messages."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        return ConversationBody.of(read_conversation(connection, without_unstorable(conversation)))


@router.patch("/conversations/{id}", responses=ONE, summary="Rename, move or re-scope a conversation")
def update(conversation: ConversationId, body: ConversationPatch, service: RunningService) -> ConversationBody:
    """What is not named stays, and so does its place in the list."""
    conversation = without_unstorable(conversation)
    with explained(), service.pool.connection() as connection:
        update_conversation(connection, conversation, body.changes())
        return ConversationBody.of(read_conversation(connection, conversation))


@router.delete("/conversations/{id}", status_code=204, responses=ONE, summary="Delete a conversation")
def delete(conversation: ConversationId, service: RunningService) -> Response:
    """With its messages, their evidence and their quotes."""
    with explained(), service.pool.connection() as connection:
        delete_conversation(connection, without_unstorable(conversation))
    return Response(status_code=204)


@router.get("/conversations/{id}/messages", responses=ONE, summary="The messages of a conversation")
def messages(
    conversation: ConversationId,
    service: RunningService,
    cursor: Annotated[int, Query(ge=-1, le=2**31 - 1, description="`next_cursor` of the page before.", examples=[-1])] = -1,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="Messages per page.", examples=[50])] = 50,
) -> MessageList:
    """In their order, each as it was shown when it was given: evidence and quotes are kept with it, whatever became of the documents."""
    conversation = without_unstorable(conversation)
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        read_conversation(connection, conversation)
        page, next_cursor = read_messages(connection, conversation, after=cursor, limit=limit)
    return MessageList(messages=[MessageBody.of(message) for message in page], next_cursor=next_cursor)


@router.get("/conversation-groups", responses=PROBLEMS, summary="List groups of conversations")
def groups(service: RunningService) -> GroupList:
    """By name."""
    with snapshot(service.pool, timeout_s=service.settings.query_timeout_s) as connection:
        return GroupList(groups=[GroupBody.model_validate(group) for group in list_groups(connection)])


@router.post("/conversation-groups", status_code=201, responses=PROBLEMS, summary="Make a group")
def make_group(body: GroupName, service: RunningService) -> GroupBody:
    """An empty one."""
    with explained(), service.pool.connection() as connection:
        return GroupBody.model_validate(create_group(connection, body.name, now=datetime.now(UTC)))


@router.patch("/conversation-groups/{id}", responses=ONE, summary="Rename a group")
def name_group(group: GroupId, body: GroupName, service: RunningService) -> GroupBody:
    """Its conversations stay in it."""
    with explained(), service.pool.connection() as connection:
        return GroupBody.model_validate(rename_group(connection, without_unstorable(group), body.name))


@router.delete("/conversation-groups/{id}", status_code=204, responses=ONE, summary="Delete a group")
def remove_group(group: GroupId, service: RunningService) -> Response:
    """Its conversations stay, with everything in them, without a group."""
    with explained(), service.pool.connection() as connection:
        delete_group(connection, without_unstorable(group))
    return Response(status_code=204)


def _after(cursor: str) -> tuple[datetime, str]:
    moment, _, conversation_id = cursor.replace("\0", "").partition(" ")
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        raise InvalidCursor(f"{cursor[:100]!r} is no cursor of this list") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC), without_unstorable(conversation_id)
