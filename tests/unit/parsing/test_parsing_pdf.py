"""PDF files with a text layer, and the layout of lines."""

import pytest

from stemma.errors import CorruptDocument, EncryptedDocument
from stemma.parsing.layout import SOFT_HYPHEN, Line, paragraphs, upright
from stemma.parsing.ligatures import THREE, TWO, resolve_ligatures


def page_of(document, needle):
    position = document.text.index(needle)
    return [page.number for page in document.pages if page.char_start <= position < page.char_end]


def test_every_needle_lies_on_its_page(parse, shared):
    document = parse(shared / "cases/42-page-citation/200_pages.pdf")
    assert len(document.pages) == 200
    for number in (1, 2, 99, 137, 200):
        assert page_of(document, f"needle-page{number:03d}") == [number]


def test_pages_without_text_keep_their_number(parse, shared):
    document = parse(shared / "cases/42-page-citation/empty_pages_inside.pdf", ocr_engine="none")
    assert [page.number for page in document.pages] == [1, 2, 3, 4]
    assert (document.warning, document.metadata["pages_without_text"]) == ("partly_no_text", [2])
    assert page_of(document, "This page is intentionally left blank") == [3]


def test_turned_pages_read_from_left_to_right(parse, shared):
    document = parse(shared / "cases/42-page-citation/rotated_pages.pdf")
    assert [page_of(document, f"needle-rot{angle}") for angle in (0, 90, 180, 270)] == [[1], [2], [3], [4]]
    assert not [block for block in document.blocks if block.kind == "heading"]


def test_a_sentence_across_pages_is_one_block_on_both(parse, shared):
    document = parse(shared / "cases/42-page-citation/sentence_across_pages.pdf")
    assert (page_of(document, "needle-crossA"), page_of(document, "needle-crossB")) == ([1], [2])
    assert "with needle-crossA and\ncontinues on page two" in document.text
    position = document.text.index("needle-crossA")
    (block,) = [block for block in document.blocks if block.char_start <= position < block.char_end]
    assert "needle-crossB" in document.text[block.char_start : block.char_end]


def test_a_document_without_pages_has_none(parse, shared):
    assert parse(shared / "cases/42-page-citation/no_pages.txt").pages == ()


def test_words_cut_at_line_ends_are_whole(parse, shared):
    text = parse(shared / "files/generated/pdf/hyphenated.pdf").text
    assert text == "The environmental review of the hydroelectric plant needle-hyph is well-known."


def test_arabic_is_in_reading_order_without_presentation_forms(parse, shared):
    text = parse(shared / "files/pdf/d_right_to_left_01.pdf").text
    assert "تحسين الإنتاجية وحل المشكلات من خلال البرمجة بلغة" in text


def test_columns_are_read_one_after_the_other(parse, shared):
    text = parse(shared / "files/pdf/u_multi-column-2p.pdf").text
    assert "relies on efficient passage retrieval to select candidate contexts, where traditional sparse vector space models" in text


def test_a_running_header_is_kept_once(parse, shared):
    document = parse(shared / "files/generated/pdf/repeated_headers.pdf")
    assert (document.text.count("CONFIDENTIAL"), document.text.count("of 30")) == (1, 1)
    assert len(document.pages) == 30


@pytest.mark.parametrize("name", ["pdf/u_password.pdf", "pdf/t_testUnicodePassword.pdf", "pdf/p_saslprep-r6.pdf"])
def test_a_pdf_with_a_password_is_encrypted(parse, shared, name):
    with pytest.raises(EncryptedDocument):
        parse(shared / "files" / name)


def test_a_pdf_that_only_forbids_copying_is_read(parse, shared):
    assert "needle-owneronly" in parse(shared / "files/generated/pdf/encrypted_owner_only.pdf").text


def test_ligatures_without_a_character_are_found_by_their_width(parse, shared):
    text = parse(shared / "files/pdf/u_copy-protected.pdf").text
    assert [text.count(word) for word in ("difficulties", "difficult ", "efficient", "\ufffd")] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    ("line", "words", "read"),
    [
        (f"con{TWO}rm", ["confirmed"], "confirm"),
        (f"o{TWO} e{TWO}ort", ["effort", "off"], "off effort"),
        (f"o{TWO}", [], "o\ufffd"),
        (f"di{THREE}cult, ba{THREE}ed", [], "difficult, baffled"),
        (f"a {THREE} b", [], "a \ufffd b"),
        (f"{TWO}nd {TWO}nd", ["find"], "find find"),
    ],
)
def test_a_ligature_becomes_letters_only_with_evidence(line, words, read):
    assert resolve_ligatures(line, words) == read


def test_a_page_of_wrong_characters_is_listed_and_warned_of(parse, shared):
    document = parse(shared / "files/pdf/d_skipped_1page.pdf", ocr_engine="none")
    assert (document.warning, document.metadata["garbled_pages"]) == ("garbled_text", [2])
    assert "보안기술" in document.text


def test_a_page_of_rubbish_is_not_published_as_its_text(parse, shared):
    document = parse(shared / "files/pdf/p_ThuluthFeatures.pdf", ocr_engine="none")
    assert (document.text, document.warning, document.metadata["garbled_pages"]) == ("", "no_text", [1])


def test_form_fields_follow_the_text_of_their_page(parse, shared):
    document = parse(shared / "files/generated/pdf/form_fields.pdf")
    assert document.text == "needle-form label\n\nForm fields:\ncity: formvalue-Lisbon\nok: Yes"


def test_a_comment_is_read_and_a_hidden_one_is_not(parse):
    annotations = "".join(
        f"<< /Type /Annot /Subtype {kind} /Rect [0 0 9 9] /F {flags} /Contents ({words}) >> "
        for kind, flags, words in (
            ("/Text", 4, "a remark"),
            ("/Text", 2, "unseen"),
            ("/FreeText", 4, "written\\012upon"),
            ("/Popup", 4, "no"),
        )
    )
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Annots [{annotations}] >>",
    ]
    body = "%PDF-1.4\n" + "".join(f"{number} 0 obj {content} endobj\n" for number, content in enumerate(objects, 1))
    document = parse(f"{body}trailer << /Root 1 0 R /Size 4 >>\n%%EOF", "pdf", ocr_engine="none")
    assert document.text == "Annotations:\na remark\nwritten upon"


def test_latin_words_in_arabic_text_stand_apart(parse, shared):
    text = parse(shared / "files/pdf/d_right_to_left_01.pdf").text
    assert "R و Python من الأدوات" in text
    assert "أيضًا" in text


@pytest.mark.parametrize("name", ["header_only.pdf", "html_named.pdf", "truncated.pdf"])
def test_a_damaged_pdf_is_corrupt(parse, shared, name):
    with pytest.raises(CorruptDocument) as caught:
        parse(shared / "files/generated/pdf" / name)
    assert str(shared) not in caught.value.message


def test_a_damaged_page_does_not_cost_the_others(parse, shared):
    document = parse(shared / "files/pdf/p_Pages-tree-refs.pdf", ocr_engine="none")
    assert "Pages loop" in document.text
    assert document.metadata["unreadable_pages"] == [2]


def line(text, left, top, *, right=None, height=10.0):
    return Line(text, left, right if right is not None else left + 5.0 * len(text), top, top + height)


def texts(*lines, **options):
    return [paragraph.text for paragraph in paragraphs(lines, **options)]


def test_full_lines_are_joined_and_short_ones_end():
    assert texts(line("aaaa bbbb", 0, 0, right=100), line("cccc dddd", 0, 12, right=98), line("ee.", 0, 24, right=20)) == [
        "aaaa bbbb cccc dddd ee."
    ]
    assert texts(line("total 3", 0, 0, right=40), line("a long line below", 0, 12, right=100)) == ["total 3\na long line below"]


def test_an_indented_line_begins_anew():
    assert texts(line("if x:", 0, 0, right=100), line("return 1", 20, 12, right=100)) == ["if x:\nreturn 1"]


def test_a_gap_begins_a_paragraph():
    assert texts(line("one", 0, 0), line("two", 0, 40)) == ["one", "two"]


def test_a_raised_piece_stays_in_its_line():
    assert texts(line("mc", 0, 0, right=10), Line("2", 10.5, 14, -2, 5), line("is energy", 17, 0)) == ["mc2 is energy"]


def test_hyphens_at_line_ends_go_unless_they_are_the_words_own():
    cut = [
        line(f"environ{SOFT_HYPHEN}", 0, 0, right=100),
        line("mental and well-", 0, 12, right=100),
        line("known things", 0, 24, right=90),
    ]
    assert texts(*cut) == ["environmental and wellknown things"]
    assert texts(*cut, keep_hyphen=frozenset({"well-known"})) == ["environmental and well-known things"]


def test_a_page_on_its_side_is_turned():
    standing = [Line("first", 0, 10, 0, 100, turn=-1), Line("second", 20, 30, 0, 100, turn=-1)]
    turned = upright(standing)
    assert [(piece.left, piece.right, piece.top, piece.bottom) for piece in turned] == [(-100, 0, 0, 10), (-100, 0, 20, 30)]
