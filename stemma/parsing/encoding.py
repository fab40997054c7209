"""Bytes -> text: what is certain first (UTF-8, byte-order marks), then UTF-16 by its NULs, then a guess that says so."""

import codecs
import re
import unicodedata
from dataclasses import dataclass

from stemma.parsing.cleaning import clean_text

SAMPLE_BYTES = 65_536  # of a file that is guessed at; charset_normalizer takes seconds per megabyte
MAX_CONTROL_SHARE = 0.2  # of the characters; above it the bytes are no text
SOUND_PER_BROKEN = 1  # characters of several bytes in a file that is still called UTF-8; legacy encodings have 0.4 and less
MAX_CHAOS = 0.2  # charset_normalizer's measure of mess, 0 to 1; its own limit

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""<(?:meta[^>]{0,200}charset|\?xml[^>]{0,200}encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.IGNORECASE)
_EBCDIC = {"cp037", "cp273", "cp424", "cp500", "cp1026", "cp1140"}
_WESTERN_MARKS = frozenset("\xa0¡¢£¥§©«®°·»¿€‚„…†‡‰‘’“”•–—™′″×÷±²³½¼¾ªº")
_OTHER_LATIN_LANGUAGES = {
    "Croatian", "Czech", "Estonian", "Hungarian", "Latvian", "Lithuanian", "Polish", "Romanian", "Slovak", "Slovene", "Turkish", "Vietnamese",
}  # fmt: skip


class NotText(ValueError):
    """The bytes are no text in any encoding known here."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text and how sure its encoding is."""

    text: str
    """Cleaned (see cleaning.py), without a byte-order mark."""
    encoding: str
    confidence: float
    """1.0 for UTF-8 and byte-order marks, below it for everything guessed."""

    @property
    def guessed(self) -> bool:
        """Whether `encoding_guessed` applies."""
        return self.confidence < 1.0


def decode(data: bytes, *, markup: bool = False) -> Decoded:
    """The text of a file.

    Args:
        markup: HTML or XML, whose declared charset is believed before anything is guessed (but after UTF-8: most
            declarations that disagree with valid UTF-8 are leftovers).
    Raises:
        NotText: no encoding fits, or a fifth of the characters are control characters.
    """
    decoded = _decode(data, markup=markup)
    controls = sum(character < " " and character not in "\t\n\r\f\v\b\x1b" for character in decoded.text[:SAMPLE_BYTES])
    if controls > MAX_CONTROL_SHARE * min(len(decoded.text), SAMPLE_BYTES):
        raise NotText("the bytes are not text")
    return Decoded(clean_text(decoded.text), decoded.encoding, decoded.confidence)


def _decode(data: bytes, *, markup: bool) -> Decoded:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            # A mark is a promise; a torn last character does not break it.
            return Decoded(data.decode(encoding, "replace").removeprefix("\ufeff"), encoding.removesuffix("-sig"), 1.0)
    if encoding := utf16_without_bom(data):
        return Decoded(data.decode(encoding, "replace"), encoding, 0.95)
    try:
        return Decoded(data.decode("utf-8"), "utf-8", 1.0)
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data" and error.start >= len(data) - 3
        if cut and (len(data) > 64 or data[: error.start].isascii()):
            return Decoded(data.decode("utf-8", "replace"), "utf-8", 1.0)
    if markup and (match := _DECLARED.search(data[:4096])):
        declared = _known(match[1].decode("ascii"))
        if declared:
            return Decoded(data.decode(declared, "replace"), declared, 0.9)
    return _guess(data)


def _damaged_utf8(data: bytes) -> str | None:
    """The text of UTF-8 with single damaged bytes, which become U+FFFD; None for anything else.

    Characters of several bytes that are sound come about in no other encoding but by rare chance, so many of them per broken
    one decide.
    """
    text = data.decode("utf-8", "replace")
    n_broken = text.count("\ufffd")
    n_sound = sum(character > "\x7f" for character in text) - n_broken
    return text if n_sound > 3 and n_sound >= SOUND_PER_BROKEN * n_broken else None


def utf16_without_bom(data: bytes) -> str | None:
    """`utf-16-le` or `utf-16-be` when NULs stand on one side of byte pairs, as they do for Latin letters; else None.

    A fifth of the bytes must be NUL, or a fiftieth in bytes that are no UTF-8: single NULs occur in damaged plain text.
    """
    sample = data[:SAMPLE_BYTES]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    share = (even + odd) / max(len(sample), 1)
    if share < 0.02 or min(even, odd) > 0.1 * max(even, odd):
        return None
    if share < 0.2:
        try:
            sample.decode("utf-8")
            return None
        except UnicodeDecodeError as error:
            if error.start >= len(sample) - 3:
                return None
    return "utf-16-be" if even > odd else "utf-16-le"


def _known(name: str) -> str | None:
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return None
    if found in {"utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-7", "rot13"} or not _decodes_text(found):
        return None  # it was tried and does not fit, or is no character set
    return "cp1252" if found in {"iso8859-1", "ascii"} else found  # what browsers do (WHATWG Encoding Standard)


def _decodes_text(encoding: str) -> bool:
    try:
        return b"a".decode(encoding) != ""
    except (LookupError, ValueError, TypeError):
        return False


def _guess(data: bytes) -> Decoded:
    if (damaged := _damaged_utf8(data)) is not None:
        return Decoded(damaged, "utf-8", 0.95)
    from charset_normalizer import from_bytes

    best = from_bytes(data[:SAMPLE_BYTES]).best()
    if best is None or best.chaos > MAX_CHAOS or (best.encoding in _EBCDIC and best.coherence < 0.5):
        raise NotText("no known encoding fits the bytes")
    encoding, confidence = best.encoding, round(min(0.9, 1 - best.chaos), 3)
    if best.language not in _OTHER_LATIN_LANGUAGES and _is_western(data[:SAMPLE_BYTES]):
        encoding = "cp1252"  # charset_normalizer lists cp1250 first, which agrees with it on most letters only
    return Decoded(data.decode(encoding, "replace"), encoding, confidence)


def _is_western(sample: bytes) -> bool:
    """Whether the bytes read as Windows-1252 are words of Latin letters, few of them accented."""
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    foreign = [character for character in text if character > "\x7f"]
    letters = sum(character.isalpha() for character in text)
    accented = [character for character in foreign if character.isalpha()]
    plain = all(character in _WESTERN_MARKS or unicodedata.name(character, "").startswith("LATIN") for character in foreign)
    return plain and len(accented) <= 0.3 * max(letters, 1)
