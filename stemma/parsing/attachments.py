"""What is attached to a mail: every part that a reader does not see in the mail itself."""

import re
from collections.abc import Iterator
from email import policy
from email.message import EmailMessage
from mimetypes import MimeTypes
from typing import cast
from urllib.parse import unquote

from stemma.errors import DocumentError
from stemma.parsing.cleaning import clean_line
from stemma.parsing.draft import Source
from stemma.parsing.members import Entry, Pieces

_SIGNATURES = frozenset({"application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"})
_MESSAGES = frozenset({"message/rfc822", "message/global"})
_SHOWN_PICTURE = re.compile(rb"""cid:([^"'\s>)]+)""", re.IGNORECASE)
_SUBJECT_CHARS = 100
_AS_WRITTEN = policy.default.clone(refold_source="none")  # headers as they stand, not folded anew
_SUFFIXES = MimeTypes()  # its own table, the same on every machine


def attached(message: EmailMessage, source: Source) -> Iterator[Entry]:
    """The attachments in the mail's order, attached messages whole.

    None of them are: the body that is shown and its other spellings, pictures that the HTML body shows or that lie beside it
    as its own (`multipart/related`), and signatures.
    """
    body = message.get_body(("plain", "html"))
    shown = _shown_pictures(message)
    for number, (part, within) in enumerate(_leaves(message, frozenset()), start=1):
        kind = part.get_content_type()
        named = part.get_filename()
        is_attachment = part.is_attachment()
        if part is body or kind in _SIGNATURES:
            continue
        if part.get_content_maintype() == "text" and "alternative" in within and not (named or is_attachment):
            continue
        if part.get_content_maintype() == "image" and (_content_id(part) in shown or ("related" in within and not is_attachment)):
            continue
        yield Entry((named or _made_up_name(part, number),), lambda part=part: _content(part, source), kind)


def _leaves(part: EmailMessage, within: frozenset[str]) -> Iterator[tuple[EmailMessage, frozenset[str]]]:
    """Parts without parts, an attached message counting as one, with the kinds of multipart that they lie in."""
    if part.get_content_maintype() != "multipart":
        yield part, within
        return
    inner = within | {part.get_content_subtype()}
    for child in part.iter_parts():
        yield from _leaves(cast(EmailMessage, child), inner)


def _shown_pictures(message: EmailMessage) -> frozenset[str]:
    page = message.get_body(("html",))
    content = page.get_payload(decode=True) if page is not None else None
    found: list[bytes] = _SHOWN_PICTURE.findall(content) if isinstance(content, bytes) else []
    return frozenset(unquote(reference.decode("utf-8", "replace")) for reference in found)


def _content_id(part: EmailMessage) -> str:
    return str(part.get("Content-ID", "") or "").strip().removeprefix("<").removesuffix(">")


def _made_up_name(part: EmailMessage, number: int) -> str:
    kind = part.get_content_type()
    if kind in _MESSAGES:
        inner = _attached_message(part)
        subject = clean_line(str(inner.get("Subject", "") or "")) if inner is not None else ""
        return f"{subject[:_SUBJECT_CHARS] or 'message'}.eml"
    suffix = ".txt" if part.get_content_maintype() == "message" else _SUFFIXES.guess_extension(kind) or ""
    return f"part-{number}{suffix}"


def _attached_message(part: EmailMessage) -> EmailMessage | None:
    payload = cast(object, part.get_payload())
    inner = cast(list[object], payload)[0] if isinstance(payload, list) and payload else None
    return cast(EmailMessage, inner) if isinstance(inner, EmailMessage) else None


def _content(part: EmailMessage, source: Source) -> Pieces:
    try:
        yield _bytes(part)
    except DocumentError:
        raise
    except (LookupError, ValueError, TypeError, AttributeError) as error:  # how the email module meets damage
        raise source.corrupt("it is damaged in its mail") from error


def _bytes(part: EmailMessage) -> bytes:
    inner = _attached_message(part)
    if inner is None:
        content = part.get_payload(decode=True)
        return content if isinstance(content, bytes) else str(part.get_payload() or "").encode("utf-8", "surrogateescape")
    if part.get_content_type() in _MESSAGES:
        return inner.as_bytes(policy=_AS_WRITTEN)
    return b"\n".join(block.as_bytes(policy=_AS_WRITTEN) for block in cast(list[EmailMessage], part.get_payload()))
