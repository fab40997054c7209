"""Where sentences end, and how `sentence` packs them."""

import pytest
from chunked_documents import composed, plain

from stemma.chunking.sentence import sentence
from stemma.chunking.sentences import sentence_ends, sentences
from stemma.parsing.document import ParsedDocument


def contents(document: ParsedDocument, size: int, overlap: int = 0) -> list[str]:
    return [document.text[span.char_start : span.char_end] for span in sentence(document, size=size, overlap=overlap)]


def parted(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentences(text, sentence_ends(text, []))]


@pytest.mark.parametrize(
    "expected",
    [
        ["Dr. Smith, e.g. of St. Mary, paid 3.50 to J. Doe.", "Then he left!", "“Why?”", "Nobody knows."],
        ["Das gilt z.B. für Nr. 5 bzw. Abb. 2.", "Der Rest nicht."],
        ["今天天气很好。", "我们去公园吧！", "好吗？", "好。"],
        ["هل هذا سؤال؟", "نعم هو كذلك."],
        ["यह पहला है।", "यह दूसरा है।"],
        ["นี่คือประโยคแรก", "และนี่คือประโยคที่สอง"],
        ["It ends ... but goes on.", "Here not."],
    ],
    ids=["English", "German", "Chinese", "Arabic", "Hindi", "Thai", "dots"],
)
def test_sentences_end_where_their_script_ends_them(expected):
    space = "" if expected[0].endswith("。") else " "
    assert parted(space.join(expected)) == expected


def test_a_line_break_within_a_paragraph_ends_no_sentence_and_a_paragraph_does():
    assert parted("A line that\ngoes on\n\nNext paragraph") == ["A line that\ngoes on", "Next paragraph"]


def test_every_line_of_a_list_and_every_block_ends_one():
    document = composed(("heading", "# Heading"), ("list", "- one\n- two"), ("paragraph", "Text"))
    found = sentences(document.text, sentence_ends(document.text, document.blocks))
    assert [document.text[start:end].strip() for start, end in found] == ["# Heading", "- one", "- two", "Text"]


def test_as_many_whole_sentences_as_fit_share_a_chunk():
    assert contents(plain("One two. Three four. Five six seven eight."), 24) == ["One two. Three four.", "Five six seven eight."]


def test_a_sentence_end_early_in_the_window_beats_a_later_clause():
    assert contents(plain("Hi. One two three, four five six seven."), 36) == ["Hi.", "One two three, four five six seven."]


def test_a_sentence_above_the_size_is_cut_at_a_clause():
    assert contents(plain("One two three, four five six seven eight."), 30) == ["One two three,", "four five six seven eight."]


def test_an_overlap_begins_with_a_whole_sentence():
    document = plain("Alpha beta gamma. Delta. Epsilon zeta eta theta.")
    assert contents(document, 34, 10) == ["Alpha beta gamma. Delta.", "Delta. Epsilon zeta eta theta."]


def test_a_table_that_fits_is_not_divided():
    table = "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert contents(composed(("paragraph", "Words before it."), ("table", table)), 40) == ["Words before it.", table]
