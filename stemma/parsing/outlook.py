"""Outlook messages (msg): headers, names of attachments, and the plain body, else the HTML one, else the words of the rich one."""

from collections.abc import Iterator
from dataclasses import replace
from email.utils import format_datetime
from functools import partial
from importlib import import_module
from typing import Any

from stemma.errors import CorruptDocument, UnsupportedFormat
from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.email import add_body, add_headers
from stemma.parsing.members import Entry, Listing, Pieces
from stemma.parsing.outlook_mail import MESSAGE, MailPart, mail_bytes
from stemma.parsing.outlook_rtf import rich_text
from stemma.parsing.rtf import rtf_draft

_PID_RTF_COMPRESSED, _PID_DISPLAY_NAME, _PID_ATTACH_CONTENT_ID = 0x1009, 0x3001, 0x3712
_EMBEDDED, _PROPERTIES = "__substg1.0_3701000D", "__properties_version1.0"
_EMBEDDED_HEADER_BYTES, _MISSING_HEADER_BYTES = 24, 8


def parse_msg(source: Source) -> Draft:
    """The message as `parse_email` shows one. Of a body that exists as rich text alone, the words; one that is damaged is warned of.

    Raises:
        CorruptDocument: the container or the message in it is damaged.
    """
    message = _message(source)
    headers = _headers(message)
    body, html = _bodies(message, source)
    if "\0" in body or "\0" in html:
        raise source.corrupt("its body is made of other parts of the file")
    builder, listing = DraftBuilder(source), Listing(source)
    for entry in _attached(message, source):
        listing.add(entry)
    add_headers(builder, headers, [member.name for member in listing.members])
    add_body(builder, body if body.strip() else html, markup=not body.strip())
    return builder.finish(
        title=stated_title(headers["Subject"]),
        metadata={
            "author": headers["From"],
            "sent_at": message.sent_date.isoformat() if message.sent_date else None,
            **listing.metadata,
            "unreadable_parts": [*listing.metadata["unreadable_parts"], *_unread_parts(message, source)],
        },
    )


def msg_entries(source: Source) -> Iterator[Entry]:
    """What is attached to a message."""
    return _attached(_message(source), source)


def _headers(message: Any) -> dict[str, str]:
    """The headers that a reader sees, a line each."""
    stated: dict[str, str] = message.message_headers
    sent_headers = {name.lower(): clean_line(value) for name, value in stated.items()}
    recipients = ", ".join(clean_line(_named(recipient)) for recipient in message.recipients)
    return {
        "From": clean_line(message.sender or "") or sent_headers.get("from", ""),
        "To": sent_headers.get("to", "") or recipients,
        "Cc": sent_headers.get("cc", ""),
        "Date": message.sent_date.isoformat(sep=" ") if message.sent_date else sent_headers.get("date", ""),
        "Subject": clean_line(message.subject or ""),
    }


def _bodies(message: Any, source: Source) -> tuple[str, str]:
    """The plain and the HTML one; where there is neither, the words of the rich one for the plain one."""
    body, html = (message.body or "").rstrip("\0"), (message.html_body or "").rstrip("\0")
    return body or ("" if html else _rich_body(message, source) or ""), html


def _rich_body(message: Any, source: Source) -> str | None:
    """The text of the compressed rich body; None when there is none or it cannot be read."""
    if not (compressed := message.properties.binary_prop_value(_PID_RTF_COMPRESSED)):
        return None
    try:
        return rtf_draft(rich_text(compressed), source).text
    except (ValueError, CorruptDocument):
        return None


def _message(source: Source) -> Any:
    oxmsg: Any = import_module("oxmsg")  # typed, but its messages are read as what they hold
    try:
        return oxmsg.Message.load(str(source.path))
    except OSError as error:  # olefile's errors are of this kind, and are no failure of the disk
        raise source.corrupt("its OLE container is damaged or cut off") from error


def _attached(message: Any, source: Source) -> Iterator[Entry]:
    for number, attachment in _attachments(message):
        content = partial(_content, attachment, source)
        if _embedded(attachment) is not None:
            name = clean_line(attachment.file_name or _display_name(attachment)).removesuffix(".msg")
            yield Entry((f"{name or 'message'}.eml",), content, MESSAGE)
        else:
            yield Entry((_file_name(attachment, number),), content, attachment.mime_type)


def _attachments(message: Any) -> Iterator[tuple[int, Any]]:
    """Attachments in the file's order with their numbers from 1, without pictures that the HTML body shows."""
    page = (message.html_body or "").lower()
    for number, attachment in enumerate(message.attachments, start=1):
        content_id = (attachment.properties.str_prop_value(_PID_ATTACH_CONTENT_ID) or "").lower()
        if not (content_id and f"cid:{content_id}" in page):
            yield number, attachment


def _content(attachment: Any, source: Source) -> Pieces:
    content: bytes | None = attachment.file_bytes
    if content is None and (message := _embedded(attachment)) is not None:
        content = _mail(message, source)
    if content is None:
        raise UnsupportedFormat(source.source_path, "an object that Outlook keeps inside the message, not as a file")
    yield content


def _file_name(attachment: Any, number: int) -> str:
    return attachment.file_name or _display_name(attachment) or f"part-{number}"


def _display_name(attachment: Any) -> str:
    return attachment.properties.str_prop_value(_PID_DISPLAY_NAME) or ""


def _embedded(attachment: Any) -> Any | None:
    """The message that an attachment is; None for anything else."""
    storage = next((inner for inner in attachment._storage.storages if inner.name == _EMBEDDED), None)
    if storage is None or all(stream.name != _PROPERTIES for stream in storage.streams):
        return None
    oxmsg: Any = import_module("oxmsg")
    return oxmsg.Message(replace(storage, streams=tuple(map(_with_whole_header, storage.streams))))


def _with_whole_header(stream: Any) -> Any:
    """A stream of an embedded message as it would be in a message of its own, whose properties have a longer header."""
    if stream.name != _PROPERTIES:
        return stream
    header, properties = stream.bytes_[:_EMBEDDED_HEADER_BYTES], stream.bytes_[_EMBEDDED_HEADER_BYTES:]
    return replace(stream, bytes_=header + bytes(_MISSING_HEADER_BYTES) + properties)


def _mail(message: Any, source: Source) -> bytes:
    """A message as the mail that it would be, with all that is attached to it; objects that are no files are left out."""
    body, html = _bodies(message, source)
    parts = [MailPart("text/plain", body)] if body.strip() else [MailPart("text/html", html)] if html.strip() else []
    for number, attachment in _attachments(message):
        if attachment.file_bytes is not None:
            parts.append(MailPart(attachment.mime_type, attachment.file_bytes, _file_name(attachment, number)))
        elif (inner := _embedded(attachment)) is not None:
            parts.append(MailPart(MESSAGE, _mail(inner, source)))
    headers = _headers(message)
    if message.sent_date:
        headers["Date"] = format_datetime(message.sent_date)
    return mail_bytes(headers, parts)


def _unread_parts(message: Any, source: Source) -> Iterator[str]:
    """What is in the message, or in those that it holds, and cannot be read."""
    has_rich_body = bool(message.properties.binary_prop_value(_PID_RTF_COMPRESSED))
    if has_rich_body and not message.body and not message.html_body and _rich_body(message, source) is None:
        yield "rich text body"
    for inner in filter(None, (_embedded(attachment) for attachment in message.attachments)):
        yield from (f"{part} of {clean_line(inner.subject) or 'an attached message'}" for part in _unread_parts(inner, source))


def _named(recipient: Any) -> str:
    name, address = recipient.name or "", recipient.email_address or ""
    return f"{name} <{address}>" if name and address and name != address else name or address
