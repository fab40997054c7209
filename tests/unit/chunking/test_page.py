"""A chunk per page."""

from dataclasses import replace

from chunked_documents import paged, plain

from stemma.chunking.page import page
from stemma.parsing.document import Page, ParsedDocument


def contents(document: ParsedDocument, size: int, overlap: int = 0) -> list[str]:
    return [document.text[span.char_start : span.char_end] for span in page(document, size=size, overlap=overlap)]


def test_every_page_is_a_chunk_however_small():
    assert contents(paged("One.", "Two two.", "Three three three."), 100, 20) == ["One.", "Two two.", "Three three three."]


def test_a_page_above_the_size_is_cut_and_its_neighbours_are_not():
    assert contents(paged("One.", "First sentence here. Second sentence.", "Three."), 24) == [
        "One.",
        "First sentence here.",
        "Second sentence.",
        "Three.",
    ]


def test_overlap_reaches_back_within_a_page_only():
    assert contents(paged("a b c d", "e f g h"), 6, 2) == ["a b c", "c d", "e f g", "g h"]


def test_an_empty_page_has_no_chunk():
    document = replace(plain("one\n\ntwo"), pages=(Page(1, 0, 3), Page(2, 3, 3), Page(3, 5, 8)))
    assert contents(document, 50) == ["one", "two"]


def test_text_before_the_first_page_and_after_the_last_is_kept():
    document = replace(plain("before one after"), pages=(Page(1, 7, 10),))
    assert contents(document, 50) == ["before one after"]
