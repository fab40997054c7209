"""Structure first, then tokens; and what is said around a chunk counts."""

from dataclasses import replace

import pytest
from chunked_documents import Words, composed

from stemma.chunking.breadcrumb import breadcrumb
from stemma.chunking.chunk import chunk_document
from stemma.chunking.docling_hybrid import docling_hybrid
from stemma.chunking.tokenizer import minilm_tokenizer
from stemma.context.contextualize import contextualize
from stemma.parsing.document import ParsedDocument

TABLE = "\n".join(["| item | price |", "| --- | --- |", *(f"| thing {n} | {n} euro |" for n in range(80))])


def contents(document: ParsedDocument, size: int, overlap: int = 0) -> list[str]:
    return [
        document.text[span.char_start : span.char_end] for span in docling_hybrid(document, size=size, overlap=overlap, tokenizer=Words())
    ]


def test_peers_under_one_heading_share_a_chunk_while_they_fit():
    document = composed(("heading", "# A"), ("paragraph", "one two three"), ("paragraph", "four five"), ("paragraph", "six seven eight"))
    assert contents(document, 8) == ["# A\n\none two three\n\nfour five", "six seven eight"]


def test_sections_under_different_headings_never_share_one():
    document = composed(("heading", "# A"), ("paragraph", "one"), ("heading", "# B"), ("paragraph", "two"))
    assert contents(document, 50) == ["# A\n\none", "# B\n\ntwo"]


def test_a_block_that_fits_is_not_divided_to_fill_the_chunk_before_it():
    document = composed(("paragraph", "one. two."), ("paragraph", "three. four. five. six."))
    assert contents(document, 5) == ["one. two.", "three. four. five. six."]


def test_a_block_that_does_not_fit_is_cut_at_a_sentence_end():
    document = composed(("paragraph", "One two three. Four five. Six seven eight, nine ten."))
    assert contents(document, 6) == ["One two three. Four five.", "Six seven eight, nine ten."]


def test_the_breadcrumb_counts_toward_the_size():
    with_trail = composed(("heading", "# One two three"), ("paragraph", "a b c d e f"))
    assert contents(with_trail, 3 + 4 + 6) == [with_trail.text]  # the breadcrumb, the heading, the words
    assert len(contents(with_trail, 3 + 4 + 5)) == 2


def test_a_long_breadcrumb_leaves_the_text_half_of_the_size():
    document = composed(*(("heading", f"# Heading number {n}", n) for n in range(1, 7)), ("paragraph", "word " * 40))
    assert max(len(content.split()) for content in contents(document, 20)) == 10


@pytest.mark.parametrize("size", [64, 128, 256])
def test_what_is_embedded_is_within_the_size(size):
    document = replace(
        composed(("heading", "# Prices"), ("table", TABLE), ("heading", "## Terms", 2), ("paragraph", "Some words of a long text. " * 60)),
        title="A catalogue of things",
    )
    chunks = chunk_document(document, strategy="docling_hybrid", size=size, overlap=8, tokenizer=minilm_tokenizer())
    embedded = contextualize(chunks, method="structural", title=document.title)["contextualized_content"].to_list()
    assert max(minilm_tokenizer().count(embedded)) <= size


def test_rows_of_a_long_table_are_whole_and_its_head_is_said_in_the_context_only():
    document = composed(("heading", "# Prices"), ("table", TABLE), ("paragraph", "After it."))
    chunks = chunk_document(document, strategy="docling_hybrid", size=64, overlap=0, tokenizer=minilm_tokenizer())
    contexts = contextualize(chunks, method="structural", title=None)["context"].to_list()
    assert {line for content in chunks["content"] for line in content.split("\n")} >= set(TABLE.split("\n"))
    assert sum("| item | price |" in content for content in chunks["content"]) == 1
    assert contexts[0] == contexts[-1] == "Prices"
    assert set(contexts[1:-1]) == {"Prices > item | price"}


def test_a_long_table_keeps_the_heading_before_it():
    assert contents(composed(("heading", "# Prices"), ("table", TABLE)), 40)[0].startswith("# Prices\n\n| item | price |")


def test_code_that_fits_is_whole_and_longer_code_is_cut_between_lines():
    code = "\n".join(f"call({n}) # of it" for n in range(30))
    assert contents(composed(("paragraph", "a b c"), ("code", code)), 122) == ["a b c", code]
    lines = [line for content in contents(composed(("code", code)), 17) for line in content.split("\n")]
    assert lines == code.split("\n")


def test_a_breadcrumb_of_title_headings_and_head_keeps_within_its_limit():
    assert breadcrumb("Guide", ["Ports", "Bow"], "a | b") == "Guide > Ports > Bow > a | b"
    long = breadcrumb("T" * 500, ["H " * 200] * 5, "column | " * 100)
    assert len(long) <= 300 and long.endswith("…") and "column | column" in long
