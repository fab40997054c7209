"""E-mail: single messages (eml) and mailboxes (mbox)."""

import mailbox
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from email import policy
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from typing import cast

from stemma.parsing.attachments import attached
from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.encoding import NotText, decode
from stemma.parsing.html import add_html, html_tree
from stemma.parsing.members import Entry, Listing

SHOWN = ("From", "To", "Cc", "Date", "Subject")
"""The headers that a reader sees, in this order."""

MAX_PARSED_HEADER = 4_000  # characters; the email module takes apart longer ones in a time that grows with their square


def parse_email(source: Source) -> Draft:
    """The headers a reader sees and the names of the attachments, then the plain body, else the HTML one."""
    data = source.path.read_bytes()
    message = _message(data)
    builder, listing = DraftBuilder(source), Listing(source)
    headers = _headers(message)
    for entry in attached(message, source):
        listing.add(entry)
    add_headers(builder, headers, [member.name for member in listing.members])
    _add_body(builder, message)
    return builder.finish(
        title=stated_title(headers["Subject"]),
        empty=not data.strip(),
        metadata={"author": headers["From"] or None, "sent_at": sent_at(headers["Date"]), **listing.metadata},
    )


def email_entries(source: Source) -> Iterator[Entry]:
    """What is attached to a message."""
    return attached(_message(source.path.read_bytes()), source)


def parse_mbox(source: Source) -> Draft:
    """The messages of a mailbox in the file's order, each below its subject as heading.

    Raises:
        CorruptDocument: no line `From ...` begins a message.
    """
    builder, listing = DraftBuilder(source), Listing(source)
    n_messages = 0
    for number, message in _messages(source):
        headers = _headers(message)
        members = [listing.add(entry) for entry in _numbered(number, message, source)]
        builder.add(headers["Subject"] or "(no subject)", "heading", level=1)
        add_headers(builder, headers, [member.name for member in members if member])
        _add_body(builder, message)
        n_messages = number
    if not n_messages:
        raise source.corrupt("no message begins in it")
    return builder.finish(metadata={"n_messages": n_messages, **listing.metadata})


def mbox_entries(source: Source) -> Iterator[Entry]:
    """What is attached to the messages of a mailbox, each below the number of its message."""
    for number, message in _messages(source):
        yield from _numbered(number, message, source)


def add_headers(builder: DraftBuilder, headers: Mapping[str, str], attachments: Sequence[str]) -> None:
    """Append a line per header that is not blank, and one with the names of the attachments."""
    lines = [f"{name}: {value}" for name, value in headers.items() if value]
    builder.add("\n".join([*lines, *([f"Attachments: {', '.join(attachments)}"] if attachments else [])]))


def add_body(builder: DraftBuilder, text: str, *, markup: bool) -> None:
    """Append a message's body: HTML as its page, plain text as its paragraphs."""
    root = html_tree(text) if markup else None
    if root is not None:
        add_html(builder, root)
    else:
        for paragraph in text.replace("\r\n", "\n").split("\n\n"):
            builder.add(paragraph)


def sent_at(value: str) -> str | None:
    """ISO time of a Date header, or None when it cannot be read."""
    try:
        return parsedate_to_datetime(value).isoformat()
    except (TypeError, ValueError):
        return None


class _BoundedHeaders(policy.EmailPolicy):
    """The default policy, but for headers over MAX_PARSED_HEADER: those that say what a part is are cut, others are only decoded."""

    def header_fetch_parse(self, name: str, value: str) -> str:
        if len(value) <= MAX_PARSED_HEADER or hasattr(value, "name"):
            return super().header_fetch_parse(name, value)
        if name.lower().startswith("content-"):
            return super().header_fetch_parse(name, value[:MAX_PARSED_HEADER])
        sound = value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        try:
            return str(make_header(decode_header(sound)))
        except (HeaderParseError, LookupError, ValueError):
            return sound


class _EmailMessage(EmailMessage):
    """Named so that the parser's factory has a type."""


def _message(data: bytes) -> EmailMessage:
    return cast(EmailMessage, BytesParser(_EmailMessage, policy=_BoundedHeaders()).parsebytes(data))


def _headers(message: EmailMessage) -> dict[str, str]:
    return {name: clean_line(str(message.get(name, "") or "")) for name in SHOWN}


def _messages(source: Source) -> Iterator[tuple[int, EmailMessage]]:
    """The messages of a mailbox with their numbers from 1."""
    box = mailbox.mbox(source.path, create=False)
    try:
        for number, key in enumerate(box.iterkeys(), start=1):
            yield number, _message(box.get_bytes(key))
    finally:
        box.close()


def _numbered(number: int, message: EmailMessage, source: Source) -> Iterator[Entry]:
    return (replace(entry, names=(str(number), *entry.names)) for entry in attached(message, source))


def _add_body(builder: DraftBuilder, message: EmailMessage) -> None:
    body = message.get_body(("plain", "html"))
    if isinstance(body, EmailMessage):
        add_body(builder, _body_text(body), markup=body.get_content_type() == "text/html")


def _body_text(part: EmailMessage) -> str:
    payload = part.get_payload(decode=True)
    if not isinstance(payload, bytes):
        return ""
    charset = part.get_content_charset()
    try:
        return payload.decode(charset) if charset else decode(payload, markup=True).text
    except (LookupError, UnicodeDecodeError):
        try:
            return decode(payload, markup=True).text
        except NotText:
            return payload.decode("utf-8", "replace")
    except NotText:
        return ""
