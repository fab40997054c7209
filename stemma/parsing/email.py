"""E-mail messages: subject, correspondents and the readable body."""

from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parsedate_to_datetime

from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.encoding import NotText, decode
from stemma.parsing.html import add_html, html_tree

_SHOWN = ("From", "To", "Cc", "Date", "Subject")


def parse_email(source: Source) -> Draft:
    """The headers a reader sees, then the plain body, else the HTML one; attachments are named in the metadata, not read."""
    data = source.path.read_bytes()
    message = BytesParser(_EmailMessage, policy=policy.default).parsebytes(data)
    builder = DraftBuilder(source)
    headers = {name: clean_line(str(message.get(name, "") or "")) for name in _SHOWN}
    builder.add("\n".join(f"{name}: {value}" for name, value in headers.items() if value))
    body = message.get_body(("plain", "html"))
    if isinstance(body, EmailMessage):
        text = _body_text(body)
        root = html_tree(text) if body.get_content_type() == "text/html" else None
        if root is not None:
            add_html(builder, root)
        else:
            for paragraph in text.split("\n\n"):
                builder.add(paragraph)
    attachments = [clean_line(part.get_filename() or part.get_content_type()) for part in message.iter_attachments()]
    return builder.finish(
        title=stated_title(headers["Subject"]),
        empty=not data.strip(),
        metadata={"author": headers["From"] or None, "sent_at": _sent_at(headers["Date"]), "attachments": attachments},
    )


class _EmailMessage(EmailMessage):
    """Named so that the parser's factory has a type."""


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


def _sent_at(value: str) -> str | None:
    """ISO time of the Date header, or None when it cannot be read."""
    try:
        return parsedate_to_datetime(value).isoformat()
    except (TypeError, ValueError):
        return None
