"""What both engines know of an entry: the fields that a query is asked of, and a scope as restrictions of the others."""

from collections.abc import Iterator
from datetime import datetime

from stemma.lexical.index import Scope

TEXT_FIELDS = ("content", "contextualized_content")
"""Read by the analyzer of the index's language."""
NEUTRAL_FIELDS = ("content_neutral", "contextualized_content_neutral")
"""The same texts in the neutral reading."""

TIE_BREAKER = 0.3
"""A query's score is that of the best of the four fields plus this times the others: Elasticsearch's multi_match `best_fields`.

Span recall@5 on anthropic / chroma_chunking / xquad_en / xquad_de: English alone .662 .841 .981 .934, best field .650 .852 .983 .934,
with 0.3 of the others .655 .848 .984 .936, sum .644 .845 .984 .938; xquad_zh .169 by English alone, .993 by all others.
"""


def keyword_restrictions(scope: Scope) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(fields, values) of each part that is given: one of the fields must equal one of the values."""
    parts: tuple[tuple[tuple[str, ...], tuple[str, ...] | None], ...] = (
        (("workspace",), scope.workspaces),
        (("folders",), scope.folders),
        (("source_id", "doc_id"), scope.documents),
        (("file_type",), scope.file_types),
        (("document_type",), scope.document_types),
        (("language",), scope.languages),
        (("sections",), scope.sections),
    )
    for fields, values in parts:
        if values is not None:
            yield fields, values


def date_restrictions(scope: Scope) -> Iterator[tuple[str, datetime | None, datetime | None]]:
    """(field, from, before) of each clock with at least one bound.

    An engine may keep its dates less exactly than PostgreSQL does. It then widens the bounds: what it lets through is looked at once more.
    `ingested_from` is left to that look: an entry is written before its document is published, and bears the earlier moment.
    """
    clocks = (
        ("file_modified_at", scope.modified_from, scope.modified_before),
        ("ingested_at", None, scope.ingested_before),
    )
    for field, start, end in clocks:
        if start is not None or end is not None:
            yield field, start, end


def is_encodable(value: str) -> bool:
    """Whether the value has UTF-8: one with a lone surrogate equals nothing that is stored."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
