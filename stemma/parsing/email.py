"""E-mail: single messages (eml) and mailboxes (mbox)."""

import mailbox
from collections.abc import Mapping
from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime

from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.encoding import NotText, decode
from stemma.parsing.html import add_html, html_tree

SHOWN = ("From", "To", "Cc", "Date", "Subject")
"""The headers that a reader sees, in this order."""


def parse_email(source: Source) -> Draft:
    """The headers a reader sees and the names of the attachments, then the plain body, else the HTML one."""
    data = source.path.read_bytes()
    message = _message(data)
    builder = DraftBuilder(source)
    headers = _headers(message)
    attachments = _attachments(message)
    add_headers(builder, headers, attachments)
    _add_body(builder, message)
    return builder.finish(
        title=stated_title(headers["Subject"]),
        empty=not data.strip(),
        metadata={"author": headers["From"] or None, "sent_at": sent_at(headers["Date"]), "attachments": attachments},
    )


def parse_mbox(source: Source) -> Draft:
    """The messages of a mailbox in the file's order, each below its subject as heading.

    Raises:
        CorruptDocument: no line `From ...` begins a message.
    """
    builder = DraftBuilder(source)
    n_messages = 0
    box = mailbox.mbox(source.path, create=False)
    try:
        for key in box.iterkeys():
            message = _message(box.get_bytes(key))
            headers = _headers(message)
            builder.add(headers["Subject"] or "(no subject)", "heading", level=1)
            add_headers(builder, headers, _attachments(message))
            _add_body(builder, message)
            n_messages += 1
    finally:
        box.close()
    if not n_messages:
        raise source.corrupt("no message begins in it")
    return builder.finish(metadata={"n_messages": n_messages})


def add_headers(builder: DraftBuilder, headers: Mapping[str, str], attachments: list[str]) -> None:
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


class _EmailMessage(EmailMessage):
    """Named so that the parser's factory has a type."""


def _message(data: bytes) -> EmailMessage:
    return BytesParser(_EmailMessage, policy=policy.default).parsebytes(data)


def _headers(message: EmailMessage) -> dict[str, str]:
    return {name: clean_line(str(message.get(name, "") or "")) for name in SHOWN}


def _attachments(message: EmailMessage) -> list[str]:
    """Names; of an attached message, its subject; of a part without a name, its type."""
    names: list[str] = []
    for part in message.iter_attachments():
        name = part.get_filename()
        if not name and part.get_content_type() == "message/rfc822":
            inner = next((inner for inner in part.walk() if inner is not part), None)
            name = str(inner.get("Subject", "")) if inner is not None else None
        names.append(clean_line(name or part.get_content_type()))
    return names


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
