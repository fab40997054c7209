"""The one rule for characters."""

import json

from hypothesis import given
from hypothesis import strategies as st

from stemma.parsing.cleaning import clean_metadata, clean_text, is_visible, stated_title

anything = st.text(st.characters(exclude_categories=()))  # lone surrogates included


@given(anything)
def test_cleaned_text_can_be_stored_and_has_one_kind_of_line_end(text):
    cleaned = clean_text(text)
    assert "\0" not in cleaned and "\r" not in cleaned
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert clean_text(cleaned) == cleaned


def test_cleaning_keeps_every_other_character():
    assert clean_text("a\r\nb\rc\x0b\x0c\u2028\x85\ufeff\x1b[0m") == "a\nb\nc\x0b\x0c\u2028\x85\ufeff\x1b[0m"


def test_metadata_is_cleaned_down_to_its_keys():
    cleaned = clean_metadata({"ti\0tle": ["a\0", {"deep": "x\ud800y"}], "pages": 3})
    assert cleaned == {"title": ["a", {"deep": "xy"}], "pages": 3}
    json.dumps(cleaned).encode()


def test_spaces_and_formatting_characters_are_not_visible():
    assert not is_visible("\u200b\ufeff\xa0\u3000\u200d\n\t\x07")
    assert is_visible("\u200b.\u200b")


def test_a_programs_default_is_no_title():
    rubbish = [
        "Microsoft Word - annual.doc",
        "untitled",
        "Untitled spreadsheet",
        "report_v3.pdf",
        "PowerPoint Presentation",
        "  ",
        "x" * 501,
    ]
    assert [stated_title(title) for title in rubbish] == [None] * len(rubbish)


def test_the_first_title_that_says_something_wins():
    assert stated_title(None, "untitled", " Annual\n report\0 ", "Other") == "Annual report"
