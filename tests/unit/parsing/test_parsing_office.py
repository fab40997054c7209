"""Word, PowerPoint and Excel files."""

import tracemalloc
import zipfile

import pytest
from lxml import etree

from stemma.errors import CorruptDocument, EncryptedDocument, UnsupportedFormat
from stemma.parsing.docx_numbering import Numbering


def test_word_reads_as_if_all_changes_were_accepted(parse, shared):
    text = parse(shared / "files/generated/docx/tracked_nested_hidden.docx").text
    assert "inserted-amount 750" in text
    assert "deleted-amount" not in text
    for needle in ("needle-docx", "needle-nested3", "needle-sdt"):
        assert needle in text
    assert text.count("merged across three") == 1


def test_embedded_html_of_a_word_file_is_read(parse, shared):
    document = parse(shared / "cases/11-no-text-reported-as-success/altchunk.docx")
    assert "Simple paragraph" in document.text
    assert document.warning is None


def test_strict_office_files_are_read(parse, shared):
    assert "Some text" in parse(shared / "files/docx/d_Strict.docx").text
    workbook = parse(shared / "cases/11-no-text-reported-as-success/strict.xlsx")
    assert "Test spreadsheet" in workbook.text
    assert workbook.pages[0].label == "First Sheet"


@pytest.mark.parametrize("name", ["generated/docx/blank.docx", "generated/pptx/blank.pptx", "generated/xlsx/blank.xlsx"])
def test_a_blank_office_file_has_no_text(parse, shared, name):
    document = parse(shared / "files" / name)
    assert (document.text, document.warning) == ("", "no_text")


@pytest.mark.parametrize("name", ["docx/truncated.docx", "xlsx/truncated.xlsx"])
def test_a_cut_office_file_is_corrupt(parse, shared, name):
    with pytest.raises(CorruptDocument):
        parse(shared / "files/generated" / name)


def test_an_office_file_with_a_password_is_encrypted(parse, shared):
    with pytest.raises(EncryptedDocument):
        parse(shared / "files/docx/t_testWORD_protected_passtika.docx")


def test_an_old_container_without_password_is_unsupported_or_corrupt(parse):
    with pytest.raises((UnsupportedFormat, CorruptDocument)):
        parse(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2048), "doc")


def test_word_headings_notes_lists_and_boxes(parse, tmp_path):
    body = (
        '<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>Head</w:t></w:r></w:p>'
        '<w:p><w:r><w:t>Soft</w:t><w:softHyphen/><w:t>ly</w:t><w:footnoteReference w:id="2"/></w:r>'
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>unseen</w:t></w:r>"
        "<w:r><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:r></w:p>"
        '<w:p><w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>item</w:t></w:r></w:p>'
    )
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    path = tmp_path / "made.docx"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("[Content_Types].xml", "<Types/>")
        package.writestr(
            "_rels/.rels", f'<Relationships><Relationship Id="a" Type="{kind}/officeDocument" Target="word/document.xml"/></Relationships>'
        )
        package.writestr("word/document.xml", f"<w:document {names}><w:body>{body}</w:body></w:document>")
        package.writestr(
            "word/_rels/document.xml.rels",
            f'<Relationships><Relationship Id="n" Type="{kind}/footnotes" Target="footnotes.xml"/></Relationships>',
        )
        package.writestr(
            "word/footnotes.xml",
            f'<w:footnotes {names}><w:footnote w:id="2"><w:p><w:r><w:t>the note</w:t></w:r></w:p></w:footnote></w:footnotes>',
        )
    document = parse(path)
    assert document.text == "Head\n\nSoftly[^1]\n\nboxed\n\n- item\n\n[^1]: the note"
    assert (document.blocks[0].kind, document.blocks[0].level) == ("heading", 2)


def numbered(*levels: tuple[int, str, str]) -> str:
    """A numbering part with one definition, used by lists 1 and 2; list 3 begins anew at 5."""
    levels_xml = "".join(
        f'<lvl ilvl="{index}"><start val="1"/><numFmt val="{kind}"/><lvlText val="{pattern}"/></lvl>' for index, kind, pattern in levels
    )
    return (
        f'<numbering><abstractNum abstractNumId="7">{levels_xml}</abstractNum>'
        '<num numId="1"><abstractNumId val="7"/></num><num numId="2"><abstractNumId val="7"/></num>'
        '<num numId="3"><abstractNumId val="7"/><lvlOverride ilvl="0"><startOverride val="5"/></lvlOverride></num></numbering>'
    )


def marks(numbering: str, *paragraphs: tuple[str, int]) -> list[str]:
    counted = Numbering(etree.fromstring(numbering))
    return [counted.mark(num_id, level) for num_id, level in paragraphs]


def test_word_counts_its_lists_by_level():
    part = numbered((0, "decimal", "%1."), (1, "lowerLetter", "%1.%2)"), (2, "upperRoman", "(%3)"), (3, "bullet", "\uf0b7"))
    assert marks(part, ("1", 0), ("1", 1), ("1", 1), ("1", 2), ("1", 0), ("1", 1), ("1", 3)) == [
        "1.",
        "1.a)",
        "1.b)",
        "(I)",
        "2.",
        "2.a)",
        "-",
    ]


def test_lists_of_one_definition_count_together_unless_one_begins_anew():
    part = numbered((0, "decimal", "%1."))
    assert marks(part, ("1", 0), ("2", 0), ("3", 0), ("3", 0), ("1", 0)) == ["1.", "2.", "5.", "6.", "3."]


def test_an_unknown_list_has_bullets():
    assert marks("<numbering/>", ("9", 0), ("9", 12)) == ["-", "-"]


def test_a_long_list_goes_on_after_z():
    part = numbered((0, "lowerLetter", "%1"))
    assert marks(part, *[("1", 0)] * 28)[-3:] == ["z", "aa", "bb"]


def test_external_entities_and_relationships_are_not_followed(parse, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("host secret")
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    path = tmp_path / "made.docx"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("[Content_Types].xml", "<Types/>")
        package.writestr(
            "_rels/.rels", f'<Relationships><Relationship Id="a" Type="{kind}/officeDocument" Target="word/document.xml"/></Relationships>'
        )
        package.writestr(
            "word/document.xml",
            f'<!DOCTYPE d [<!ENTITY x SYSTEM "file://{secret}">]><d><body><p><r><t>seen &x;</t></r></p></body></d>',
        )
    assert "secret" not in parse(path).text


def test_slides_are_pages_and_notes_follow_their_slide(parse, shared):
    document = parse(shared / "files/generated/pptx/notes_table_group_hidden.pptx")
    assert [page.number for page in document.pages] == list(range(1, 9))
    third, seventh, eighth = (document.pages[i] for i in (2, 6, 7))
    assert "needle-note3" in document.text[third.char_start : third.char_end]
    assert seventh.char_start == seventh.char_end
    assert document.text[eighth.char_start : eighth.char_end] == "hidden-slide-text"
    assert document.warning == "partly_no_text" and document.metadata["pages_without_text"] == [7]
    assert "needle-pptxcell" in document.text and "needle-group" in document.text


def test_chart_data_of_a_slide_is_a_table(parse, shared):
    text = parse(shared / "files/pptx/d_pptx_chart.pptx").text
    assert "| 2019 | 120 | 80 |" in text


def test_a_formula_shows_its_value_and_itself_only_without_one(parse, shared):
    cached = parse(shared / "cases/44-spreadsheet-values-and-size/cached_formulas.xlsx").text
    assert "| 3 | 4.5 | 13.5 |" in cached and "202.5" in cached
    without = parse(shared / "cases/44-spreadsheet-values-and-size/merged_formulas_errors.xlsx").text
    assert "=A3*B3" in without
    assert "00123" in without and "2024-02-29 13:05:00" in without and "#N/A" in without


def test_hidden_sheets_are_read_and_named(parse, shared):
    document = parse(shared / "cases/44-spreadsheet-values-and-size/cached_formulas.xlsx")
    assert "hidden-sheet-text" in document.text
    assert document.metadata["hidden_sheets"] == ["Hidden"]


@pytest.mark.parametrize("name", ["last_cell.xlsx", "inflated.xlsx"])
def test_a_stray_cell_in_the_last_row_costs_nothing(parse, shared, name):
    tracemalloc.start()
    document = parse(shared / "cases/44-spreadsheet-values-and-size" / name)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000
    assert len(document.text) < 5_000
    assert name != "last_cell.xlsx" or "needle-lastcell" in document.text


def test_a_sheet_of_charts_alone_shows_their_data(parse, shared):
    document = parse(shared / "files/xlsx/d_xlsx_03_chartsheet.xlsx")
    assert "Wild Duck Observations by Year" in document.text
    assert sum(asset.kind == "table" for asset in document.assets) == 2
    assert document.metadata.get("pages_without_text") is None
