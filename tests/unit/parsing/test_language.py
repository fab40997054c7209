"""The language of a text, as a scope names it."""

import pytest

from stemma.parsing.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The harbour of the town has five piers and a lighthouse, which was built long ago.", "en"),
        ("Die Brücke führt über den Fluss, und der alte Hafen liegt dahinter.", "de"),
        ("Le port de la ville a cinq quais et un phare qui date du siècle dernier.", "fr"),
        ("北京大学的图书馆每天开放。", "zh"),
        ("東京都の図書館は毎日開いています", "ja"),
        ("도서관은 매일 열려 있습니다", "ko"),
    ],
)
def test_prose_has_a_language(text: str, language: str):
    assert language_of([text]) == language


@pytest.mark.parametrize("text", ["", "Tides", "1 2 3 4.5 6,000", "x = 1; y = [i for i in z]", "?! ..."])
def test_scraps_have_none(text: str):
    assert language_of([text]) == ""


def test_the_same_words_again_and_many_passages_change_nothing():
    passages = ["The harbour of the town has piers. ", "It is open to all ships, whatever flag they sail under."]
    assert language_of(passages * 500) == language_of(passages) == "en"
