"""The registry of contextualizers, and the exact strings that are embedded and indexed."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from stemma.chunking.frame import CONTEXT_SCHEMA
from stemma.context.none import none
from stemma.context.structural import structural
from stemma.errors import RequestError

CONTEXTUALIZERS: Mapping[str, Callable[[str | None, Sequence[str], str | None], str | None]] = {"none": none, "structural": structural}
"""Name -> a pure function of the document's title, a chunk's section path and its table's head; it returns one line, or None."""


class UnknownContextualizer(RequestError):
    """No contextualizer has this name."""

    code, remedy = "unknown_contextualizer", "Set CONTEXTUALIZER to one that is listed."


def contextualize(chunks: pl.DataFrame, *, method: str, title: str | None) -> pl.DataFrame:
    """One row (CONTEXT_SCHEMA) per chunk (CHUNK_SCHEMA), in the same order.

    Args:
        title: what the document's content or metadata calls itself; never a file's name.
    Raises:
        UnknownContextualizer: no contextualizer has this name; the message lists the known ones.
    """
    if method not in CONTEXTUALIZERS:
        raise UnknownContextualizer(f"{method!r} is not a contextualizer; known: {', '.join(sorted(CONTEXTUALIZERS))}")
    situate = CONTEXTUALIZERS[method]
    situations = chunks.select("section_path", "table_header").iter_rows()
    contexts = pl.Series("context", [situate(title, path, header) for path, header in situations], dtype=pl.String)
    content = pl.col("content")
    contextualized = pl.coalesce(pl.concat_str(pl.col("context"), pl.lit("\n\n"), content), content)
    return (
        chunks.with_columns(contexts)
        .select("chunk_index", "context", contextualized_content=contextualized)
        .match_to_schema(CONTEXT_SCHEMA)
    )
