"""Conversations and their groups: made, listed, renamed, moved, deleted, and read again as they were shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg.errors import ForeignKeyViolation
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from sql import load_queries
from stemma.chat.errors import UnknownConversation, UnknownGroup
from stemma.library.listing import UnknownDocument
from stemma.library.paths import DEFAULT_WORKSPACE
from stemma.library.pruning import UnknownWorkspace
from stemma.store.postgres import Connection

NEW_TITLE = "New chat"

SourceScope = dict[str, Any]
"""The parts of a search's scope as JSON, null parts left out; empty: nothing."""


@dataclass(frozen=True)
class Conversation:
    """A conversation without its messages."""

    conversation_id: str
    workspace: str
    """Key of its owner; it does not restrict where answers are looked for."""
    group_id: str | None
    title: str
    source_scope: SourceScope | None
    """None: the whole library; empty: nothing."""
    document_ids: list[UUID]
    """The sources that the scope names, those that were deleted too."""
    deleted_document_ids: list[UUID]
    document_id: UUID | None
    """The one source of its scope, as long as it was not deleted."""
    agent_session_id: str | None
    history_start_message_id: str | None
    history_start_turn_index: int | None
    created_at: datetime
    updated_at: datetime
    n_messages: int
    target_corpus: str | None
    """What the last answer was asked of."""

    @property
    def lost_its_documents(self) -> bool:
        """Whether everything that its scope names was deleted: it is about nothing then, not about everything."""
        return bool(self.document_ids) and set(self.document_ids) <= set(self.deleted_document_ids)


@dataclass(frozen=True)
class Group:
    """A folder of conversations."""

    group_id: str
    name: str
    created_at: datetime
    n_conversations: int


def new_id() -> str:
    """An id that nothing had before."""
    return uuid4().hex


def create_conversation(
    connection: Connection, *, now: datetime, conversation_id: str | None = None, workspace: str = DEFAULT_WORKSPACE,
    group_id: str | None = None, title: str = NEW_TITLE, source_scope: SourceScope | None = None,
) -> str:  # fmt: skip
    """A new conversation's id. Documents that its scope names by a doc_id are kept by their source, which an edit does not change.

    Raises UnknownWorkspace, UnknownGroup, UnknownDocument.
    """
    scope, document_ids = stable_scope(connection, source_scope)
    given = {
        "conversation_id": conversation_id or new_id(), "workspace": workspace, "group_id": group_id, "title": title,
        "source_scope": None if scope is None else Jsonb(scope), "document_ids": document_ids, "now": now,
    }  # fmt: skip
    try:
        with connection.transaction():
            made = connection.execute(load_queries("conversations")["insert_conversation"], given).fetchone()
    except ForeignKeyViolation:
        raise UnknownGroup(f"No group has the id {group_id!r}") from None
    if made is None:
        raise UnknownWorkspace(f"No workspace has the key {workspace!r}")
    return made[0]


def stable_scope(connection: Connection, source_scope: SourceScope | None) -> tuple[SourceScope | None, list[UUID]]:
    """The scope with its documents named by their sources, and these, ascending. Raises UnknownDocument."""
    names: list[str] = list((source_scope or {}).get("documents") or ())
    if source_scope is None or not names:
        return source_scope, []
    found = dict(connection.execute(load_queries("conversations")["sources_named"], {"names": names}).fetchall())
    if unknown := [name for name in names if name not in found]:
        raise UnknownDocument(f"No document has the id {unknown[0]!r}")
    document_ids = sorted(set(found.values()))
    return source_scope | {"documents": [str(source_id) for source_id in document_ids]}, document_ids


def read_conversation(connection: Connection, conversation_id: str) -> Conversation:
    """One conversation. Raises UnknownConversation."""
    found = _conversations(connection, conversation_id=conversation_id, limit=1)
    if not found:
        raise UnknownConversation(f"No conversation has the id {conversation_id!r}")
    return found[0]


def list_conversations(
    connection: Connection, *, limit: int, after: tuple[datetime, str] | None = None, workspace: str | None = None,
    group_id: str | None = None, ungrouped: bool = False, documents: Sequence[UUID] | None = None,
) -> tuple[list[Conversation], tuple[datetime, str] | None]:  # fmt: skip
    """A page of at most `limit` conversations, the one with the latest turn first, and the cursor of the next page.

    Args:
        documents: only those whose scope names all of these sources.
    """
    page = _conversations(
        connection, limit=limit + 1, after=after, workspace=workspace, group_id=group_id, ungrouped=ungrouped, documents=documents
    )
    last = page[:limit][-1] if len(page) > limit else None
    return page[:limit], (last.updated_at, last.conversation_id) if last else None


def update_conversation(connection: Connection, conversation_id: str, changes: dict[str, Any]) -> None:
    """Change what `changes` names: `title`, `group_id` (None: no group), `source_scope`. Its place in the list stays.

    Raises UnknownConversation, UnknownGroup, UnknownDocument.
    """
    scope, document_ids = stable_scope(connection, changes.get("source_scope"))
    given = {
        "conversation_id": conversation_id, "title": changes.get("title"),
        "moved": "group_id" in changes, "group_id": changes.get("group_id"),
        "rescoped": "source_scope" in changes, "source_scope": None if scope is None else Jsonb(scope), "document_ids": document_ids,
    }  # fmt: skip
    try:
        with connection.transaction():
            changed = connection.execute(load_queries("conversations")["update_conversation"], given).fetchone()
    except ForeignKeyViolation:
        raise UnknownGroup(f"No group has the id {changes.get('group_id')!r}") from None
    if changed is None:
        raise UnknownConversation(f"No conversation has the id {conversation_id!r}")


def delete_conversation(connection: Connection, conversation_id: str) -> None:
    """With its messages, their evidence and quotes. Raises UnknownConversation."""
    if connection.execute(load_queries("conversations")["delete_conversation"], {"conversation_id": conversation_id}).fetchone() is None:
        raise UnknownConversation(f"No conversation has the id {conversation_id!r}")


def list_groups(connection: Connection) -> list[Group]:
    """Every group, by name."""
    return _groups(connection, None)


def create_group(connection: Connection, name: str, *, now: datetime) -> Group:
    """A new group; two may have one name."""
    group_id = new_id()
    connection.execute(load_queries("conversations")["insert_group"], {"group_id": group_id, "name": name, "now": now})
    return Group(group_id, name, now, 0)


def rename_group(connection: Connection, group_id: str, name: str) -> Group:
    """The group under its new name. Raises UnknownGroup."""
    if connection.execute(load_queries("conversations")["rename_group"], {"group_id": group_id, "name": name}).fetchone() is None:
        raise UnknownGroup(f"No group has the id {group_id!r}")
    return _groups(connection, group_id)[0]


def delete_group(connection: Connection, group_id: str) -> None:
    """Its conversations stay, without a group. Raises UnknownGroup."""
    if connection.execute(load_queries("conversations")["delete_group"], {"group_id": group_id}).fetchone() is None:
        raise UnknownGroup(f"No group has the id {group_id!r}")


def _groups(connection: Connection, group_id: str | None) -> list[Group]:
    with connection.cursor(row_factory=class_row(Group)) as cursor:
        return cursor.execute(load_queries("conversations")["list_groups"], {"group_id": group_id}).fetchall()


def _conversations(
    connection: Connection, *, limit: int, conversation_id: str | None = None, after: tuple[datetime, str] | None = None,
    workspace: str | None = None, group_id: str | None = None, ungrouped: bool = False, documents: Sequence[UUID] | None = None,
) -> list[Conversation]:  # fmt: skip
    after_at, after_id = after or (None, None)
    asked = {
        "conversation_id": conversation_id, "workspace": workspace, "group_id": group_id, "ungrouped": ungrouped,
        "document_ids": list(documents) if documents else None, "after_at": after_at, "after_id": after_id, "limit": limit,
    }  # fmt: skip
    with connection.cursor(row_factory=class_row(Conversation)) as cursor:
        return cursor.execute(load_queries("conversations")["read_conversations"], asked).fetchall()
