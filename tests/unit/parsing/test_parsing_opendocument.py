"""OpenDocument text, presentations and workbooks."""

import zipfile
from pathlib import Path

import pytest

from stemma.errors import CorruptDocument, EncryptedDocument

_NAMES = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{prefix}:1.0"'
    for prefix in ("office", "text", "table", "draw", "presentation", "style", "meta", "manifest")
)


@pytest.fixture
def packed(tmp_path: Path):
    """`packed("odt", body, styles)` writes a document whose `office:body` holds the markup."""

    def packed(kind: str, body: str, styles: str = "", **parts: str) -> Path:
        path = tmp_path / f"file.{kind}"
        mime = {"odt": "text", "odp": "presentation", "ods": "spreadsheet"}[kind]
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("mimetype", f"application/vnd.oasis.opendocument.{mime}")
            archive.writestr(
                "content.xml",
                f"<office:document-content {_NAMES}><office:automatic-styles>{styles}</office:automatic-styles>"
                f"<office:body><office:{mime}>{body}</office:{mime}></office:body></office:document-content>",
            )
            for name, part in parts.items():
                archive.writestr({"meta": "meta.xml", "manifest": "META-INF/manifest.xml"}[name], part)
        return path

    return packed


def blocks(document):
    return [(block.kind, document.text[block.char_start : block.char_end]) for block in document.blocks]


def test_a_text_has_headings_lists_tables_and_notes(parse, packed):
    styles = (
        '<text:list-style style:name="N"><text:list-level-style-number text:level="1" style:num-format="1"/></text:list-style>'
        '<style:style style:name="H"><style:text-properties text:display="none"/></style:style>'
    )
    body = (
        '<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes><text:h text:outline-level="2">Head</text:h>'
        "<text:p>Two<text:s text:c='2'/>blanks,<text:line-break/>a line<text:note><text:note-citation>7</text:note-citation>"
        "<text:note-body><text:p>the note</text:p></text:note-body></text:note>\n   end<text:span text:style-name='H'>unseen</text:span></text:p>"
        '<text:list text:style-name="N"><text:list-item><text:p>one</text:p><text:list><text:list-item><text:p>deep</text:p>'
        "</text:list-item></text:list></text:list-item><text:list-item><text:p>two</text:p></text:list-item></text:list>"
        "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>h</text:p></table:table-cell>"
        "<table:covered-table-cell/></table:table-row></table:table-header-rows></table:table>"
    )
    assert blocks(parse(packed("odt", body, styles))) == [
        ("heading", "Head"),
        ("paragraph", "Two  blanks,\na line[^1] end"),
        ("list", "1. one\n  - deep\n2. two"),
        ("table", "| h |\n| --- |"),
        ("paragraph", "[^1]: the note"),
    ]


def test_a_text_of_the_shared_files_has_its_note_and_cell(parse, shared):
    text = parse(shared / "files/generated/odt/note_table.odt").text
    assert all(needle in text for needle in ("needle-odt body", "needle-odtnote", "needle-odtcell"))


def test_slides_are_pages_with_titles_and_notes(parse, shared):
    document = parse(shared / "files/odt/d_odf_presentation_01.odp")
    assert [page.number for page in document.pages] == [1, 2, 3]
    assert (document.title, document.metadata["author"]) == ("Test Table Slide", "Maxim Lysak, Cesar Berrospi Ramis")
    assert "Notes:\nSome notes on the second slide." in document.text[document.pages[1].char_start : document.pages[1].char_end]


def test_a_hidden_slide_is_read_and_named(parse, packed):
    styles = '<style:style style:name="d"><style:drawing-page-properties presentation:visibility="hidden"/></style:style>'
    slide = '<draw:page draw:style-name="d"><draw:custom-shape><text:p>word</text:p></draw:custom-shape></draw:page><draw:page/>'
    document = parse(packed("odp", slide, styles))
    assert (document.text, document.metadata["hidden_slides"], document.metadata["pages_without_text"]) == ("word", [1], [2])


def test_a_workbook_has_stored_values_and_repeated_cells(parse, packed):
    body = (
        '<table:table table:name="A"><table:table-row table:number-rows-repeated="3"><table:table-cell table:number-columns-repeated="2" '
        'office:value-type="float" office:value="1.50"><text:p>1,5 €</text:p></table:table-cell></table:table-row>'
        '<table:table-row table:number-rows-repeated="1048573"><table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
        '</table:table><table:table table:name="B"><table:table-row><table:table-cell office:value-type="date" office:date-value="2026-01-02T00:00:00">'
        "<text:p>2.1.</text:p></table:table-cell></table:table-row></table:table>"
    )
    document = parse(packed("ods", body))
    assert document.text == "A\n\n| 1.5 | 1.5 |\n| --- | --- |\n| 1.5 | 1.5 |\n| 1.5 | 1.5 |\n\nB\n\n2026-01-02"
    assert [page.label for page in document.pages] == ["A", "B"]


def test_an_encrypted_document_is_encrypted(parse, packed):
    manifest = f"<manifest:manifest {_NAMES}><manifest:file-entry><manifest:encryption-data/></manifest:file-entry></manifest:manifest>"
    with pytest.raises(EncryptedDocument):
        parse(packed("odt", "", manifest=manifest))


@pytest.mark.parametrize("name", ["generated/odt/truncated.odt", "odt/t_testODTnotaZipFile.odt"])
def test_a_damaged_document_is_corrupt(parse, shared, name):
    with pytest.raises(CorruptDocument):
        parse(shared / "files" / name)
