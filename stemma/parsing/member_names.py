"""Names of what lies in a mail or an archive, as text that no path can be climbed with and no two members share.

Nothing is ever opened or written under such a name. A component is the NFC spelling of a name; what a path cannot carry is
written `%XX`: control characters, a slash within a name, the first dot of `.` and of what begins with `..`, lone surrogates byte by byte, and a
`%` that would read as one of these marks. An empty name is `%`. `%~2` before the extension marks the second member of one
name, `%~` and 32 hex digits a name that was cut.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

MAX_MEMBER_PATH_BYTES = 1_000

_LITERAL = re.compile(r"%(?=[01][0-9A-F]|2[5EF]|7F|[89A-F][0-9A-F]|~)")
_FORBIDDEN = re.compile("[\x00-\x1f/\x7f\ud800-\udfff]")
_MARK = re.compile(rb"%([01][0-9A-F]|2[5EF]|7F|[89A-F][0-9A-F])")
_NUMBER = re.compile(r"%~[1-9][0-9]{0,9}(?=(\.[^.]*)?$)")
_PREFIX_BYTES = 200  # of a name that is cut
_MAX_SUFFIX = 12  # characters of an extension that a cut keeps


class MemberPaths:
    """Gives each member of one container its path, in the container's order; the same names give the same paths."""

    def __init__(self) -> None:
        self._given: Counter[str] = Counter()

    def of(self, names: Sequence[str]) -> str:
        """The path of the next member: its names from the outermost folder to its own."""
        path = _fitted(member_path(names))
        self._given[path] += 1
        return path if self._given[path] == 1 else _before_suffix(path, f"%~{self._given[path]}")


def member_path(names: Sequence[str]) -> str:
    """The names as one path, joined by slashes; `member_names` turns it back."""
    return "/".join(_component(name) for name in names)


def member_names(path: str) -> tuple[str, ...]:
    """The names that a path stands for, in NFC; of one that was cut, what is left of them."""
    return tuple(_name(component) for component in path.split("/"))


def _component(name: str) -> str:
    text = unicodedata.normalize("NFC", name)
    if text in {"", "%"}:
        return "%25" if text else "%"
    text = _FORBIDDEN.sub(_escaped, _LITERAL.sub("%25", text))
    return "%2E" + text[1:] if text == "." or text.startswith("..") else text


def _escaped(character: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in character[0].encode("utf-8", "surrogatepass"))


def _name(component: str) -> str:
    if component == "%":
        return ""
    text = _NUMBER.sub("", component, count=1).encode()
    return _MARK.sub(lambda mark: bytes([int(mark[1], 16)]), text).decode("utf-8", "surrogatepass")


def _fitted(path: str) -> str:
    data = path.encode()
    if len(data) <= MAX_MEMBER_PATH_BYTES:
        return path
    beginning = data[:_PREFIX_BYTES].decode("utf-8", "ignore").rstrip("/%.")
    return f"{beginning}%~{sha256(data).hexdigest()[:32]}{_suffix(path)}"


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    dot = name.rfind(".")
    return name[dot:] if dot > 0 and len(name) - dot <= _MAX_SUFFIX else ""


def _before_suffix(path: str, mark: str) -> str:
    suffix = _suffix(path)
    return f"{path.removesuffix(suffix)}{mark}{suffix}" if suffix else path + mark
