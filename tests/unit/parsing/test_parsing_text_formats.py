"""Plain text, Markdown, HTML, CSV and mail."""

import pytest

from stemma.errors import CorruptDocument, DocumentTooLarge


def spans(document, kind):
    return [document.text[block.char_start : block.char_end] for block in document.blocks if block.kind == kind]


def headings(document):
    return [(block.level, document.text[block.char_start : block.char_end]) for block in document.blocks if block.kind == "heading"]


def test_plain_text_is_kept_as_it_stands_but_for_line_ends(parse):
    document = parse("one\r\ntwo\rthree\x0c\n\n  four\n", "txt")
    assert document.text == "one\ntwo\nthree\x0c\n\n  four\n"
    assert spans(document, "paragraph") == ["one\ntwo\nthree", "four"]
    assert document.pages == ()


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b" \n\t\r\n"], ids=["zero bytes", "only a mark", "blanks"])
@pytest.mark.parametrize("file_type", ["txt", "md", "csv", "html", "unknown"])
def test_a_file_of_nothing_is_ready_and_empty(parse, data, file_type):
    document = parse(data, file_type)
    assert (document.text, document.warning, document.blocks) == ("", "empty", ())


def test_a_file_of_invisible_characters_has_no_text(parse, shared):
    document = parse(shared / "cases/06-blank-chunks/only_nbsp_zwsp.txt")
    assert (document.text, document.warning) == ("", "no_text")


def test_rubbish_under_a_text_extension_is_corrupt(parse):
    with pytest.raises(CorruptDocument):
        parse(bytes(range(256)) * 8, "txt")


def test_a_guessed_encoding_is_recorded(parse):
    document = parse("Crème brûlée à la carte".encode("latin-1"), "txt")
    assert (document.warning, document.metadata["encoding"]) == ("encoding_guessed", "cp1252")
    assert 0 < document.metadata["encoding_confidence"] < 1


def test_a_text_above_the_limit_is_too_large(parse):
    with pytest.raises(DocumentTooLarge):
        parse("word " * 1000, "txt", max_document_chars=4_000)


@pytest.mark.parametrize("name", ["nul_bytes.txt", "nul.csv", "entities.html", "real_nul_from_pypdf.pdf", "utf16be_nobom.txt"])
def test_no_nul_leaves_a_parser(parse, shared, name):
    assert "\0" not in parse(shared / "cases/07-nul-byte" / name).to_json().replace("\\u0000", "\0")


def test_needles_beside_nuls_are_found(parse, shared):
    folder = shared / "cases/07-nul-byte"
    assert "needle-nulbyte" in parse(folder / "nul_bytes.txt").text
    assert "needle-csvnul" in parse(folder / "nul.csv").text
    assert "needle-entity" in parse(folder / "entities.html").text


def test_markdown_headings_are_those_outside_code_lists_and_front_matter(parse, shared):
    folder = shared / "cases/49-markdown-structure"
    assert headings(parse(folder / "code_fence_hash.md")) == [(1, "# Real heading"), (2, "## Second heading")]
    assert headings(parse(folder / "bom_heading.md")) == [(1, "# Heading after BOM")]
    assert headings(parse(folder / "crlf.md")) == [(1, "# One"), (2, "## Two")]
    setext = parse(folder / "setext_frontmatter.md")
    assert headings(setext) == [(1, "Top heading\n==========="), (2, "Sub heading\n-----------")]
    assert setext.title == "Front: matter"


def test_repeated_headings_keep_their_order_and_places(parse, shared):
    document = parse(shared / "cases/49-markdown-structure/duplicate_headings.md")
    starts = [block.char_start for block in document.blocks if block.kind == "heading"]
    assert starts == sorted(starts) and len(set(starts)) == document.text.count("## Overview")


def test_markdown_text_is_the_source(parse, shared):
    for path in sorted((shared / "cases/49-markdown-structure").glob("*.md")):
        assert parse(path).text == path.read_text("utf-8-sig").replace("\r\n", "\n")


def test_markdown_blocks_name_tables_code_and_lists(parse):
    document = parse("# T\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n# x\n\n```\n\n- i\n\n  j\n- k\n\n> q\n", "md")
    assert spans(document, "table") == ["| a | b |\n|---|---|\n| 1 | 2 |"]
    assert spans(document, "code") == ["```\n# x\n\n```"]
    assert spans(document, "list") == ["- i\n\n  j\n- k"]
    assert spans(document, "quote") == ["> q"]
    assert [asset.kind for asset in document.assets] == ["table"]


def test_a_markdown_title_loses_its_marks(parse):
    assert parse("Intro\n\n# The **bold** [link](http://x.invalid) `code` #\n", "md").title == "The bold link code"


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# MAX_FILE_BYTES", "MAX_FILE_BYTES"),
        ("# `a_b_` and a__init__", "a_b_ and a__init__"),
        ("# _soft_ **hard** ~~gone~~", "soft hard gone"),
        ("# 2 * 3 * 4", "2 * 3 * 4"),
        ("# A ![pic](x.png) [b_c](d)", "A pic b_c"),
    ],
)
def test_only_marks_leave_a_title(parse, heading, title):
    assert parse(heading, "md").title == title


@pytest.mark.parametrize(
    ("name", "present", "absent"),
    [
        ("hidden_text.html", "needle-hidden visible", "invisible-text"),
        ("hidden_text.html", "aria", "hidden-attr"),
        ("xxe.html", "needle-xxe", "]>"),
        ("huge_attribute.html", "needle-attr", "zzz"),
        ("iframe_srcdoc.html", "needle-iframe", "inner text"),
        ("charset_conflict.html", "Crème needle-charset Ω", "\ufffd"),
        ("malformed.html", "needle-malformed", "<"),
    ],
)
def test_html_has_the_text_that_is_shown(parse, shared, name, present, absent):
    text = parse(shared / "files/generated/html" / name).text
    assert present in text
    assert absent not in text


def test_nested_tables_have_each_text_once(parse, shared):
    text = parse(shared / "files/generated/html/nested_tables.html").text
    assert [text.count(word) for word in ("outer", "inner1", "inner2", "needle-nesttab", "span")] == [1, 1, 1, 1, 1]


def test_a_menu_is_left_out_and_a_list_of_links_is_not(parse):
    links = "".join(f"<li><a href='/{i}'>entry {i}</a></li>" for i in range(5))
    text = parse(
        f"<div class='site-menu'>Go<ul>{links}</ul></div><div class='menu'>a dish of the day <a href=x>b</a></div><ul>{links}</ul>", "html"
    ).text
    assert text.count("entry 3") == 1
    assert "a dish of the day b" in text


def test_menus_within_menus_cost_no_more_than_their_length(parse):
    assert parse("<div class=menu>" * 20_000 + "needle-menu", "html").text in ("needle-menu", "")


def test_an_html_page_without_body_has_a_title_and_no_text(parse, shared):
    document = parse(shared / "files/generated/html/empty_body.html")
    assert (document.title, document.text, document.warning) == ("only a title", "", "no_text")


def test_html_keeps_headings_lists_code_and_tables(parse):
    document = parse(
        "<h1>A  b</h1><p>x<br>y <b>z</b></p><ol><li>one<ul><li>in</li></ul></li><li>two</li></ol><pre>a\n  b</pre>"
        "<table><tr><th>h</th><th>i|j</th></tr><tr><td rowspan=2>r</td><td>1</td></tr><tr><td>2</td></tr></table>",
        "html",
    )
    assert document.text == ("A b\n\nx\ny z\n\n1. one\n  - in\n2. two\n\na\n  b\n\n| h | i\\|j |\n| --- | --- |\n| r | 1 |\n|  | 2 |")
    assert [block.kind for block in document.blocks] == ["heading", "paragraph", "list", "code", "table"]


@pytest.mark.parametrize("opening", ["<div>", "<b>", "<ul><li>", "<font><p>"])
def test_html_nested_a_hundred_thousand_deep_loses_no_word(parse, opening):
    document = parse("<html>one <!-- not --> " + opening * 100_000 + "needle-<i>deep</i></div> and <p>after", "html")
    assert document.text.split() == ["one", "needle-deep", "and", "after"]


def test_html_that_is_too_deep_in_what_is_not_shown_is_corrupt(parse):
    with pytest.raises(CorruptDocument, match="nested too deeply"):
        parse("<html>" + "<object>" * 100_000 + "needle-deep", "html")


def test_cells_that_cover_more_than_a_table_may_have_are_taken_for_one(parse):
    page = "<table><tr>" + "<td rowspan=9999 colspan=100>x" * 900 + "<tr><td>y" * 900 + "</table>"
    document = parse(page, "html")
    assert document.text.count("x") == document.text.count("y") == 900 and len(document.text) < 10_000_000


def test_short_rows_of_a_wide_table_are_filled_only_while_that_costs_little(parse):
    assert parse("a,b,c\n1\n", "csv").text == "| a | b | c |\n| --- | --- | --- |\n| 1 |  |  |"
    lines = parse("a," * 2_000 + "b\n" + "1\n" * 2_000, "csv").text.split("\n")
    assert (lines[0].count("|"), lines[2]) == (2_002, "| 1 |")


def test_csv_becomes_one_markdown_table(parse, shared):
    document = parse(shared / "files/generated/csv/quoted_newlines.csv")
    assert len(document.text.split("\n")) == 2 + 2  # header, rule, two rows
    assert [block.kind for block in document.blocks] == ["table"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(parse, delimiter):
    rows = [["name", "note, or; more"], ["x", "y"], ["1,5", "z"]]
    text = "\n".join(delimiter.join(f'"{value}"' for value in row) for row in rows)
    assert parse(text, "csv").text.split("\n")[0] == "| name | note, or; more |"


def test_a_cell_of_two_hundred_kilobytes_is_read(parse, shared):
    assert "needle-hugefield" in parse(shared / "files/generated/csv/huge_field.csv").text


def test_mail_has_its_decoded_subject_and_body(parse, shared):
    document = parse(shared / "files/generated/eml/koi8_quoted_printable.eml")
    assert document.title == "Отчёт"
    assert "needle-emlkoi" in document.text
    assert parse(shared / "files/generated/eml/bad_date.eml").metadata.get("sent_at") is None


def test_a_result_does_not_depend_on_the_path(parse, shared, tmp_path):
    original = shared / "files/html/d_wiki_duck.html"
    copy = tmp_path / "other name.html"
    copy.write_bytes(original.read_bytes())
    assert parse(original).output_hash == parse(copy).output_hash
