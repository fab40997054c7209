"""What can go wrong with a keyword index.

StemmaError
 ├─ Unavailable
 │   └─ LexicalIndexUnavailable   its disk, server or lock does not answer
 └─ ConfigurationError
     └─ LexicalIndexDamaged       its files are not an index of this release
"""

from stemma.errors import ConfigurationError, Unavailable


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
