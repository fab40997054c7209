"""Where a search looks, as both arms understand it."""

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import replace

from stemma.lexical.index import Scope

EVERYWHERE = Scope()


def normalized(scope: Scope) -> Scope:
    """The scope in the form in which the corpus stores its values.

    Folders and workspaces are NFC; a folder has no slash at either end, and the root's subtree is the whole library, so it
    restricts nothing. Ids are lower case; file types are lower case without the dot. A value that nothing stored can equal is
    left out: it matches nothing, and must not come to mean the root.
    """
    folders = _each(scope.folders, lambda folder: unicodedata.normalize("NFC", folder).strip("/"))
    return replace(
        scope,
        workspaces=_each(scope.workspaces, lambda key: unicodedata.normalize("NFC", key)),
        folders=None if folders is None or "" in folders else folders,
        documents=_each(scope.documents, str.lower),
        file_types=_each(scope.file_types, lambda kind: kind.lower().removeprefix(".")),
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


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can hold the text."""
    return without_unstorable(text) == text


def _each(values: Iterable[str] | None, change: Callable[[str], str]) -> tuple[str, ...] | None:
    return None if values is None else tuple(change(value) for value in values if is_storable(value))
