"""What an audit finds: the promises it checks, each with a name and a sentence, and the frame of those that are broken."""

from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

VIOLATION_SCHEMA = pl.Schema(
    {
        "check": pl.String,
        "subject": pl.String,  # what it is about: a doc_id, a path, a publication, an object of the lake
        "source_id": pl.String,  # the source to make again; null where none is concerned
        "detail": pl.String,
    }
)

CHECKS = {
    "live_without_document": "Every publication that readers should see has its document.",
    "document_not_live": "Every document is the live publication of its source, and both say the same of it.",
    "chunks_not_dense": "Every document has the chunks that it states, with the indexes 0, 1, 2, ...",
    "chunk_hash_differs": "Every chunk is what its hash and its record say.",
    "offsets_differ": "Every chunk is the text of its document between its offsets, and every visible character is in a chunk.",
    "vector_missing": "Every published chunk has a vector in the active index.",
    "vector_differs": "Every vector is the one that its model gave for the chunk's string.",
    "vector_width_differs": "Every vector table is as wide as the model of its index.",
    "cached_vector_damaged": "Every cached vector has the dimension and the length that its model gives.",
    "active_index_differs": "One embedding index and one keyword index are active, and corpus_state names them.",
    "original_index_reused": "No chunk will get a number that another has.",
    "status_differs": "The status of every source is true.",
    "recorded_corpus_differs": "What is recorded as published is what is live.",
    "keyword_entries_missing": "The active keyword index has an entry for every published chunk.",
    "keyword_entries_orphaned": "The keyword indexes have no entry without a publication that may use it.",
    "keyword_index_unreadable": "The keyword indexes can be read.",
    "document_without_file": "Every document has its file in the library.",
    "file_without_document": "Every file of the library is known.",
    "file_differs": "Every file whose stat is unchanged still has the bytes that were read (checked only with --deep).",
    "stale": "Every document was made from its file as it is, by the recipes that the settings name, or says why it is not.",
    "lake_object_missing": "Every result that is recorded lies in the lake.",
    "lake_object_orphaned": "Every object of the lake is recorded.",
}
"""Name -> the promise, in the order in which they are shown."""


def violations(check: str, rows: Iterable[Sequence[Any]]) -> pl.DataFrame:
    """The rows (subject, source_id, detail) as violations (VIOLATION_SCHEMA) of one check."""
    return pl.DataFrame([(check, *row) for row in rows], schema=VIOLATION_SCHEMA, orient="row")
