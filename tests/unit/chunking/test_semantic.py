"""Where the meaning turns, there `semantic` cuts."""

import pytest
from chunked_documents import Words, composed, embed_letters, plain

from stemma.chunking import semantic as module
from stemma.chunking.chunk import chunk_document
from stemma.chunking.semantic import semantic
from stemma.parsing.document import ParsedDocument

SEA = "The sea was sad as seas are as a rule and as a rule seas are. "
HILL = "Hilly hollow hills hold highly chilly willows. "


def contents(document: ParsedDocument, size: int, overlap: int = 0, embed=embed_letters) -> list[str]:
    return [
        document.text[span.char_start : span.char_end]
        for span in semantic(document, size=size, overlap=overlap, tokenizer=Words(), embed=embed)
    ]


def test_a_chunk_ends_where_the_meaning_turns():
    assert contents(plain(SEA * 8 + HILL * 8), 200) == [(SEA * 8).strip(), (HILL * 8).strip()]


def test_a_topic_above_the_size_is_cut_at_sentence_ends_within_it():
    found = contents(plain(SEA * 8 + HILL * 8), 40)
    assert all(len(content.split()) <= 40 and content.endswith(".") for content in found)
    assert not any("sea" in content and "Hilly" in content for content in found)


def test_overlap_reaches_back_within_a_topic_only():
    found = contents(plain(SEA * 8 + HILL * 8), 40, 16)
    assert not any("sea" in content and "Hilly" in content for content in found)
    assert sum(content.count("Hilly") for content in found) > 8


def test_a_text_of_one_meaning_is_not_cut_but_by_size():
    assert contents(plain(SEA * 10), 1_000) == [(SEA * 10).strip()]


def test_every_sentence_is_embedded_once_and_by_itself():
    asked: list[str] = []

    def embed(texts):
        asked.extend(texts)
        return embed_letters(texts)

    contents(plain("One is here. Two is there. Three is gone."), 50, embed=embed)
    assert asked == ["One is here.", "Two is there.", "Three is gone."]


def test_a_table_is_embedded_as_one_and_not_divided_where_it_fits():
    asked: list[str] = []

    def embed(texts):
        asked.extend(texts)
        return embed_letters(texts)

    table = "| a | b |\n| --- | --- |\n" + "\n".join(f"| {n} | z |" for n in range(10))
    document = composed(("paragraph", SEA.strip()), ("table", table), ("paragraph", HILL.strip()))
    found = contents(document, 100, embed=embed)
    assert asked == [SEA.strip(), table, HILL.strip()]
    assert any(table in content for content in found)


@pytest.mark.parametrize("text", ["", "  \n", "One sentence alone."])
def test_a_text_without_gaps_asks_no_model(text):
    def embed(texts):
        raise AssertionError("nothing is to be compared")

    assert contents(plain(text), 50, embed=embed) == ([text] if text.strip() else [])


def test_a_long_document_is_embedded_in_a_bounded_number_of_stretches(monkeypatch):
    monkeypatch.setattr(module, "MAX_EMBEDDED", 10)
    asked: list[str] = []

    def embed(texts):
        asked.extend(texts)
        return embed_letters(texts)

    contents(plain("A sentence of it. " * 95), 50, embed=embed)
    assert len(asked) == 10


def test_without_an_embedder_it_is_refused():
    with pytest.raises(ValueError, match="embedder"):
        chunk_document(plain("text"), strategy="semantic", size=50, overlap=0, tokenizer=Words())
