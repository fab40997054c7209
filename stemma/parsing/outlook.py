"""Outlook messages (msg): headers, names of attachments, and the plain body, else the HTML one."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from stemma.errors import UnsupportedFormat
from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.email import add_body, add_headers
from stemma.parsing.members import Entry, Listing, Pieces

_PID_RTF_COMPRESSED, _PID_DISPLAY_NAME, _PID_ATTACH_CONTENT_ID = 0x1009, 0x3001, 0x3712


def parse_msg(source: Source) -> Draft:
    """The message as `parse_email` shows one. A body that exists as compressed rich text alone is not read, and warned of.

    Raises:
        CorruptDocument: the container or the message in it is damaged.
    """
    message = _message(source)
    stated: dict[str, str] = message.message_headers
    sent_headers = {name.lower(): clean_line(value) for name, value in stated.items()}
    recipients = ", ".join(clean_line(_named(recipient)) for recipient in message.recipients)
    headers = {
        "From": clean_line(message.sender or "") or sent_headers.get("from", ""),
        "To": sent_headers.get("to", "") or recipients,
        "Cc": sent_headers.get("cc", ""),
        "Date": message.sent_date.isoformat(sep=" ") if message.sent_date else sent_headers.get("date", ""),
        "Subject": clean_line(message.subject or ""),
    }
    body, html = (message.body or "").rstrip("\0"), (message.html_body or "").rstrip("\0")
    if "\0" in body or "\0" in html:
        raise source.corrupt("its body is made of other parts of the file")
    builder, listing = DraftBuilder(source), Listing(source)
    for entry in _attached(message, source):
        listing.add(entry)
    add_headers(builder, headers, [member.name for member in listing.members])
    add_body(builder, body if body.strip() else html, markup=not body.strip())
    body_unread = not body and not html and message.properties.binary_prop_value(_PID_RTF_COMPRESSED)
    return builder.finish(
        title=stated_title(headers["Subject"]),
        metadata={
            "author": headers["From"],
            "sent_at": message.sent_date.isoformat() if message.sent_date else None,
            **listing.metadata,
            "unreadable_parts": [*listing.metadata["unreadable_parts"], *(["rich text body"] if body_unread else [])],
        },
    )


def msg_entries(source: Source) -> Iterator[Entry]:
    """What is attached to a message."""
    return _attached(_message(source), source)


def _message(source: Source) -> Any:
    oxmsg: Any = import_module("oxmsg")  # typed, but its messages are read as what they hold
    try:
        return oxmsg.Message.load(str(source.path))
    except OSError as error:  # olefile's errors are of this kind, and are no failure of the disk
        raise source.corrupt("its OLE container is damaged or cut off") from error


def _attached(message: Any, source: Source) -> Iterator[Entry]:
    """Attachments in the file's order, without pictures that the HTML body shows."""
    page = (message.html_body or "").lower()
    for number, attachment in enumerate(message.attachments, start=1):
        content_id = (attachment.properties.str_prop_value(_PID_ATTACH_CONTENT_ID) or "").lower()
        if content_id and f"cid:{content_id}" in page:
            continue
        name = attachment.file_name or attachment.properties.str_prop_value(_PID_DISPLAY_NAME) or f"part-{number}"
        yield Entry((name,), lambda attachment=attachment: _content(attachment, source), attachment.mime_type)


def _content(attachment: Any, source: Source) -> Pieces:
    content: bytes | None = attachment.file_bytes
    if content is None:
        raise UnsupportedFormat(source.source_path, "a message or object that Outlook keeps inside the message, not as a file")
    yield content


def _named(recipient: Any) -> str:
    name, address = recipient.name or "", recipient.email_address or ""
    return f"{name} <{address}>" if name and address and name != address else name or address
