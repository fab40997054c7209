"""What is derived from a chunk's offsets: lines, pages, headings, hashes and how the text was won."""

import hashlib
import time
from dataclasses import replace

import pytest
from chunked_documents import Words, composed, embed_letters, paged, plain

from stemma.chunking.chunk import chunk_document
from stemma.chunking.frame import CHUNK_SCHEMA
from stemma.chunking.headings import heading_text
from stemma.chunking.strategies import UNITS, InvalidChunkSize, UnknownStrategy
from stemma.parsing.document import Block, Page

EVERY = pytest.mark.parametrize("strategy", sorted(UNITS))


@pytest.fixture
def chunks():
    def chunks(document, *, strategy="markdown_aware", size=60, overlap=0):
        if UNITS.get(strategy) == "tokens":  # words of six characters with their spaces
            size, overlap = max(1, size // 6), overlap // 6
        return chunk_document(document, strategy=strategy, size=size, overlap=overlap, tokenizer=Words(), embed=embed_letters)

    return chunks


def test_the_frame_has_its_schema_with_and_without_rows(chunks):
    assert chunks(plain("Some words.")).schema == CHUNK_SCHEMA
    assert chunks(plain(" \u200b\n")).schema == CHUNK_SCHEMA
    assert chunks(plain("")).height == 0


def test_a_chunk_knows_its_hash_and_its_tokens(chunks):
    row = chunks(plain("Three short words")).row(0, named=True)
    assert row["text_hash"] == hashlib.sha256(b"Three short words").hexdigest()
    assert row["n_tokens"] == 3


def test_an_unknown_strategy_is_refused_with_the_known_ones(chunks):
    with pytest.raises(UnknownStrategy, match="docling_hybrid, markdown_aware, page, recursive_character, semantic, sentence, token_based"):
        chunks(plain("text"), strategy="by_feeling")


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, 11), (10, -1), (-5, -6)])
def test_an_impossible_size_and_overlap_are_refused(chunks, size, overlap):
    with pytest.raises(InvalidChunkSize):
        chunks(plain("text"), size=size, overlap=overlap)


@EVERY
def test_a_format_without_pages_has_none(chunks, strategy):
    frame = chunks(plain("word " * 50), strategy=strategy)
    assert frame["page_start"].null_count() == frame["page_end"].null_count() == frame.height > 1


@pytest.mark.parametrize("strategy", sorted(UNITS.keys() - {"page"}))
def test_a_chunk_over_a_page_break_names_both_pages(chunks, strategy):
    frame = chunks(paged("The first page ends here", "and the second goes on."), strategy=strategy)
    assert frame.select("page_start", "page_end").rows() == [(1, 2)]


@EVERY
@pytest.mark.parametrize("overlap", [0, 20])
def test_each_of_many_pages_is_cited_by_its_own_number(chunks, strategy, overlap):
    document = paged(*(f"Page {number} holds needle{number} among some other words." for number in range(1, 101)))
    for row in chunks(document, strategy=strategy, overlap=overlap).iter_rows(named=True):
        numbers = [number for number in range(1, 101) if f"needle{number} " in row["content"]]
        assert row["page_start"] <= min(numbers, default=100)
        assert row["page_end"] >= max(numbers, default=1)
        assert row["page_start"] == document.text.count("\n\n", 0, row["char_start"]) + 1


def test_an_empty_page_is_never_cited(chunks):
    document = replace(plain("one\n\ntwo"), pages=(Page(1, 0, 3), Page(2, 3, 3), Page(3, 5, 8)))
    frame = chunks(document, size=3)
    assert frame.select("page_start", "page_end").rows() == [(1, 1), (3, 3)]


@pytest.mark.parametrize("strategy", ["recursive_character", "markdown_aware", "sentence"])
def test_the_section_path_is_the_trail_of_headings(chunks, strategy):
    document = composed(
        ("paragraph", "Before any heading there is some text of a line"),
        ("heading", "# Guide #", 1),
        ("heading", "## Set-up ##", 2),
        ("paragraph", "How to begin, in a paragraph of a line in length."),
        ("heading", "Use\n---", 2),
        ("paragraph", "How to go on, in a paragraph of a line in length."),
        ("heading", "# End", 1),
        ("paragraph", "How to finish, in a paragraph of one line length."),
    )
    frame = chunks(document, strategy=strategy, size=80)
    assert frame["section_path"].to_list() == [[], ["Guide", "Set-up"], ["Guide", "Use"], ["End"]]


def test_marks_within_a_heading_are_left_out_and_words_stay(chunks):
    document = composed(("heading", "## The **bold** [link](http://x) and `MAX_FILE_BYTES`", 2), ("paragraph", "Text."))
    assert chunks(document)["section_path"].to_list() == [["The bold link and MAX_FILE_BYTES"]]


def test_a_number_sign_that_is_no_mark_stays(chunks):
    document = composed(("heading", "# of visitors", 3), ("paragraph", "Text."))
    assert chunks(document)["section_path"].to_list() == [["# of visitors"]]


@pytest.mark.parametrize(
    ("heading", "words"),
    [("# a ##", "a"), ("# a#", "a#"), ("# ##", ""), ("# a # b", "a # b"), ("# a ## \t", "a"), ("# a" + " " * 200_000 + "b", "a b")],
)
def test_closing_marks_of_a_heading_are_none_of_its_words(heading, words):
    assert heading_text(heading, Block("heading", 0, len(heading), 1)) == words


def test_the_section_is_that_of_the_text_a_chunk_adds_not_of_its_overlap(chunks):
    text = "One two three four five six. Seven eight nine ten"
    document = replace(plain(f"{text}\n\nHeading\n\nEleven twelve thirteen"), blocks=(Block("heading", len(text) + 2, len(text) + 9, 1),))
    frame = chunks(document, strategy="recursive_character", size=55, overlap=20)
    assert frame["content"][1].startswith("Seven eight")
    assert frame["section_path"].to_list() == [[], ["Heading"]]


@pytest.mark.parametrize(
    ("extraction", "ocr_pages", "expected"),
    [
        ("text", (), ["text", "text"]),
        ("ocr", (1, 2), ["ocr", "ocr"]),
        ("text", (2,), ["text", "ocr_fallback"]),
        ("ocr_fallback", (1,), ["ocr_fallback", "text"]),
    ],
)
def test_a_chunk_says_whether_its_pages_were_read_from_pixels(chunks, extraction, ocr_pages, expected):
    document = replace(paged("First page.", "Other page."), extraction=extraction, ocr_pages=ocr_pages)
    assert chunks(document, size=12)["extraction"].to_list() == expected


@EVERY
def test_the_time_grows_with_the_text_and_not_with_its_square(chunks, strategy):
    paragraph = "The quick brown fox jumps over the lazy dog and runs away. " * 8

    def seconds(n_paragraphs: int) -> float:
        blocks = tuple(Block("heading", n * (len(paragraph) + 2), n * (len(paragraph) + 2) + 9, 1) for n in range(0, n_paragraphs, 7))
        document = replace(plain((paragraph + "\n\n") * n_paragraphs), blocks=blocks)
        began = time.process_time()
        chunks(document, strategy=strategy, size=800, overlap=100)
        return time.process_time() - began

    seconds(100)
    # Ten times the text in the square would be a hundred times the time.
    assert seconds(5_000) < 30 * max(seconds(500), 0.02)
