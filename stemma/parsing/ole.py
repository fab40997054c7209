"""Files in Microsoft's older container (OLE2): encrypted Office files, and the formats before 2007, which are not read."""

from importlib import import_module
from typing import Any

from stemma.errors import EncryptedDocument, UnsupportedFormat
from stemma.parsing.draft import Draft, Source

_KINDS = (
    ("WordDocument", "Word 97-2003"),
    ("Workbook", "Excel 97-2003"),
    ("Book", "Excel 5"),
    ("PowerPoint Document", "PowerPoint 97-2003"),
)


def refuse_ole(source: Source) -> Draft:
    """Says why the file is not read.

    Raises:
        EncryptedDocument: an Office file with a password, which Office keeps in such a container.
        UnsupportedFormat: any other file of this kind.
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
    kind = next((kind for stream, kind in _KINDS if stream in streams), None)
    raise UnsupportedFormat(source.source_path, f"{kind} files are not read" if kind else "no parser reads this kind of OLE file")
