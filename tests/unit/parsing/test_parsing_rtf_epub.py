"""Rich text and books."""

import zipfile
from pathlib import Path

import pytest

from stemma.errors import CorruptDocument, EncryptedDocument


def test_a_rich_text_has_headings_paragraphs_and_tables(parse, shared):
    document = parse(shared / "files/other/u_fake-doc.rtf")
    assert document.text == (
        "My First Heading\n\nMy first paragraph.\n\nTable Example:\n\n"
        "| Column 1 | Column 2 |\n| --- | --- |\n| Row 1, Cell 1 | Row 1, Cell 2 |\n| Row 2, Cell 1 | Row 2, Cell 2 |"
    )
    assert [block.kind for block in document.blocks] == ["heading", "paragraph", "paragraph", "table"]


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        (rb"\'e9t\'e9 \u8217 ?x \u-10179?\u-8704? \emdash", "été ’x 😀 —"),
        (rb"{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}}\f1 \'cf\'f0 \f0 \'e9", "Пр é"),
        (rb"{\fonttbl{\f0\fcharset128 A;}}\f0 \'93\'fa\'96\'7b", "日本"),
        (
            rb"seen {\v unseen}{\*\unknown thing}{\pict 00ff}{\field{\*\fldinst HYPERLINK x}{\fldrslt link}} {\deleted gone}end",
            "seen link end",
        ),
        (rb"a{\footnote {\super 1} the note}b\par next", "a[^1]b\n\nnext\n\n[^1]: 1 the note"),
        (rb"{\listtext 1.\tab}\ls1 one\par{\listtext \bullet\tab}\ls1 two\par\pard three", "1. one\n- two\n\nthree"),
        (rb"a \{b\} \\ c\~d{\bin4 }{}}}e", "a {b} \\ c\xa0de"),
    ],
)
def test_characters_and_groups_of_rich_text(parse, markup, text):
    assert parse(rb"{\rtf1\ansi\ansicpg1252 " + markup + b"}", "rtf").text == text


def test_a_rich_text_names_its_title_and_author(parse):
    document = parse(rb"{\rtf1{\info{\title The \'c4rger}{\author A. B.}}body}", "rtf")
    assert (document.title, document.metadata["author"], document.text) == ("The Ärger", "A. B.", "body")


@pytest.mark.parametrize("data", [rb"{\rtf1 cut off", b"{\\rtf1 " + b"{" * 50_000, b"no rich text"])
def test_a_cut_or_deep_rich_text_is_corrupt(parse, data):
    with pytest.raises(CorruptDocument):
        parse(data, "rtf")


@pytest.fixture
def book(tmp_path: Path):
    def book(**parts: str) -> Path:
        path = tmp_path / "book.epub"
        items = "".join(f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>' for name in ("two", "one"))
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("mimetype", "application/epub+zip")
            archive.writestr("META-INF/container.xml", '<container><rootfiles><rootfile full-path="OPS/a.opf"/></rootfiles></container>')
            archive.writestr(
                "OPS/a.opf",
                '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>A book</dc:title><dc:creator>Who</dc:creator>'
                f'</metadata><manifest>{items}</manifest><spine><itemref idref="one"/><itemref idref="two"/></spine></package>',
            )
            for name, part in parts.items():
                archive.writestr({"encryption": "META-INF/encryption.xml"}.get(name, f"OPS/{name}.xhtml"), part)
        return path

    return book


def test_a_book_is_read_in_the_order_of_its_spine(parse, book):
    document = parse(
        book(two="<html><body><h1>Second</h1><p>b</p></body></html>", one="<html><body><h1>First</h1><nav>menu</nav></body></html>")
    )
    assert (document.text, document.title, document.metadata["author"]) == ("First\n\nSecond\n\nb", "A book", "Who")


def test_a_missing_chapter_is_listed_and_warned_of(parse, book):
    document = parse(book(one="<p>a</p>"))
    assert (document.text, document.warning, document.metadata["unreadable_parts"]) == ("a", "partly_unreadable", ["two.xhtml"])


def test_a_protected_book_is_encrypted_but_protected_fonts_are_none_of_our_business(parse, book):
    references = '<encryption><CipherReference URI="OPS/{}"/><CipherReference URI="OPS/{}"/></encryption>'
    pages = {"one": "<p>a</p>", "two": "<p>b</p>"}
    assert parse(book(**pages, encryption=references.format("x.otf", "y.otf"))).text == "a\n\nb"
    with pytest.raises(EncryptedDocument):
        parse(book(**pages, encryption=references.format("one.xhtml", "two.xhtml")))
