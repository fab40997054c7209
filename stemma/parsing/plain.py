"""Plain text: the file's own characters, paragraphs between blank lines."""

import re

from stemma.parsing.document import Block
from stemma.parsing.draft import Draft, Source
from stemma.parsing.encoding import Decoded, NotText, decode

_PARAGRAPH = re.compile(r"\S(?:.*\S)?(?:\n[^\S\n]*\S(?:.*\S)?)*")


def parse_plain(source: Source) -> Draft:
    """The text as it stands; a line ends at `\\n` only, and a form feed is a character like any other, not a page."""
    decoded = read_text(source)
    blocks = tuple(Block("paragraph", *match.span()) for match in _PARAGRAPH.finditer(decoded.text))
    return Draft(decoded.text, blocks, empty=not blocks, guessed_encoding=decoded.guessed, metadata=encoding_metadata(decoded))


def read_text(source: Source, *, markup: bool = False) -> Decoded:
    """The decoded file. Raises CorruptDocument when it is no text, DocumentTooLarge when it is too long."""
    data = source.path.read_bytes()
    # No encoding spends more than four bytes on a character.
    source.check_length(len(data) // 4)
    try:
        decoded = decode(data, markup=markup)
    except NotText as error:
        raise source.corrupt(str(error)) from error
    source.check_length(len(decoded.text))
    return decoded


def encoding_metadata(decoded: Decoded) -> dict[str, str | float]:
    """What a text format records of its encoding."""
    known: dict[str, str | float] = {"encoding": decoded.encoding}
    return known | {"encoding_confidence": decoded.confidence} if decoded.guessed else known
