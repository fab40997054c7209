"""What entries and queries are to Elasticsearch: settings, mapping, documents and query trees.

`content` and `contextualized_content` are read by the engine's own analyzer of the index's language; beside each lies its neutral
reading (`stemma.lexical.analysis`), whose terms are ours and only parted by the engine. Scores are put together as `stemma.lexical.fields` says.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from stemma.lexical.analysis import STOP_WORDS, english_words, neutral_terms, writes_without_spaces
from stemma.lexical.fields import NEUTRAL_FIELDS, TEXT_FIELDS, TIE_BREAKER, date_restrictions, is_encodable, keyword_restrictions
from stemma.lexical.index import Scope
from stemma.lexical.query_language import Clause, clauses_of

FORMAT = "stemma-1"
"""Name of this mapping, kept in it: an index without it was not made here."""

MAX_QUERY_WORDS = 240
"""Words of a query, per reading; what follows is ignored. Four fields ask for each, and a small server takes 1,024 clauses in all."""

MAX_CLAUSES = 50
"""Clauses of a query with operators; those after them are ignored."""

LARGEST_VALUES = 65_536
"""Values that a server takes in one list."""

_STOP_WORDS = frozenset(STOP_WORDS)
_KEYWORD: dict[str, Any] = {"type": "keyword"}
_INTEGER: dict[str, Any] = {"type": "integer"}
_DATE: dict[str, Any] = {"type": "date"}
_NEUTRAL: dict[str, Any] = {"type": "text", "analyzer": "whitespace"}


def index_settings(language: str) -> dict[str, Any]:
    """Settings of an index. It is refreshed when entries were written and at no other time; one replica where there is a second node."""
    return {
        "analysis": {"analyzer": {"default": {"type": language}}},
        "similarity": {"default": {"type": "BM25"}},
        "number_of_shards": 1,
        "auto_expand_replicas": "0-1",
        "refresh_interval": "-1",
    }


def mapping(language: str) -> dict[str, Any]:
    """Fields of an index; a document with any other is refused.

    `doc_id`, `chunk_id` and `original_index` are not indexed: what filters or sorts by them reads their doc values.
    """
    text = {"type": "text", "analyzer": language}
    return {
        "dynamic": "strict",
        "_meta": {"format": FORMAT, "language": language},
        "_source": {"excludes": list(NEUTRAL_FIELDS)},
        "properties": {
            "content": text,
            "contextualized_content": text,
            "doc_id": {"type": "keyword", "index": False},
            "chunk_id": {"type": "keyword", "index": False},
            "original_index": {"type": "integer", "index": False},
            **dict.fromkeys(NEUTRAL_FIELDS, _NEUTRAL),
            "publication_id": {"type": "long"},
            **dict.fromkeys(("source_id", "workspace", "folders", "file_type", "document_type", "language", "sections"), _KEYWORD),
            **dict.fromkeys(("page_start", "page_end"), _INTEGER),
            **dict.fromkeys(("file_modified_at", "ingested_at"), _DATE),
        },
    }


def document(row: dict[str, Any]) -> dict[str, Any]:
    """One row of ENTRY_SCHEMA; null is left out."""
    made = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items() if value is not None}
    for field, neutral in zip(TEXT_FIELDS, NEUTRAL_FIELDS, strict=True):
        made[neutral] = " ".join(_counting(neutral_terms(row[field] or "")))
    return made


def query_of(text: str, scope: Scope, *, operators: bool = False) -> dict[str, Any] | None:
    """The query of a text within a scope; None if nothing can match. The text reaches no parser: every word of it is looked up."""
    clauses = clauses_of(text) if operators else [Clause(text)]
    asked = [(clause.occurs, query) for clause in clauses[:MAX_CLAUSES] if (query := _clause(clause))]
    filters = list(filters_of(scope))
    if all(occurs == "must_not" for occurs, _ in asked) or None in filters:
        return None
    parts: dict[str, list[Any]] = {"must": [], "should": [], "must_not": [], "filter": filters}
    for occurs, query in asked:
        parts[occurs].append(query)
    # Under a filter alone a clause that should match would be optional.
    return {"bool": {**{name: part for name, part in parts.items() if part}, "minimum_should_match": 0 if parts["must"] else 1}}


def _clause(clause: Clause) -> dict[str, Any] | None:
    """Entries that meet the clause, scored by their best field; None for one without a word that counts."""
    words, terms = english_words(clause.text), _counting(neutral_terms(clause.text, query=True))
    if clause.kind == "prefix" and len(terms) == 1:
        return _best([{"prefix": {field: {"value": terms[0]}}} for field in NEUTRAL_FIELDS])
    phrase = clause.kind == "phrase"
    if phrase and writes_without_spaces(clause.text):
        words = []
    fields = [(field, words) for field in TEXT_FIELDS if words] + [(field, terms) for field in NEUTRAL_FIELDS if terms]
    match = "match_phrase" if phrase else "match"
    return _best([{match: {field: {"query": " ".join(asked[:MAX_QUERY_WORDS])}}} for field, asked in fields]) if fields else None


def _best(queries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"dis_max": {"queries": queries, "tie_breaker": TIE_BREAKER}}


def filters_of(scope: Scope) -> Iterator[dict[str, Any] | None]:
    """One filter per restriction; None for one that nothing satisfies."""
    for fields, allowed in keyword_restrictions(scope):
        values = [value for value in allowed if is_encodable(value)]
        lists = [values[start : start + LARGEST_VALUES] for start in range(0, len(values), LARGEST_VALUES)]
        yield _any_of([{"terms": {field: some}} for field in fields for some in lists])
    if scope.pages is not None:
        yield _any_of([_on_pages(*pages) for pages in scope.pages])
    for field, start, end in date_restrictions(scope):
        bounds = {"gte": start and _milliseconds(start, up=False), "lt": end and _milliseconds(end, up=True)}
        yield {"range": {field: {name: bound for name, bound in bounds.items() if bound is not None}}}


def _any_of(queries: list[dict[str, Any]]) -> dict[str, Any] | None:
    return {"bool": {"should": queries, "minimum_should_match": 1}} if queries else None


def _on_pages(first: int, last: int) -> dict[str, Any]:
    """Entries that touch one of these pages."""
    return {"bool": {"filter": [{"range": {"page_start": {"lte": last}}}, {"range": {"page_end": {"gte": first}}}]}}


_FIRST_DAY, _LAST_DAY = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)  # no zone and no rounding leads out of them


def _milliseconds(moment: datetime, *, up: bool) -> str:
    """The moment in whole milliseconds, which is what the server keeps of dates."""
    moment = min(max(moment, _FIRST_DAY), _LAST_DAY).astimezone(UTC)
    whole = moment.replace(microsecond=moment.microsecond // 1_000 * 1_000)
    return (whole + timedelta(milliseconds=1) if up and whole < moment else whole).isoformat(timespec="milliseconds")


def _counting(terms: list[str]) -> list[str]:
    """The terms without stop words."""
    return [term for term in terms if term not in _STOP_WORDS]
