"""Which parser reads a file."""

import zipfile
from io import BytesIO

import pytest

from stemma.errors import UnsupportedFormat
from stemma.parsing.formats import EXTENSIONS, FORMATS, detect_format, parser_versions, require_format


def format_id(head: bytes, file_type: str) -> str | None:
    format = detect_format(head, file_type)
    return format.id if format else None


def zipped(*names: str) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("head", "file_type", "expected"),
    [
        (b"%PDF-1.7\n", "txt", "pdf"),
        (b"junk\n%PDF-1.4\n", "pdf", "pdf"),
        (b"\x89PNG\r\n\x1a\n....", "jpg", "image"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "docx", "ole"),
        (b"<html><body>hello", "md", "markdown"),
        (b"<!DOCTYPE html><p>hello", "", "html"),
        (b"<html>error page", "pdf", "pdf"),
        (b"int main(void) { return 0; }\n", "c", "code"),
        (b"plain words", "TXT", "text"),
        ("слова".encode("utf-16"), "notes", "text"),
        (b"", "pdf", "text"),
        (b"# In %PDF-1.4 files\n", "md", "markdown"),
    ],
)
def test_bytes_that_cannot_be_mistaken_decide_and_the_extension_does_otherwise(head, file_type, expected):
    assert format_id(head, file_type) == expected


@pytest.mark.parametrize(
    ("folder", "expected"), [("word/document.xml", "docx"), ("ppt/presentation.xml", "pptx"), ("xl/workbook.xml", "xlsx")]
)
def test_an_office_file_is_known_by_its_parts_under_any_extension(folder, expected):
    head = zipped("[Content_Types].xml", folder)
    assert {format_id(head, extension) for extension in ("docx", "xlsx", "pptx", "zip", "txt", "")} == {expected}


@pytest.mark.parametrize(
    ("head", "file_type"),
    [
        (zipped("a.txt"), "jar"),
        (zipped("drawing.xml"), "odg"),
        (b"\x1f\x8b\x08\0\0\0", "gz"),
        (b"\x7fELF\x02\x01\x01\0\0\0", ""),
        (bytes(range(256)), "bin"),
        (b"From: a page saved whole", "mhtml"),
    ],
)
def test_what_no_parser_reads_has_no_format(head, file_type):
    assert detect_format(head, file_type) is None
    with pytest.raises(UnsupportedFormat):
        require_format(head, file_type, source_path="folder/file")


def test_every_extension_leads_to_a_format_whose_parser_can_be_loaded():
    assert set(EXTENSIONS.values()) <= set(FORMATS)
    assert all(callable(format.load()) for format in FORMATS.values())


def test_a_parsers_version_names_its_revision_and_libraries():
    assert parser_versions()["pdf"].startswith("3+pypdfium2-")
    assert set(parser_versions()) == set(FORMATS)


def test_archives_are_read_only_if_asked_for():
    with pytest.raises(UnsupportedFormat, match="ZIP_ARCHIVES"):
        require_format(zipped("a.txt"), "zip", source_path="a.zip")
    assert require_format(zipped("a.txt"), "zip", source_path="a.zip", zip_archives=True).id == "zip"
