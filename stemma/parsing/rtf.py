"""Rich Text Format: one pass over its control words; paragraphs, headings by outline level, tables and footnotes."""

import codecs
import re
from dataclasses import dataclass, field, replace

from stemma.parsing.cleaning import clean_line, stated_title
from stemma.parsing.draft import Draft, DraftBuilder, Source
from stemma.parsing.tables import markdown_table

_TOKEN = re.compile(rb"\\([a-zA-Z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)")
_MAX_DEPTH = 2_000  # of groups
# What is no text of the body: tables of the format itself, pictures, headers, deleted text, field codes, comments, bookmarks.
_DESTINATIONS = frozenset({
    "fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "headerl", "headerr", "headerf", "footer", "footerl",
    "footerr", "footerf", "fldinst", "listtable", "listoverridetable", "revtbl", "rsidtbl", "generator", "themedata",
    "colorschememapping", "datastore", "latentstyles", "pnseclvl", "xmlnstbl", "mmathPr", "atnid", "atnauthor", "annotation",
    "bkmkstart", "bkmkend", "pntext", "pntxta", "pntxtb", "filetbl", "template", "operator", "nonshppict", "ftnsep", "ftnsepc",
    "aftnsep", "aftnsepc", "title", "author", "subject", "keywords", "sp", "nonesttables",
})  # fmt: skip
_CHARACTERS = {
    "tab": "\t", "line": "\n", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”", "bullet": "•", "emdash": "—", "endash": "–",
    "emspace": "\u2003", "enspace": "\u2002", "qmspace": "\u2005", "zwj": "\u200d", "zwnj": "\u200c", "ltrmark": "\u200e", "rtlmark": "\u200f",
}  # fmt: skip
_CHARSETS = {
    0: "cp1252", 77: "mac-roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "cp950", 161: "cp1253", 162: "cp1254",
    163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874", 238: "cp1250", 255: "cp437",
}  # fmt: skip
_PROPERTIES = {"title": "title", "author": "author", "subject": "subject", "keywords": "keywords"}


def parse_rtf(source: Source) -> Draft:
    """The text as it reads with all changes accepted; footnotes follow at the end as `[^n]: ...`.

    Hidden and deleted text, comments, headers, footers and field codes are left out, results of fields stay.

    Raises:
        CorruptDocument: it does not begin as RTF, or ends before its first group does.
    """
    return rtf_draft(source.path.read_bytes(), source)


def rtf_draft(data: bytes, source: Source) -> Draft:
    """`parse_rtf` for rich text that lies inside another file. Raises CorruptDocument."""
    if not data.lstrip().startswith(b"{\\rtf"):
        raise source.corrupt("it does not begin as RTF")
    reader = _Reader(source)
    position = 0
    while not reader.closed and (token := _TOKEN.search(data, position)):
        position = token.end() + reader.read(token)
    if not reader.closed:
        raise source.corrupt("it is cut off: its groups are not closed")
    return reader.finish()


@dataclass(slots=True)
class _Group:
    """What holds until the group's brace closes."""

    destination: str = ""
    """Empty for the body; where text goes that is not shown, `skip`."""
    hidden: bool = False
    encoding: str = "cp1252"
    n_replaced: int = 1
    """Characters after a `\\u` that stand in for it."""


@dataclass(slots=True)
class _Paragraph:
    pieces: list[str] = field(default_factory=list[str])
    outline: int = 0
    in_table: bool = False
    item: bool = False
    marker: list[str] = field(default_factory=list[str])
    """The number or bullet that the writing program computed."""


class _Reader:
    def __init__(self, source: Source) -> None:
        self.closed = False
        self._source = source
        self._builder = DraftBuilder(source)
        self._groups: list[_Group] = [_Group()]
        self._encoding = "cp1252"
        self._fonts: dict[int, str] = {}
        self._font = 0
        self._bytes = bytearray()  # of characters written as \'xx, which may be halves
        self._surrogate = ""
        self._skip = 0  # characters that stand in for a \u
        self._paragraph = _Paragraph()
        self._cells: list[str] = []
        self._rows: list[list[str]] = []
        self._notes: list[list[str]] = []
        self._properties: dict[str, list[str]] = {}
        self._ignorable = False  # after \*, until the destination's name

    def read(self, token: re.Match[bytes]) -> int:
        """Take one token. Returns how many bytes after it are binary data."""
        word, parameter, hexadecimal, symbol, brace, text = token.groups()
        if hexadecimal is not None:
            self._add_byte(int(hexadecimal, 16))
        elif text is not None:
            self._add_bytes(text)
        elif brace == b"{":
            self._open()
        elif brace == b"}":
            self._close()
        elif symbol is not None:
            self._symbol(symbol.decode("latin-1"))
        elif word is not None:
            number = int(parameter) if parameter is not None else None
            if word == b"bin":
                return max(0, number or 0)
            self._word(word.decode("ascii"), number)
        return 0

    def finish(self) -> Draft:
        """The draft, with the notes at its end."""
        self._end_paragraph()
        self._end_table()
        for number, note in enumerate(self._notes, 1):
            self._builder.add(f"[^{number}]: {clean_line(''.join(note))}")
        stated = {name: clean_line("".join(pieces)) for name, pieces in self._properties.items()}
        title = stated_title(stated.pop("title", None))
        return self._builder.finish(title=title, metadata=stated)

    def _open(self) -> None:
        self._flush()
        if len(self._groups) > _MAX_DEPTH:
            raise self._source.corrupt("its groups are nested too deeply")
        self._groups.append(replace(self._groups[-1]))

    def _close(self) -> None:
        self._flush()
        self._groups.pop()
        self.closed = len(self._groups) <= 1

    def _symbol(self, symbol: str) -> None:
        if symbol == "*":
            self._ignorable = True
        elif symbol in "\\{}":
            self._add(symbol)
        elif symbol == "~":
            self._add("\xa0")
        elif symbol == "_":
            self._add("\u2011")
        elif symbol in "\r\n":
            self._word("par", None)

    def _word(self, word: str, number: int | None) -> None:  # noqa: PLR0912 - one case per control word
        self._flush()
        group = self._groups[-1]
        if self._ignorable or word in _DESTINATIONS:
            known = not self._ignorable or word in ("shptxt", "shpinst")
            self._ignorable = False
            in_info = group.destination == "info"
            group.destination = word if in_info or word in ("fonttbl", "info") else "skip" if word in _DESTINATIONS or not known else ""
            return
        match word:
            case "par" | "sect" | "page" | "row" | "cell" | "nestcell" | "nestrow" | "trowd" if not group.destination:
                self._end(word)
            case "pard":
                self._paragraph.outline, self._paragraph.in_table, self._paragraph.item = 0, False, False
            case "outlinelevel":
                self._paragraph.outline = (number or 0) + 1
            case "intbl":
                self._paragraph.in_table = True
            case "ls":
                self._paragraph.item = bool(number)
            case "plain":
                group.hidden = False
            case "v" | "deleted":
                group.hidden = number != 0
            case "footnote" if not group.destination:
                self._notes.append([])
                self._paragraph.pieces.append(f"[^{len(self._notes)}]")
                group.destination = "footnote"
            case "listtext" if not group.destination:
                self._paragraph.marker.clear()
                group.destination = "listtext"
            case "ansicpg":
                self._encoding = group.encoding = _codec(f"cp{number}", self._encoding)
            case "mac":
                self._encoding = group.encoding = "mac-roman"
            case "f" if group.destination == "fonttbl":
                self._font = number or 0
            case "fcharset" if group.destination == "fonttbl":
                self._fonts[self._font] = _CHARSETS.get(number or 0, self._encoding) if number else self._encoding
            case "f":
                group.encoding = self._fonts.get(number or 0, self._encoding)
            case "uc":
                group.n_replaced = max(0, min(number or 0, 10))
            case "u" if number is not None:
                self._add_code(number % 65_536)
                self._skip = group.n_replaced
            case _ if word in _CHARACTERS:
                self._add(_CHARACTERS[word])
            case _:
                pass

    def _end(self, word: str) -> None:
        """A paragraph, cell or row ends."""
        if word in ("cell", "nestcell"):
            self._cells.append(clean_line("".join(self._paragraph.pieces)))
            self._paragraph.pieces.clear()
        elif word in ("row", "nestrow"):
            self._rows.append(self._cells)
            self._cells = []
        elif word == "trowd":
            pass
        elif self._paragraph.in_table:
            self._paragraph.pieces.append("\n")  # inside a cell
        else:
            self._end_paragraph()

    def _end_paragraph(self) -> None:
        text = "".join(self._paragraph.pieces)
        marker = clean_line("".join(self._paragraph.marker))
        self._paragraph.pieces.clear()
        self._paragraph.marker.clear()
        if not text.strip():
            return
        self._end_table()
        if 1 <= self._paragraph.outline <= 6:
            self._builder.add(clean_line(text), "heading", level=self._paragraph.outline)
        elif self._paragraph.item or marker:
            self._builder.add(f"{marker if any(map(str.isalnum, marker)) else '-'} {text.strip()}", "list", continues=True)
        else:
            self._builder.add(text)

    def _end_table(self) -> None:
        if self._cells:
            self._rows.append(self._cells)
        self._builder.add(markdown_table(self._rows), "table")
        self._cells, self._rows = [], []

    def _add_bytes(self, text: bytes) -> None:
        skipped = min(self._skip, len(text))
        self._skip -= skipped
        self._bytes += text[skipped:]

    def _add_byte(self, byte: int) -> None:
        if self._skip:
            self._skip -= 1
        else:
            self._bytes.append(byte)

    def _add_code(self, code: int) -> None:
        """A UTF-16 unit; the halves of a pair come one after the other."""
        character = chr(code)
        if 0xD800 <= code < 0xDC00:
            self._surrogate = character
        else:
            pair = self._surrogate + character
            self._surrogate = ""
            self._add(pair.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore"))

    def _flush(self) -> None:
        if self._bytes:
            text = bytes(self._bytes).decode(self._groups[-1].encoding, "replace")
            self._bytes.clear()
            self._add(text)

    def _add(self, text: str) -> None:
        if self._bytes:
            self._flush()
        group = self._groups[-1]
        if group.hidden or group.destination in ("skip", "fonttbl", "info"):
            return
        if group.destination == "footnote":
            self._notes[-1].append(text)
        elif group.destination == "listtext":
            self._paragraph.marker.append(text)
        elif name := _PROPERTIES.get(group.destination):
            self._properties.setdefault(name, []).append(text)
        else:
            self._paragraph.pieces.append(text)


def _codec(name: str, otherwise: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return otherwise
