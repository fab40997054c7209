import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stemma.lexical.analysis import MAX_TERM_CHARS, english_words, neutral_terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The dog's bone, it’s O’Neil's", ["The", "dog", "bone", "it", "O'Neil"]),
        ("src/main/app.py of user@example.com", ["src", "main", "app.py", "of", "user", "example.com"]),
        ("C++ and C#, 3.14 or 1,000", ["C", "and", "C", "3.14", "or", "1,000"]),
        ("needle-syntax ratio 3:1", ["needle", "syntax", "ratio", "3", "1"]),
        ("Größe der naïven Bäume", ["Größe", "der", "naïven", "Bäume"]),
    ],
)
def test_english_words_are_those_of_unicode_without_possessives(text: str, words: list[str]):
    assert english_words(text) == words


@pytest.mark.parametrize("word", ["हिन्दी", "किताबें", "நூலகம்", "مُدَرِّسَة", "e\u0301te\u0301", "a\u0308\u0323rger"])
def test_combining_marks_stay_inside_their_word(word: str):
    assert [len(english_words(word)), len(neutral_terms(word))] == [1, 1]


def test_composed_and_decomposed_accents_are_the_same_term():
    assert neutral_terms(unicodedata.normalize("NFD", "Crème brûlée")) == neutral_terms(unicodedata.normalize("NFC", "Crème brûlée"))
    assert english_words(unicodedata.normalize("NFD", "Crème brûlée")) == ["Crème", "brûlée"]


def test_case_and_compatibility_forms_are_folded_in_the_neutral_reading():
    assert neutral_terms("STRASSE Straße ＡＢＣ ﬁn") == ["strasse", "strasse", "abc", "fin"]


def test_a_run_without_spaces_becomes_characters_and_pairs_and_a_query_asks_for_pairs():
    assert neutral_terms("東京都") == ["東", "京", "都", "東京", "京都"]
    assert neutral_terms("東京都", query=True) == ["東京", "京都"]
    assert neutral_terms("京", query=True) == ["京"]


def test_thai_pairs_keep_vowel_and_tone_marks_with_their_consonant():
    assert neutral_terms("ที่นี่", query=True) == ["ที่นี่"]


def test_a_change_of_script_ends_a_run():
    assert neutral_terms("新iPhone手机", query=True) == ["新", "iphone", "手机"]


def test_invisible_joiners_do_not_part_a_word_and_a_zero_width_space_does():
    assert english_words("co\u00adoperate zero\u200bwidth") == ["cooperate", "zero", "width"]


def test_a_word_without_end_is_cut_into_pieces():
    terms = neutral_terms("x" * 1_000_000)
    assert "".join(terms) == "x" * 1_000_000
    assert max(map(len, terms)) == MAX_TERM_CHARS


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_any_string_gives_terms_that_utf8_holds_and_that_no_blank_parts(text: str):
    for term in english_words(text) + neutral_terms(text) + neutral_terms(text, query=True):
        assert term.encode()
        assert term.split() == [term]
        assert len(term) <= MAX_TERM_CHARS


@given(st.text(), st.text())
def test_terms_of_a_line_do_not_depend_on_the_line_after_it(first: str, second: str):
    assert neutral_terms(f"{first}\n{second}") == neutral_terms(first) + neutral_terms(second)
