"""Quotes of a model are held against the passages, however its text is cut into pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stemma.chat.citations import QUOTE_MAX_CHARS, CitationFilter
from stemma.chat.extractive import MOST_CHARS, best_stretch, extractive_answer
from stemma.retrieval.answer import Hit

ONE = "0123456789abcdef::4"


def hit(content: str, chunk_id: str = ONE, char_start: int = 100) -> Hit:
    return Hit(
        chunk_id=chunk_id, doc_id=chunk_id.partition("::")[0], source_id="s", publication_id=1, source_path="a.md", workspace="default",
        title="A", file_type="md", content=content, context=None, char_start=char_start, char_end=char_start + len(content), start_line=1,
        end_line=1, page_start=None, page_end=None, section_path=[], chunk_type="prose", extraction="text", score=1.0,
        chunk_ids=[chunk_id], n_tokens=1,
    )  # fmt: skip


PASSAGE = hit('Backups are  tested\nevery month. It’s fine — 5" wide.')


def shown(text: str, *pieces: str) -> tuple[str, list[tuple[str, int, int]], int]:
    checked = CitationFilter([PASSAGE])
    out = "".join(checked.feed(piece) for piece in pieces or (text,)) + checked.finish()
    return out, [(c.quote, c.quote_char_start, c.quote_char_end) for c in checked.citations], checked.n_dropped


def test_a_quote_is_shown_in_the_words_of_the_document():
    text, citations, dropped = shown(f"They say “are tested every month” [citation:{ONE}].")
    assert text == f"They say “are  tested\nevery month” [citation:{ONE}]."
    assert citations == [("are  tested\nevery month", 108, 131)] and dropped == 0


@pytest.mark.parametrize("quote", ["It's fine - 5", "it is fine", "Backups are … month"])
def test_only_typography_may_differ(quote):
    _, citations, dropped = shown(f"“{quote}” [citation:{ONE}]")
    assert (len(citations), dropped) == ((1, 0) if quote == "It's fine - 5" else (0, 1))


def test_what_cannot_be_verified_is_neither_shown_nor_kept():
    assert shown(f'a "made up" [citation:{ONE}] b [citation:ffff::1] c "x" [citation:ffff::1]') == ("a  b  c ", [], 3)


def test_a_marker_alone_cites_the_whole_passage_once():
    text, citations, dropped = shown(f"a [citation:{ONE}] b [citation:{ONE}]")
    assert text == f"a [citation:{ONE}] b [citation:{ONE}]"
    assert citations == [(PASSAGE.content, 100, 100 + len(PASSAGE.content))] and dropped == 0


@pytest.mark.parametrize(
    "text",
    [
        'words in "quotation marks" stay',
        "a [link] stays",
        '5" tall, never closed',
        "[citation:",
        "“",
        '"a\n\nb" [x]',
        f'"{"x" * (QUOTE_MAX_CHARS + 9)}"',
    ],
)
def test_other_text_is_left_as_it_is(text):
    assert shown(text) == (text, [], 0)


PARTS = st.sampled_from(
    [
        "word ",
        '"',
        "“",
        "”",
        "[",
        "]",
        "[citation:",
        ONE,
        f"[citation:{ONE}]",
        "[citation:ffff::0]",
        "every month",
        "\n\n",
        " ",
        ".",
        "are tested",
        "„",
        "«",
        "»",
    ]
)


@settings(max_examples=300)
@given(st.lists(PARTS, max_size=30).map("".join), st.data())
def test_how_the_text_is_cut_into_pieces_changes_nothing(text, data):
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert shown(text, *pieces) == shown(text)


@given(st.lists(PARTS, max_size=30).map("".join))
def test_every_citation_is_a_slice_of_its_passage(text):
    _, citations, _ = shown(text)
    for quote, start, end in citations:
        assert PASSAGE.content[start - 100 : end - 100] == quote


def test_the_sentence_that_shares_most_words_is_quoted():
    text = "The sun shines. Backups are tested every month by Maria. " + "Nothing else happens here at all. " * 20
    start, end = best_stretch("how often are backups tested", text)
    assert text[start:end].startswith("Backups are tested every month by Maria.") and end - start <= MOST_CHARS


@given(st.text(min_size=1).filter(str.strip), st.text())
def test_a_stretch_is_visible_and_within_the_text(text, query):
    start, end = best_stretch(query, text)
    assert 0 <= start < end <= len(text) and text[start:end] == text[start:end].strip()


def test_an_answer_without_passages_says_so():
    assert extractive_answer("x", [], reason="No model.").text == "No model. Nothing in the library matches the question."
