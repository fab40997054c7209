"""Named queries: sql/queries/<topic>.sql holds each under a `-- name:` line with a sentence about it."""

import re
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def load_queries(topic: str) -> dict[str, LiteralString]:
    """The queries of sql/queries/<topic>.sql by name. Raises FileNotFoundError for an unknown topic."""
    _, *parts = _NAME.split((files("sql") / "queries" / f"{topic}.sql").read_text("utf-8"))
    # The files ship with the code, so they are as trustworthy as literals.
    return {name: cast(LiteralString, body.strip()) for name, body in zip(parts[::2], parts[1::2], strict=True)}
