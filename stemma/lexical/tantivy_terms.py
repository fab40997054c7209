"""What entries and queries are to tantivy: fields, analyzers, documents and query trees.

A text is indexed under the two readings of `stemma.lexical.analysis`, each for `content` and `contextualized_content`.
"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from stemma.lexical.analysis import STOP_WORDS, english_words, neutral_terms, writes_without_spaces
from stemma.lexical.fields import NEUTRAL_FIELDS, TEXT_FIELDS, TIE_BREAKER, date_restrictions, is_encodable, keyword_restrictions
from stemma.lexical.index import Scope
from stemma.lexical.query_language import Clause, clauses_of

if TYPE_CHECKING:
    import tantivy

MAX_QUERY_TERMS = 1_024
"""Distinct terms of a query, per reading; what follows in a longer query is ignored, as engines bound their clauses."""

KEYWORD_FIELDS = ("publication", "source_id", "doc_id", "workspace", "folders", "file_type", "document_type", "language", "sections")
PAGE_FIELDS = ("page_start", "page_end")
DATE_FIELDS = ("file_modified_at", "ingested_at")
EARLIEST, LATEST = datetime(1678, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC)
"""What the engine can keep, nanoseconds in 64 bits; a clock beyond counts as the nearest of the two."""


@cache
def schema(language: str) -> "tantivy.Schema":
    """The fields of an index; a folder with other ones belongs to another release or language."""
    import tantivy

    builder = tantivy.SchemaBuilder().add_text_field("entry", stored=True, tokenizer_name="raw", index_option="basic")
    for name in KEYWORD_FIELDS:
        builder = builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in DATE_FIELDS:
        builder = builder.add_date_field(name, fast=True, indexed=True)
    for name in PAGE_FIELDS:
        builder = builder.add_integer_field(name, fast=True, indexed=True)
    builder = builder.add_integer_field("original_index", fast=True)
    for name in TEXT_FIELDS:
        builder = builder.add_text_field(name, tokenizer_name=language, index_option="position")
    for name in NEUTRAL_FIELDS:
        builder = builder.add_text_field(name, tokenizer_name="neutral", index_option="position")
    return builder.build()


@cache
def analyzers(language: str) -> dict[str, "tantivy.TextAnalyzer"]:
    """They read words parted by spaces: what a word is, `stemma.lexical.analysis` has decided."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    return {
        language: TextAnalyzerBuilder(Tokenizer.whitespace())
        .filter(Filter.lowercase())
        .filter(Filter.custom_stopword(STOP_WORDS) if language == "english" else Filter.stopword(language))
        .filter(Filter.stemmer(language))
        .build(),
        "neutral": TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.custom_stopword(STOP_WORDS)).build(),
    }


def document(entry: str, row: dict[str, Any]) -> "tantivy.Document":
    """One row of ENTRY_SCHEMA, addressed as `entry`."""
    import tantivy

    made = tantivy.Document()
    made.add_text("entry", entry)
    made.add_text("publication", str(row["publication_id"]))
    for name in ("source_id", "doc_id", "workspace", "file_type", "document_type", "language"):
        if row[name] is not None:
            made.add_text(name, row[name])
    for name in ("folders", "sections"):
        for value in row[name] or ():
            made.add_text(name, value)
    for name in PAGE_FIELDS:
        if row[name] is not None:
            made.add_integer(name, row[name])
    for name in DATE_FIELDS:
        if row[name] is not None:
            made.add_date(name, min(max(row[name], EARLIEST), LATEST))
    made.add_integer("original_index", row["original_index"])
    for english, neutral in zip(TEXT_FIELDS, NEUTRAL_FIELDS, strict=True):
        text = row[english] or ""
        made.add_text(english, " ".join(english_words(text)))
        made.add_text(neutral, " ".join(neutral_terms(text)))
    return made


def query_of(text: str, scope: Scope, *, language: str, operators: bool = False) -> "tantivy.Query | None":
    """The query of a text within a scope, built from terms; None if nothing can match."""
    from tantivy import Occur, Query

    occurs = {"should": Occur.Should, "must": Occur.Must, "must_not": Occur.MustNot}
    clauses = clauses_of(text) if operators else [Clause(text)]
    asked = [(clause.occurs, query) for clause in clauses if (query := _clause(clause, language))]
    filters = list(_filters(scope))
    if all(occurrence == "must_not" for occurrence, _ in asked) or None in filters:
        return None
    wanted = asked[0][1] if len(asked) == 1 else Query.boolean_query([(occurs[occurrence], query) for occurrence, query in asked])
    return Query.boolean_query([(Occur.Must, wanted), *((Occur.Must, Query.const_score_query(one, 0.0)) for one in filters if one)])


def _clause(clause: Clause, language: str) -> "tantivy.Query | None":
    """Entries that meet the clause, scored by their best field; None for one without a word that counts."""
    from tantivy import Query

    words, terms = english_words(clause.text), neutral_terms(clause.text, query=True)
    if clause.kind == "phrase":
        in_text = [] if writes_without_spaces(clause.text) else [(field, _placed(language, words, language)) for field in TEXT_FIELDS]
        placed = in_text + [(field, _placed("neutral", terms, language)) for field in NEUTRAL_FIELDS]
        fields = [_in_order(field, found) for field, found in placed if found]
    elif clause.kind == "prefix" and len(terms) == 1:
        fields = [Query.regex_query(_fields(), field, f"{terms[0]}.*") for field in NEUTRAL_FIELDS]
    else:
        counted = [(field, _counts(language, words, language)) for field in TEXT_FIELDS]
        counted += [(field, _counts("neutral", terms, language)) for field in NEUTRAL_FIELDS]
        fields = [_any_of(field, found) for field, found in counted if found]
    return Query.disjunction_max_query(fields, TIE_BREAKER) if fields else None


def _counts(reading: str, words: list[str], language: str) -> Counter[str]:
    """Term -> how often it is asked for."""
    terms = Counter(analyzers(language)[reading].analyze(" ".join(words)))
    return Counter({term: terms[term] for term in list(terms)[:MAX_QUERY_TERMS]})


def _placed(reading: str, words: list[str], language: str) -> list[tuple[int, str]]:
    """(place, term) of the words that count."""
    analyzer = analyzers(language)[reading]
    return [(place, term) for place, word in enumerate(words[:MAX_QUERY_TERMS]) for term in analyzer.analyze(word)]


def _any_of(field: str, terms: Counter[str]) -> "tantivy.Query":
    """Entries with any of the terms; a term asked for twice counts twice."""
    from tantivy import Occur, Query

    one_each = ((Query.term_query(_fields(), field, term, "freq"), n) for term, n in terms.items())
    return Query.boolean_query([(Occur.Should, query if n == 1 else Query.boost_query(query, n)) for query, n in one_each])


def _in_order(field: str, placed: list[tuple[int, str]]) -> "tantivy.Query":
    """Entries with these terms at these distances from each other."""
    from tantivy import Query

    if len(placed) == 1:
        return Query.term_query(_fields(), field, placed[0][1], "freq")
    first = placed[0][0]
    return Query.phrase_query(_fields(), field, [(place - first, term) for place, term in placed])


def _filters(scope: Scope) -> Iterator["tantivy.Query | None"]:
    """One query per restriction; None for one that nothing satisfies."""
    from tantivy import Occur, Query

    for fields, allowed in keyword_restrictions(scope):
        values = [value for value in allowed if is_encodable(value)]
        queries = [(Occur.Should, Query.term_set_query(_fields(), field, values)) for field in fields if values]
        yield Query.boolean_query(queries) if queries else None
    if scope.pages is not None:
        yield Query.boolean_query([(Occur.Should, _on_pages(*pages)) for pages in scope.pages]) if scope.pages else None
    for field, start, end in date_restrictions(scope):
        yield _between(field, start, end)


def _on_pages(first: int, last: int) -> "tantivy.Query":
    """Entries that touch one of these pages."""
    from tantivy import FieldType, Occur, Query

    begins = Query.range_query(_fields(), "page_start", FieldType.Integer, upper_bound=last)
    ends = Query.range_query(_fields(), "page_end", FieldType.Integer, lower_bound=first)
    return Query.boolean_query([(Occur.Must, begins), (Occur.Must, ends)])


def _between(field: str, start: datetime | None, end: datetime | None) -> "tantivy.Query":
    """Entries from `start` on and before `end`, both widened to whole seconds within what the field keeps."""
    from tantivy import FieldType, Query

    lower = start and min(max(start.replace(microsecond=0), EARLIEST), LATEST)
    upper = None if end is None or end > LATEST else max(end, EARLIEST + timedelta(seconds=1))
    upper = upper and (upper if upper.microsecond == 0 else upper.replace(microsecond=0) + timedelta(seconds=1))
    if lower is None and upper is None:
        return Query.all_query()  # nothing lies beyond
    return Query.range_query(_fields(), field, FieldType.Date, lower_bound=lower, upper_bound=upper, include_upper=upper is None)


def _fields() -> "tantivy.Schema":
    """The fields as queries name them, which are the same in every language."""
    return schema("english")
