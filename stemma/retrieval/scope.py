"""Where a search looks, as both arms understand it."""

import unicodedata
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, cast

from psycopg import sql

from sql import load_queries
from stemma.lexical.index import Scope

EVERYWHERE = Scope()
LAST_PAGE = 2**31 - 1  # the largest number that the column holds


def normalized(scope: Scope) -> Scope:
    """The scope in the form in which the corpus stores its values.

    Folders and workspaces are NFC; a folder has no slash at either end, and the root's subtree is the whole library, so it
    restricts nothing. Ids and languages are lower case, document types upper case; file types are lower case without the dot. A moment
    without a time zone is UTC. A value that nothing stored can equal is left out: it matches nothing, and must not come to mean the root.
    """
    folders = _each(scope.folders, lambda folder: unicodedata.normalize("NFC", folder).strip("/"))
    return Scope(
        workspaces=_each(scope.workspaces, lambda key: unicodedata.normalize("NFC", key)),
        folders=None if folders is None or "" in folders else folders,
        documents=_each(scope.documents, str.lower),
        file_types=_each(scope.file_types, lambda kind: kind.lower().removeprefix(".")),
        document_types=_each(scope.document_types, str.upper),
        languages=_each(scope.languages, str.lower),
        pages=_page_ranges(scope.pages),
        sections=_each(scope.sections, str),
        modified_from=_in_utc(scope.modified_from),
        modified_before=_in_utc(scope.modified_before),
        ingested_from=_in_utc(scope.ingested_from),
        ingested_before=_in_utc(scope.ingested_before),
    )


def matches_nothing(scope: Scope) -> bool:
    """Whether some part is an empty list."""
    return () in vars(scope).values()


def narrows_documents_down(scope: Scope) -> bool:
    """Whether the scope takes some passages of a document and leaves others."""
    return scope.pages is not None or scope.sections is not None


def scoped(name: str, **identifiers: sql.Composable) -> sql.Composed:
    """The query of sql/queries/retrieval.sql with the conditions of a scope, whose values are `as_parameters`."""
    queries = load_queries("retrieval")
    conditions = {condition: sql.SQL(queries[condition]) for condition in ("in_scope", "passage_in_scope")}
    return sql.SQL(queries[name]).format(**conditions, **identifiers)


def as_parameters(scope: Scope) -> dict[str, Any]:
    """The values that the conditions of `scoped` bind."""
    parts = {name: _as_array(part) for name, part in vars(scope).items() if name != "pages"}
    pages = scope.pages
    return parts | {
        "first_pages": None if pages is None else [first for first, _ in pages],
        "last_pages": None if pages is None else [last for _, last in pages],
    }


def _as_array(part: Any) -> Any:
    return list(cast(tuple[str, ...], part)) if isinstance(part, tuple) else part


def without_unstorable(text: str) -> str:
    """The text without NUL and lone surrogates, which neither PostgreSQL nor UTF-8 can hold."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold the text."""
    return without_unstorable(text) == text


def _each(values: Iterable[str] | None, change: Callable[[str], str]) -> tuple[str, ...] | None:
    return None if values is None else tuple(change(value) for value in values if is_storable(value))


def _page_ranges(pages: tuple[tuple[int, int], ...] | None) -> tuple[tuple[int, int], ...] | None:
    """Those of the ranges that some page can lie in, within the numbers that pages can have."""
    if pages is None:
        return None
    return tuple((max(first, 1), min(last, LAST_PAGE)) for first, last in pages if max(first, 1) <= min(last, LAST_PAGE))


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment
