"""What a search refuses, and why.

StemmaError
 ├─ RequestError     EmptyQuery, QueryTooLong, InvalidK, InvalidShape, UnknownMethod
 ├─ Unavailable      QueryTimeout
 └─ ConfigurationError  EmbeddingMismatch
"""

from collections.abc import Iterable

from stemma.errors import ConfigurationError, RequestError, Unavailable


class EmptyQuery(RequestError):
    """Nothing but blanks was asked."""

    code, remedy = "empty_query", "Ask with at least one visible character."


class QueryTooLong(RequestError):
    """The query is longer than any model or keyword index reads with profit."""

    code, remedy = "query_too_long", "Shorten the query to 10,000 characters."


class InvalidK(RequestError):
    """The number of hits is out of bounds."""

    code, remedy = "invalid_k", "Ask for 1 to 1000 hits."


class InvalidShape(RequestError):
    """A measure of how passages are shaped is out of bounds."""

    code, remedy = "invalid_shape", "Ask for a diversity from 0 to 1 and for at least one token."


class UnknownMethod(RequestError):
    """No retrieval method has this name."""

    code, remedy = "unknown_method", "Use one of the methods that the message lists."

    def __init__(self, method: str, known: Iterable[str]) -> None:
        super().__init__(method, list(known))
        self.method, self.known = method, list(known)

    def __str__(self) -> str:
        return f"{self.method!r} is not one of {', '.join(self.known)}. {self.remedy}"


class QueryTimeout(Unavailable):
    """The search took longer than QUERY_TIMEOUT_S and was ended."""

    code, remedy = "query_timeout", "Narrow the scope, ask for fewer hits, or raise QUERY_TIMEOUT_S."


class EmbeddingMismatch(ConfigurationError):
    """The query would be embedded by another model than the one that made the active vectors; the two never meet."""

    code, remedy = (
        "embedding_mismatch",
        "Set EMBEDDING_MODEL to the model of the active index, or embed the corpus anew; `bm25` still answers.",
    )
