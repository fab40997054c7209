"""What entries and queries are to tantivy: fields, analyzers, documents and query trees.

A text is indexed under the two readings of `stemma.lexical.analysis`, each for `content` and `contextualized_content`. A query's
score is that of the best of the four fields plus TIE_BREAKER times the others: Elasticsearch's multi_match `best_fields`.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from stemma.lexical.analysis import STOP_WORDS, english_words, neutral_terms
from stemma.lexical.index import Scope

if TYPE_CHECKING:
    import tantivy

TIE_BREAKER = 0.3
"""Span recall@5 on anthropic / chroma_chunking / xquad_en / xquad_de: English alone .662 .841 .981 .934, best field .650 .852 .983 .934,
with 0.3 of the others .655 .848 .984 .936, sum .644 .845 .984 .938; xquad_zh .169 by English alone, .993 by all others."""

MAX_QUERY_TERMS = 1_024
"""Distinct terms of a query, per reading; what follows in a longer query is ignored, as engines bound their clauses."""

ENGLISH_FIELDS = ("content", "contextualized_content")
NEUTRAL_FIELDS = ("content_neutral", "contextualized_content_neutral")
KEYWORD_FIELDS = ("publication", "source_id", "doc_id", "workspace", "folders", "file_type", "language")
DATE_FIELDS = ("file_modified_at", "ingested_at")


@cache
def schema() -> "tantivy.Schema":
    """The fields of the index; a folder with other ones belongs to another release."""
    import tantivy

    builder = tantivy.SchemaBuilder().add_text_field("entry", stored=True, tokenizer_name="raw", index_option="basic")
    for name in KEYWORD_FIELDS:
        builder = builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for name in DATE_FIELDS:
        builder = builder.add_date_field(name, fast=True, indexed=True)
    builder = builder.add_integer_field("original_index", fast=True)
    for name in ENGLISH_FIELDS:
        builder = builder.add_text_field(name, tokenizer_name="english", index_option="freq")
    for name in NEUTRAL_FIELDS:
        builder = builder.add_text_field(name, tokenizer_name="neutral", index_option="freq")
    return builder.build()


@cache
def analyzers() -> dict[str, "tantivy.TextAnalyzer"]:
    """They read words parted by spaces: what a word is, `stemma.lexical.analysis` has decided."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    return {
        "english": TextAnalyzerBuilder(Tokenizer.whitespace())
        .filter(Filter.lowercase())
        .filter(Filter.custom_stopword(STOP_WORDS))
        .filter(Filter.stemmer("english"))
        .build(),
        "neutral": TextAnalyzerBuilder(Tokenizer.whitespace()).filter(Filter.custom_stopword(STOP_WORDS)).build(),
    }


def document(entry: str, row: dict[str, Any]) -> "tantivy.Document":
    """One row of ENTRY_SCHEMA, addressed as `entry`."""
    import tantivy

    made = tantivy.Document()
    made.add_text("entry", entry)
    made.add_text("publication", str(row["publication_id"]))
    for name in ("source_id", "doc_id", "workspace", "file_type", "language"):
        if row[name] is not None:
            made.add_text(name, row[name])
    for folder in row["folders"] or ():
        made.add_text("folders", folder)
    for name in DATE_FIELDS:
        if row[name] is not None:
            made.add_date(name, row[name])
    made.add_integer("original_index", row["original_index"])
    for english, neutral in zip(ENGLISH_FIELDS, NEUTRAL_FIELDS, strict=True):
        text = row[english] or ""
        made.add_text(english, " ".join(english_words(text)))
        made.add_text(neutral, " ".join(neutral_terms(text)))
    return made


def query_of(text: str, scope: Scope) -> "tantivy.Query | None":
    """The query of a text within a scope, built from terms; None if nothing can match."""
    from tantivy import Occur, Query

    english = _terms("english", english_words(text))
    neutral = _terms("neutral", neutral_terms(text, query=True))
    fields = [_any_of(name, english) for name in ENGLISH_FIELDS if english] + [_any_of(name, neutral) for name in NEUTRAL_FIELDS if neutral]
    filters = list(_filters(scope))
    if not fields or None in filters:
        return None
    best = Query.disjunction_max_query(fields, TIE_BREAKER)
    return Query.boolean_query([(Occur.Must, best), *((Occur.Must, Query.const_score_query(one, 0.0)) for one in filters if one)])


def _terms(reading: str, words: list[str]) -> Counter[str]:
    terms = Counter(analyzers()[reading].analyze(" ".join(words)))
    return Counter({term: terms[term] for term in list(terms)[:MAX_QUERY_TERMS]})


def _any_of(field: str, terms: Counter[str]) -> "tantivy.Query":
    """Entries with any of the terms; a term asked for twice counts twice."""
    from tantivy import Occur, Query

    one_each = ((Query.term_query(schema(), field, term, "freq"), n) for term, n in terms.items())
    return Query.boolean_query([(Occur.Should, query if n == 1 else Query.boost_query(query, n)) for query, n in one_each])


def _filters(scope: Scope) -> Iterator["tantivy.Query | None"]:
    """One query per restriction; None for one that nothing satisfies."""
    from tantivy import Occur, Query

    restrictions = (
        (("workspace",), scope.workspaces),
        (("folders",), scope.folders),
        (("source_id", "doc_id"), scope.documents),
        (("file_type",), scope.file_types),
    )
    for fields, allowed in restrictions:
        if allowed is None:
            continue
        values = [value for value in allowed if _encodable(value)]
        queries = [(Occur.Should, Query.term_set_query(schema(), field, values)) for field in fields if values]
        yield Query.boolean_query(queries) if queries else None


def _encodable(value: str) -> bool:
    """Whether the value has UTF-8: one with a lone surrogate equals nothing that is stored."""
    return not any("\ud800" <= character <= "\udfff" for character in value)
