"""The one rule for characters: what every text, title and metadata value passes before it leaves a parser."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Any, cast

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")  # PostgreSQL holds no NUL, UTF-8 no half of a surrogate pair
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Cs", "Zl", "Zp", "Zs"})


def clean_text(text: str) -> str:
    """`text` with CRLF and CR as `\\n`, without NUL and lone surrogates. Every other character stays, so cleaning twice is cleaning once."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSTORABLE.sub("", text)


def clean_line(text: str) -> str:
    """`clean_text` on one line: runs of white space become one space, the ends are bare."""
    return " ".join(clean_text(text).split())


def clean_metadata(value: Any) -> Any:
    """A JSON value whose strings, keys included, are cleaned."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_metadata(inner) for key, inner in cast(dict[Any, Any], value).items()}
    if isinstance(value, list | tuple):
        return [clean_metadata(inner) for inner in cast(Iterable[Any], value)]
    return value


def is_visible(text: str) -> bool:
    """Whether a reader would see anything: any character but spaces, controls and formatting (U+200B, U+FEFF, ...)."""
    if not text or text.isspace():
        return False
    return any(unicodedata.category(character) not in _INVISIBLE_CATEGORIES for character in text)


_RUBBISH_TITLE = re.compile(
    r"(microsoft (word|powerpoint|excel) - .*|(untitled( \w+)?|unbenannt|sans titre|no title|slide|document|presentation|dokument|präsentation|"
    r"powerpoint[- ]?(presentation|präsentation)?|title|new document|blank)[\s_-]*\d*|.*\S\.(docx?|pptx?|xlsx?|pdf|indd|qxd|tex|dvi|ps|html?|jpe?g|png|tiff?))",
    re.IGNORECASE,
)


def stated_title(*candidates: str | None) -> str | None:
    """The first candidate that names the content: not blank, not over 500 characters, not a program's default or a file's name."""
    for candidate in candidates:
        title = clean_line(candidate or "")
        if is_visible(title) and len(title) <= 500 and not _RUBBISH_TITLE.fullmatch(title):
            return title
    return None
