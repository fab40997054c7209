"""What can go wrong with a keyword index.

StemmaError
 ├─ DocumentError
 │   └─ DocumentNotIndexed          the index does not take the entries of one document
 ├─ Unavailable
 │   ├─ LexicalIndexUnavailable     its disk, server or lock does not answer
 │   └─ EntriesRefused              it does, and takes all but these
 └─ ConfigurationError
     ├─ LexicalIndexDamaged         what is there is not an index of this release
     ├─ ElasticsearchNotConfigured  the index lies on a server, and none is named
     └─ ElasticsearchRefused        the server does not let us in, or is none
"""

from collections.abc import Mapping

from stemma.errors import ConfigurationError, DocumentError, Unavailable


class LexicalIndexUnavailable(Unavailable):
    """The keyword index could not be read or written, or another writer kept its lock."""

    code, remedy = (
        "lexical_unavailable",
        "Check the disk and the server of the keyword index (`stemma doctor`); the request may be repeated.",
    )


class LexicalIndexDamaged(ConfigurationError):
    """The files of the keyword index are incomplete, or were written by another release."""

    code = "lexical_damaged"
    remedy = "Nothing is lost: every entry is a copy of a row in PostgreSQL, from which Stemma can rebuild the index without a model."


class ElasticsearchNotConfigured(ConfigurationError):
    """The keyword index that searches read, or the one that is wanted, lies in Elasticsearch, and no server is named."""

    code = "elasticsearch_not_configured"
    remedy = "Set STEMMA_ELASTICSEARCH_URL; or set BM25_BACKEND to `tantivy` and run `stemma db index --rebuild keywords`."


class ElasticsearchRefused(ConfigurationError):
    """The server refused the user, key or certificate, is too old, or is no Elasticsearch."""

    code = "elasticsearch_refused"
    remedy = "Check the settings STEMMA_ELASTICSEARCH_*, and the rights of that user on the server (`stemma doctor`)."


class DocumentNotIndexed(DocumentError):
    """The keyword index does not take the entries of this document, whatever is tried again."""

    code = "not_indexed"
    remedy = "The version before it stays searchable; a file that is cut smaller or saved anew may be taken."


class EntriesRefused(Unavailable):
    """The keyword index takes no entries of some documents, whatever is tried again; those of all others are written."""

    code, remedy = "entries_refused", "See the reason that the server gives; `stemma db index` says how many documents the index lacks."

    def __init__(self, reasons: Mapping[int, str]) -> None:
        super().__init__(dict(reasons))
        self.reasons = dict(reasons)
        """publication_id -> the server's reason."""

    def __str__(self) -> str:
        return f"The keyword index refuses {len(self.reasons)} documents: {next(iter(self.reasons.values()))}. {self.remedy}"
