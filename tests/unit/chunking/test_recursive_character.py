"""Where `recursive_character` cuts: the strongest break that leaves a chunk well filled."""

import pytest
from chunked_documents import composed, plain

from stemma.chunking.recursive_character import recursive_character
from stemma.parsing.document import ParsedDocument


def contents(document: ParsedDocument, size: int, overlap: int = 0) -> list[str]:
    return [document.text[span.char_start : span.char_end] for span in recursive_character(document, size=size, overlap=overlap)]


def test_a_paragraph_break_beats_a_later_sentence_end():
    document = plain("One two three four.\n\nFive six. Seven eight nine ten.")
    assert contents(document, 32) == ["One two three four.", "Five six. Seven eight nine ten."]


def test_a_sentence_end_beats_a_later_word():
    assert contents(plain("One two three. Four five six seven eight"), 24) == ["One two three.", "Four five six seven", "eight"]


def test_a_break_that_would_leave_a_chunk_nearly_empty_is_passed_over():
    assert contents(plain("Hi.\n\nOne two three four five six seven."), 30)[0] == "Hi.\n\nOne two three four five"


def test_a_word_longer_than_the_size_is_cut():
    assert contents(plain("abcdefghij"), 4) == ["abcd", "efgh", "ij"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("今天天气很好。", "我们去公园散步吧，好吗"),
        ("これは最初の文です。", "これは二番目の文になります"),
        ("هذا هو السؤال؟", "وهذا هو الجواب الطويل"),
        ("यह पहला वाक्य है।", "और यह दूसरा वाक्य है"),
        ("นี่คือประโยคแรก", "และนี่คือประโยคที่สองยาว"),
        ("ይህ ዓረፍተ ነገር ነው።", "ይህ ደግሞ ሌላ ነው እና"),
    ],
    ids=["Chinese", "Japanese", "Arabic", "Hindi", "Thai", "Amharic"],
)
def test_the_sentence_end_of_a_script_is_a_split_point(first, second):
    space = "" if first.endswith("。") else " "
    assert contents(plain(first + space + second), max(len(first), len(second)) + 2)[0] == first


def test_an_overlap_begins_with_a_whole_sentence_where_one_fits():
    document = plain("Alpha beta gamma delta. Epsilon zeta. Eta theta iota kappa lambda.")
    assert contents(document, 40, 20) == [
        "Alpha beta gamma delta. Epsilon zeta.",
        "Epsilon zeta. Eta theta iota kappa",
        "Eta theta iota kappa lambda.",
    ]


def test_a_family_of_joined_emoji_is_never_divided():
    family = "👨\u200d👩\u200d👧\u200d👦"
    assert contents(plain(family * 3), 10) == [family] * 3


def test_a_mark_on_a_space_is_found_even_where_only_one_character_fits():
    assert contents(plain("ab \u0301c"), 1) == ["a", "b", "\u0301", "c"]
    assert contents(plain("ab \u0301c"), 2) == ["ab", " \u0301", "c"]


def test_a_carriage_return_stays_with_its_line_feed():
    assert contents(plain("abc\r\ndef"), 4) == ["abc", "def"]


def test_a_document_of_nothing_visible_has_no_chunk():
    assert contents(plain("\u00a0\u200b\n\n\ufeff \u2060\u3164\t"), 5) == []


def test_a_chunk_that_is_mostly_table_says_so():
    spans = recursive_character(composed(("paragraph", "Words."), ("table", "| a |\n| b |")), size=30, overlap=0)
    assert [span.chunk_type for span in spans] == ["table"]
