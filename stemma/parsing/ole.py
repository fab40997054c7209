"""Files in Microsoft's older container (OLE2): what they are, and those that are not read."""

from importlib import import_module
from typing import Any

from stemma.errors import EncryptedDocument, UnsupportedFormat
from stemma.parsing.draft import Draft, Source

_KINDS = (
    ("WordDocument", "Word 97-2003 files are not read"),
    ("Book", "Excel 5 files are not read"),
    ("PowerPoint Document", "PowerPoint 97-2003 files are not read"),
)


def ole_streams(source: Source) -> set[str]:
    """The names of the container's streams, such as `Workbook`.

    Raises:
        EncryptedDocument: an Office file with a password, which Office keeps in such a container.
        CorruptDocument: the container is damaged, or is none.
    """
    olefile: Any = import_module("olefile")  # its types claim that it takes no path
    try:
        with olefile.OleFileIO(source.path) as container:
            streams = {"/".join(path) for path in container.listdir()}
    except Exception as error:  # olefile raises IndexError, struct.error and others on damaged directories
        raise source.corrupt("its OLE container is damaged or cut off") from error
    if any(name.endswith(("EncryptedPackage", "EncryptionInfo")) for name in streams):
        raise EncryptedDocument(source.source_path, "the Office file is protected by a password")
    return streams


def parse_ole(source: Source) -> Draft:
    """An OLE file under whatever extension: a workbook or a message is read, for anything else it is said why not.

    Raises:
        EncryptedDocument, CorruptDocument: as `ole_streams`.
        UnsupportedFormat: any other file of this kind.
    """
    streams = ole_streams(source)
    if "Workbook" in streams:
        from stemma.parsing.xls import parse_xls

        return parse_xls(source)
    if "__properties_version1.0" in streams:
        from stemma.parsing.outlook import parse_msg

        return parse_msg(source)
    kind = next((kind for stream, kind in _KINDS if stream in streams), None)
    raise UnsupportedFormat(source.source_path, kind or "no parser reads this kind of OLE file")
