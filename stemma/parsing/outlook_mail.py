"""A message that Outlook keeps inside another, as the mail (eml) that it would be had it been sent: for the same message always the same bytes."""

import re
from base64 import encodebytes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import quote

MESSAGE = "message/rfc822"
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class MailPart:
    """One part of a mail: a body, an attached file, or an attached mail."""

    media_type: str
    content: str | bytes
    """Text for a body."""
    name: str | None = None
    """Of a file."""


def mail_bytes(headers: Mapping[str, str], parts: Sequence[MailPart]) -> bytes:
    """A mail with these headers (a line each, in UTF-8 as RFC 6532 has them) and parts.

    The boundary follows from the parts, so none of them has it.
    """
    written = [_written(part) for part in parts]
    boundary = sha256(b"".join(written)).hexdigest()
    lines = [f"{name}: {value}" for name, value in headers.items() if value]
    head = "\n".join([*lines, "MIME-Version: 1.0", f'Content-Type: multipart/mixed; boundary="{boundary}"', "", ""])
    return b"".join([head.encode(), *(b"--%s\n%s\n" % (boundary.encode(), part) for part in written), f"--{boundary}--\n".encode()])


def _written(part: MailPart) -> bytes:
    media_type = part.media_type if _MEDIA_TYPE.fullmatch(part.media_type) else "application/octet-stream"
    if isinstance(part.content, str):
        return _head(f"{media_type}; charset=utf-8", "base64") + encodebytes(part.content.encode("utf-8", "replace"))
    if part.name is None:  # a mail in a mail may not be encoded
        return _head(media_type, "8bit") + part.content
    disposition = f"\nContent-Disposition: attachment; filename*=utf-8''{quote(part.name, safe='', errors='replace')}"
    return _head(f"{media_type}{disposition}", "base64") + encodebytes(part.content)


def _head(content_type: str, encoding: str) -> bytes:
    return f"Content-Type: {content_type}\nContent-Transfer-Encoding: {encoding}\n\n".encode()
