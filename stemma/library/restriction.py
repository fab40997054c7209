"""Restrictions: which documents of the library something is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stemma.errors import RequestError
from stemma.store.rows import AssetStage

MADE_BY: dict[str, AssetStage] = {
    "parser": "documents",
    "parser_version": "documents",
    "chunker": "chunks",
    "embedding_model": "embeddings",
}
"""What a published document says of how it was made -> the stage that makes it anew."""


class InvalidRestriction(RequestError):
    """A restriction names something that documents are not told apart by."""

    code, remedy = "invalid_restriction", f"Select by {', '.join(MADE_BY)}, as `stemma show` prints them."


@dataclass(frozen=True)
class Restriction:
    """Documents that meet every part; a part that is not given restricts nothing."""

    paths: Sequence[str] | None = None
    """Source paths of files or folders; a folder stands for its subtree, "" for the library."""
    workspace: str | None = None
    """Key of a workspace."""
    made_by: Mapping[str, str] = field(default_factory=dict[str, str])
    """Names of MADE_BY -> value of what is published now. Raises InvalidRestriction for any other name."""

    def __post_init__(self) -> None:
        if unknown := sorted(self.made_by.keys() - MADE_BY.keys()):
            raise InvalidRestriction(f"documents are not told apart by {unknown[0]!r}")

    @property
    def first_stage(self) -> AssetStage | None:
        """The earliest stage that `made_by` speaks of; None when it is empty."""
        return next((stage for name, stage in MADE_BY.items() if name in self.made_by), None)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the queries over a restriction bind."""
        given = {name: self.made_by.get(name) for name in MADE_BY}
        return {
            "paths": None if self.paths is None else list(self.paths),
            "workspace": self.workspace,
            "by_recipe": bool(self.made_by),
        } | given


EVERYTHING = Restriction()
