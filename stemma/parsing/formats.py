"""The registry of formats: which parser reads a file, decided from its first bytes and its extension."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import cast

from stemma.errors import UnsupportedFormat
from stemma.parsing.draft import Draft, Source
from stemma.parsing.encoding import utf16_without_bom
from stemma.parsing.members import Entry

HEAD_BYTES = 8_192
"""How many bytes of a file `detect_format` wants to see."""

Parser = Callable[[Source], Draft]


@dataclass(frozen=True, slots=True)
class Format:
    """A format and the parser that reads it."""

    id: str
    """Stable: part of the key under which a parsed document is kept."""
    loader: str
    """`module:function`, imported at first use because some parsers load slowly."""
    revision: int
    """Raised when the parser gives another output for the same bytes."""
    libraries: tuple[str, ...] = ()
    """Distributions whose version changes the output."""
    mime_type: str | None = None
    entries: str | None = None
    """`module:function` that goes through what a file holds, of a format whose files hold documents of their own."""

    @property
    def parser(self) -> str:
        """What `ParsedDocument.parser` says."""
        return self.id

    @property
    def parser_version(self) -> str:
        """Own revision and library versions, such as `1+pypdfium2-5.15.2`."""
        return "+".join([str(self.revision), *(f"{library}-{_installed(library)}" for library in self.libraries)])

    def load(self) -> Parser:
        """The parser's function. Raises ImportError when its library is not installed."""
        return cast(Parser, _function(self.loader))

    def load_entries(self) -> Callable[[Source], Iterator[Entry]]:
        """The function that goes through a container of this format."""
        assert self.entries is not None, f"{self.id} holds no documents"
        return cast(Callable[[Source], Iterator[Entry]], _function(self.entries))


@cache
def _installed(library: str) -> str:
    """The version of a distribution. It takes milliseconds to find out, and every step of every run asks for that of thirty."""
    from importlib.metadata import version  # here, since it imports the reader of mails, and a parser's process never asks

    return version(library)


def _function(address: str) -> object:
    module, function = address.split(":")
    return getattr(import_module(module), function)


_OOXML = "application/vnd.openxmlformats-officedocument"
_ODF = "application/vnd.oasis.opendocument"

FORMATS: dict[str, Format] = {
    format.id: format
    for format in (
        Format("text", "stemma.parsing.plain:parse_plain", 2, ("charset-normalizer",), "text/plain"),
        Format("markdown", "stemma.parsing.markdown:parse_markdown", 3, ("markdown-it-py",), "text/markdown"),
        Format("html", "stemma.parsing.html:parse_html", 4, ("lxml",), "text/html"),
        Format("csv", "stemma.parsing.delimited:parse_csv", 3, (), "text/csv"),
        Format("tsv", "stemma.parsing.delimited:parse_tsv", 3, (), "text/tab-separated-values"),
        Format("eml", "stemma.parsing.email:parse_email", 4, ("lxml",), "message/rfc822", "stemma.parsing.email:email_entries"),
        Format("pdf", "stemma.parsing.pdf_pipelines:parse_pdf", 3, ("pypdfium2", "rapidocr", "docling-slim"), "application/pdf"),
        Format("docx", "stemma.parsing.docx:parse_docx", 3, ("lxml",), f"{_OOXML}.wordprocessingml.document"),
        Format("pptx", "stemma.parsing.pptx:parse_pptx", 3, ("lxml",), f"{_OOXML}.presentationml.presentation"),
        Format("xlsx", "stemma.parsing.xlsx:parse_xlsx", 2, ("lxml",), f"{_OOXML}.spreadsheetml.sheet"),
        Format("odt", "stemma.parsing.opendocument:parse_odt", 2, ("lxml",), f"{_ODF}.text"),
        Format("odp", "stemma.parsing.opendocument:parse_odp", 2, ("lxml",), f"{_ODF}.presentation"),
        Format("ods", "stemma.parsing.ods:parse_ods", 1, ("lxml",), f"{_ODF}.spreadsheet"),
        Format("epub", "stemma.parsing.epub:parse_epub", 3, ("lxml",), "application/epub+zip"),
        Format("rtf", "stemma.parsing.rtf:parse_rtf", 2, (), "application/rtf"),
        Format("xls", "stemma.parsing.xls:parse_xls", 1, ("python-calamine",), "application/vnd.ms-excel"),
        Format("xlsb", "stemma.parsing.xls:parse_xlsb", 1, ("python-calamine",), "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
        Format("notebook", "stemma.parsing.notebook:parse_notebook", 2, ("markdown-it-py",), "application/x-ipynb+json"),
        Format("rst", "stemma.parsing.rst:parse_rst", 2, (), "text/x-rst"),
        Format("latex", "stemma.parsing.latex:parse_latex", 3, ("pylatexenc",), "application/x-tex"),
        Format("xml", "stemma.parsing.xml_text:parse_xml", 1, ("lxml",), "application/xml"),
        Format("svg", "stemma.parsing.xml_text:parse_svg", 1, ("lxml",), "image/svg+xml"),
        Format("json", "stemma.parsing.json_text:parse_json", 2, (), "application/json"),
        Format("jsonl", "stemma.parsing.json_text:parse_jsonl", 2, (), "application/jsonl"),
        Format("code", "stemma.parsing.code:parse_code", 1, ("charset-normalizer",), "text/plain"),
        Format("subtitles", "stemma.parsing.subtitles:parse_subtitles", 2, (), "text/vtt"),
        Format("mbox", "stemma.parsing.email:parse_mbox", 3, ("lxml",), "application/mbox", "stemma.parsing.email:mbox_entries"),
        Format(
            "msg",
            "stemma.parsing.outlook:parse_msg",
            3,
            ("lxml", "python-oxmsg"),
            "application/vnd.ms-outlook",
            "stemma.parsing.outlook:msg_entries",
        ),
        Format(
            "zip", "stemma.parsing.archive:parse_zip", 1, ("charset-normalizer",), "application/zip", "stemma.parsing.archive:zip_entries"
        ),
        Format("image", "stemma.parsing.images:parse_image", 1, ("pillow", "rapidocr")),
        Format("ole", "stemma.parsing.ole:parse_ole", 3, ("olefile", "python-calamine", "python-oxmsg")),
    )
}
"""Format id -> format: everything that this version reads, and `ole`, a container that is read only as far as its content is known."""

CODE = (
    "py", "pyi", "pyx", "js", "mjs", "cjs", "jsx", "ts", "tsx", "vue", "svelte", "java", "kt", "kts", "scala", "groovy", "gradle", "c", "h", "cc", "cpp",
    "cxx", "hpp", "hh", "m", "mm", "cs", "fs", "vb", "go", "rs", "swift", "dart", "rb", "php", "pl", "pm", "lua", "r", "jl", "hs", "ml", "mli", "ex", "exs",
    "erl", "clj", "cljs", "lisp", "el", "scm", "sh", "bash", "zsh", "fish", "ps1", "bat", "cmd", "sql", "css", "scss", "less", "sol", "zig", "nim", "v",
    "vhd", "vhdl", "f90", "f95", "f", "pas", "asm", "s", "proto", "graphql", "tf", "cmake", "mk",
)  # fmt: skip
"""Extensions of source code."""

EXTENSIONS: dict[str, str] = {
    **dict.fromkeys(("txt", "log", "text"), "text"),
    **dict.fromkeys(("md", "markdown", "mdown", "mkd"), "markdown"),
    **dict.fromkeys(("html", "htm", "xhtml"), "html"),
    "csv": "csv",
    **dict.fromkeys(("tsv", "tab"), "tsv"),
    "eml": "eml",
    "pdf": "pdf",
    **dict.fromkeys(("docx", "docm", "dotx", "dotm"), "docx"),
    **dict.fromkeys(("pptx", "pptm", "ppsx", "ppsm", "potx", "potm"), "pptx"),
    **dict.fromkeys(("xlsx", "xlsm", "xltx", "xltm"), "xlsx"),
    **dict.fromkeys(("odt", "ott"), "odt"),
    **dict.fromkeys(("odp", "otp"), "odp"),
    **dict.fromkeys(("ods", "ots"), "ods"),
    "epub": "epub",
    "rtf": "rtf",
    **dict.fromkeys(("png", "jpg", "jpeg", "tif", "tiff", "webp", "bmp", "gif"), "image"),
    **dict.fromkeys(("xls", "xlt"), "xls"),
    "xlsb": "xlsb",
    "ipynb": "notebook",
    **dict.fromkeys(("rst", "rest"), "rst"),
    **dict.fromkeys(("tex", "latex", "ltx"), "latex"),
    **dict.fromkeys(("xml", "rss", "atom", "dbk", "tei", "jats", "opml"), "xml"),
    "svg": "svg",
    **dict.fromkeys(("json", "geojson", "jsonld"), "json"),
    **dict.fromkeys(("jsonl", "ndjson"), "jsonl"),
    **dict.fromkeys(("vtt", "srt"), "subtitles"),
    "mbox": "mbox",
    "msg": "msg",
    **dict.fromkeys(("doc", "dot", "ppt", "pps"), "ole"),
    **dict.fromkeys(CODE, "code"),
}
"""Extension -> format id. A text file with any other extension is read as plain text."""

_UNREAD_EXTENSIONS = frozenset({"ps", "eps", "odg", "mhtml", "mht"})
_TEXT_FORMATS = frozenset({
    "text", "markdown", "html", "csv", "tsv", "eml", "mbox", "notebook", "rst", "latex", "xml", "svg", "json", "jsonl", "code", "subtitles",
})  # fmt: skip
_OLE_FORMATS = frozenset({"xls", "msg", "ole"})
_ZIP_FOLDERS = ((b"word/", "docx"), (b"ppt/", "pptx"), (b"xl/", "xlsx"))
_OFFICE_PARTS = (b"[Content_Types].xml", b"_rels/", b"docProps/", b"word/", b"ppt/", b"xl/", b"mimetype")
_ZIPPED = frozenset({"docx", "pptx", "xlsx", "odt", "odp", "ods", "epub", "xlsb"})
_MIME_TYPE = re.compile(rb"mimetype.{0,64}?application/(vnd\.oasis\.opendocument\.[a-z]+|epub\+zip)", re.DOTALL)  # the first part, stored
_BY_MIME_TYPE = {
    b"vnd.oasis.opendocument.text": "odt",
    b"vnd.oasis.opendocument.presentation": "odp",
    b"vnd.oasis.opendocument.spreadsheet": "ods",
    b"epub+zip": "epub",
}
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_UNREAD = (b"%!PS", b"\x1f\x8b", b"7z\xbc\xaf\x27\x1c", b"Rar!\x1a\x07", b"BZh", b"\xfd7zXZ\0", b"SQLite format 3\0", b"\x7fELF")
_HTML = re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.{0,2000}?-->\s*)*<(!doctype\s+html|html[\s>])", re.IGNORECASE | re.DOTALL)


def detect_format(head: bytes, file_type: str) -> Format | None:
    """The format of a file, or None when no parser reads it.

    Bytes that cannot be mistaken decide (a PDF called `.txt` is a PDF); where they are silent, the extension does, and
    its parser says `corrupt` when the bytes are not what it promises. An empty file is an empty text.

    Args:
        head: the first HEAD_BYTES bytes, or all of a shorter file.
        file_type: the extension without the dot, in any case.
    """
    extension = file_type.lower().lstrip(".")
    format_id = _by_bytes(head, extension) if head else "text"
    return FORMATS.get(format_id) if format_id else None


def require_format(head: bytes, file_type: str, *, source_path: str, zip_archives: bool = False) -> Format:
    """`detect_format`, for a caller who needs one; archives are read only if asked for. Raises UnsupportedFormat, naming the extension."""
    format = detect_format(head, file_type)
    if format is not None and format.id == "zip" and not zip_archives:
        raise UnsupportedFormat(source_path, "archives are read only while ZIP_ARCHIVES is on")
    if format is not None:
        return format
    kind = f".{file_type.lower()} files" if file_type else "files of this kind"
    raise UnsupportedFormat(source_path, f"no parser reads {kind}")


def parser_versions() -> dict[str, str]:
    """Format id -> version of its parser: what a change of library or code makes stale."""
    return {format.id: format.parser_version for format in FORMATS.values()}


def _by_bytes(head: bytes, extension: str) -> str | None:
    by_extension = EXTENSIONS.get(extension)
    if signed := _by_signature(head, by_extension):
        return signed
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) and extension == "zip" and not _begins_as_office(head):
        return "zip"
    if head.startswith(b"PK\x03\x04"):
        return _office(head, by_extension)
    if head.startswith(_UNREAD) or extension in _UNREAD_EXTENSIONS:
        return None
    if by_extension in _OLE_FORMATS and looks_like_text(head):
        by_extension = None  # web pages and tables that bear an Office extension
    if by_extension or not looks_like_text(head):
        return by_extension
    return "html" if _HTML.match(head) else "text"


def _by_signature(head: bytes, by_extension: str | None) -> str | None:
    """The format whose signature the bytes bear, whatever the extension says."""
    if b"%PDF-" in head[:1024] and by_extension not in _TEXT_FORMATS - {"text"}:
        return "pdf"  # the standard lets junk stand before it
    if head.startswith(_IMAGES) or (head.startswith(b"RIFF") and head[8:12] == b"WEBP") or _is_bitmap(head):
        return "image"
    if head.startswith(_OLE):
        return by_extension if by_extension in _OLE_FORMATS else "ole"
    return "rtf" if head.startswith(b"{\\rtf") else None


def _office(head: bytes, by_extension: str | None) -> str | None:
    """The Office format of a zip: its folders' names if they show in the head, else its extension's word."""
    if stated := _MIME_TYPE.match(head[30:]):
        return _BY_MIME_TYPE.get(stated[1])
    shown = [(position, format_id) for folder, format_id in _ZIP_FOLDERS if (position := head.find(folder)) >= 0]
    if shown and b"[Content_Types].xml" in head:
        format_id = min(shown)[1]
        return "xlsb" if format_id == "xlsx" and (by_extension == "xlsb" or b"xl/workbook.bin" in head) else format_id
    return by_extension if by_extension in _ZIPPED else None


def _begins_as_office(head: bytes) -> bool:
    """Whether the first part of a zip is one of an Office package: an archive may hold such a package, and is none."""
    return head[30 : 30 + int.from_bytes(head[26:28], "little")].startswith(_OFFICE_PARTS)


def _is_bitmap(head: bytes) -> bool:
    return head[:2] == b"BM" and head[6:10] == b"\0\0\0\0" and len(head) > 26


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file of unknown kind may be text: a byte-order mark, UTF-16, UTF-8, or mostly ASCII; few controls."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) or utf16_without_bom(head):
        return True
    controls = sum(byte < 32 and byte not in b"\t\n\r\f\x1b\b" for byte in head)
    if controls > 0.02 * len(head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start >= len(head) - 3:
            return True
        return sum(byte > 127 for byte in head) < 0.3 * len(head)
    return True
