"""Where a search looks, as both arms understand it."""

import unicodedata
from collections.abc import Iterable

from stemma.lexical.index import Scope

EVERYWHERE = Scope()


def normalized(scope: Scope) -> Scope:
    """The scope in the form in which the corpus stores its values.

    Folders and workspaces are NFC; a folder has no slash at either end, and the root's subtree is the whole library, so it
    restricts nothing. Ids are lower case; file types are lower case without the dot. NUL, which no stored value holds, is removed.
    """
    folders = None if scope.folders is None else tuple(_plain(folder).strip("/") for folder in scope.folders)
    return Scope(
        workspaces=_each(scope.workspaces),
        folders=None if folders is None or "" in folders else folders,
        documents=None if scope.documents is None else tuple(_plain(document).lower() for document in scope.documents),
        file_types=None if scope.file_types is None else tuple(_plain(kind).lower().removeprefix(".") for kind in scope.file_types),
    )


def matches_nothing(scope: Scope) -> bool:
    """Whether some part is an empty list."""
    return () in (scope.workspaces, scope.folders, scope.documents, scope.file_types)


def as_parameters(scope: Scope) -> dict[str, list[str] | None]:
    """The values that `in_scope` of sql/queries/retrieval.sql binds."""
    parts = {"workspaces": scope.workspaces, "folders": scope.folders, "documents": scope.documents, "file_types": scope.file_types}
    return {name: None if values is None else list(values) for name, values in parts.items()}


def without_unstorable(text: str) -> str:
    """The text without NUL and lone surrogates, which neither PostgreSQL nor UTF-8 can hold."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def _each(values: Iterable[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(map(_plain, values))


def _plain(value: str) -> str:
    return unicodedata.normalize("NFC", without_unstorable(value))
