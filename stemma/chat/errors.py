"""What conversations refuse, and why.

StemmaError
 └─ RequestError     UnknownConversation, UnknownGroup, AgentConversation, EmptyQuestion
"""

from stemma.errors import RequestError


class UnknownConversation(RequestError):
    """No conversation has this id."""

    code, remedy = "unknown_conversation", "`GET /api/conversations` lists them."


class UnknownGroup(RequestError):
    """No group of conversations has this id."""

    code, remedy = "unknown_group", "`GET /api/conversation-groups` lists them."


class AgentConversation(RequestError):
    """The turns of the conversation are in the session of an outside agent."""

    code, remedy = "agent_conversation", "Go on in the agent's session, or begin a new conversation."


class EmptyQuestion(RequestError):
    """Nothing but blanks was asked."""

    code, remedy = "empty_question", "Ask with at least one visible character."
