"""Keyword entries of what is live, from its rows: every field is a copy, so an index can be made again without a file or a model."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from sql import load_queries
from stemma.lexical.index import ENTRY_SCHEMA
from stemma.library.paths import folders_of
from stemma.store.postgres import Connection

_COLUMNS = [name if name != "folders" else "source_path" for name in ENTRY_SCHEMA]


def live_entries(connection: Connection, publication_ids: Sequence[int]) -> pl.DataFrame:
    """The entries (ENTRY_SCHEMA) of those of the publications that are live, each whole, by publication and position."""
    return entries_frame(
        connection.execute(load_queries("sparse_coverage")["entries_of"], {"publication_ids": list(publication_ids)}).fetchall()
    )


def entries_frame(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """The entries (ENTRY_SCHEMA) that the rows of a query with the columns of `entries_of` give."""
    found = pl.DataFrame(rows, schema={name: ENTRY_SCHEMA.get(name, pl.String()) for name in _COLUMNS}, orient="row")
    folders = {path: folders_of(path) for path in found["source_path"].unique()}
    return found.select(
        pl.Series(name, [folders[path] for path in found["source_path"]], dtype=kind) if name == "folders" else pl.col(name)
        for name, kind in ENTRY_SCHEMA.items()
    )


def count_entries(entries: pl.DataFrame) -> dict[int, int]:
    """publication_id -> number of its entries."""
    return dict(entries.group_by("publication_id", maintain_order=True).len().iter_rows())
