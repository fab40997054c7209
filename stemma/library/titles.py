"""Titles: documents found by what they are called, whatever is mistyped."""

import unicodedata
from dataclasses import dataclass
from uuid import UUID

from psycopg.rows import class_row

from sql import load_queries
from stemma.store.postgres import Connection

LEAST_SIMILARITY = 0.3  # pg_trgm's own threshold


@dataclass(frozen=True)
class Titled:
    """A published document by its title."""

    source_id: UUID
    doc_id: str
    title: str
    source_path: str
    workspace: str


def find_titles(connection: Connection, query: str, *, workspace: str | None = None, limit: int) -> list[tuple[Titled, float]]:
    """Published documents whose title, or file name, resembles the query, with how much, 0 to 1; best first, ties by path.

    The measure is the share of the query's trigrams that the title has, as `word_similarity` of pg_trgm: the embedded PostgreSQL lacks that
    extension, so it is computed here on every server, at about 10 µs a title.
    """
    asked = _trigrams(query)
    if not asked:
        return []
    with connection.cursor(row_factory=class_row(Titled)) as cursor:
        titled = cursor.execute(load_queries("files")["titles"], {"workspace": workspace}).fetchall()
    scored = [(document, _similarity(asked, document)) for document in titled]
    found = [pair for pair in scored if pair[1] >= LEAST_SIMILARITY]
    return sorted(found, key=lambda pair: (-pair[1], pair[0].source_path))[:limit]


def _similarity(asked: frozenset[str], document: Titled) -> float:
    names = (document.title, document.source_path.rpartition("/")[2])
    return max(len(asked & _trigrams(name)) for name in names) / len(asked)


def _trigrams(text: str) -> frozenset[str]:
    """Of its words in lower case and without accents, each padded as pg_trgm does."""
    plain = "".join(character for character in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(character))
    words = "".join(character if character.isalnum() else " " for character in plain).split()
    return frozenset(padded[start : start + 3] for word in words for padded in [f"  {word} "] for start in range(len(padded) - 2))
