"""Promises of every strategy, held against random texts of mixed scripts with random blocks."""

from itertools import pairwise

import polars as pl
import pytest
import regex
from chunked_documents import documents, embed_letters, measured, plain, sizes, texts
from hypothesis import given

from stemma.chunking.chunk import chunk_document
from stemma.chunking.graphemes import is_boundary, next_visible
from stemma.chunking.markdown_aware import HARD_LIMIT
from stemma.chunking.promises import broken_promises
from stemma.chunking.spans import ATOMIC
from stemma.chunking.strategies import UNITS
from stemma.chunking.tokenizer import minilm_tokenizer
from stemma.parsing.document import ParsedDocument

every_strategy = pytest.mark.parametrize("strategy", sorted(UNITS))


def chunks_of(document: ParsedDocument, strategy: str, pair: tuple[int, int]) -> pl.DataFrame:
    size, overlap = pair
    return chunk_document(document, strategy=strategy, size=size, overlap=overlap, tokenizer=minilm_tokenizer(), embed=embed_letters)


def room(strategy: str, pair: tuple[int, int]) -> int:
    """What of the size a chunk's own text has at least."""
    return pair[0] - pair[0] // 2 if strategy == "docling_hybrid" else pair[0]


@every_strategy
@given(document=documents(), pair=sizes())
def test_offsets_are_exact_starts_increase_and_nothing_visible_is_lost(strategy, document, pair):
    assert broken_promises(document.text, chunks_of(document, strategy, pair)) == []


@every_strategy
@given(document=documents(), pair=sizes())
def test_the_shared_checks_find_no_problem(strategy, oracles, document, pair):
    spans = chunks_of(document, strategy, pair).select("char_start", "char_end", "content").rows()

    def is_blank(gap: str) -> bool:
        return next_visible(gap, 0, len(gap)) is None

    assert oracles.check_chunks(document.text, spans, max_chunks=len(document.text), allow_gap=is_blank) == []


@every_strategy
@given(text=texts, pair=sizes())
def test_no_chunk_of_plain_text_measures_more_than_the_size_unless_it_is_one_character(strategy, text, pair):
    for content in chunks_of(plain(text), strategy, pair)["content"]:
        assert measured(strategy, content) <= pair[0] or len(content) == 1


@every_strategy
@given(document=documents(), pair=sizes())
def test_only_an_atomic_block_that_is_whole_makes_a_chunk_longer_than_the_size(strategy, document, pair):
    text = document.text
    atomic = [
        (next_visible(text, block.char_start, block.char_end), block.char_start + len(text[block.char_start : block.char_end].rstrip()))
        for block in document.blocks
        if block.kind in ATOMIC
    ]
    for char_start, char_end, content in chunks_of(document, strategy, pair).select("char_start", "char_end", "content").iter_rows():
        whole = any(first is not None and char_start <= first and last <= char_end for first, last in atomic)
        limit = HARD_LIMIT * pair[0] if whole and strategy == "markdown_aware" else pair[0]
        assert measured(strategy, content) <= limit or len(content) == 1


@every_strategy
@given(document=documents(), pair=sizes())
def test_a_cut_falls_inside_a_grapheme_cluster_only_where_the_cluster_exceeds_the_size(strategy, oracles, document, pair):
    text = document.text
    boundaries = [position for position in range(len(text) + 1) if is_boundary(text, position)]
    longest = max((measured(strategy, text[start:end]) for start, end in pairwise(boundaries)), default=0)
    if longest > room(strategy, pair):
        return
    for char_start, char_end in chunks_of(document, strategy, pair).select("char_start", "char_end").iter_rows():
        assert not oracles.grapheme_cut(text, char_start)
        assert not oracles.grapheme_cut(text, char_end)


@every_strategy
@given(text=texts, pair=sizes())
def test_clusters_of_the_standard_stay_whole(strategy, text, pair):
    boundaries = {0, *(match.end() for match in regex.finditer(r"\X", text))}
    longest = max((measured(strategy, cluster) for cluster in regex.findall(r"\X", text)), default=0)
    if 2 * longest > pair[0]:
        return
    for char_start, char_end in chunks_of(plain(text), strategy, pair).select("char_start", "char_end").iter_rows():
        assert char_start in boundaries and char_end in boundaries


@every_strategy
@given(document=documents(), pair=sizes())
def test_a_chunk_reaches_back_at_most_the_overlap(strategy, document, pair):
    spans = chunks_of(document, strategy, pair).select("char_start", "char_end").rows()
    for (_, before_end), (char_start, _) in pairwise(spans):
        assert measured(strategy, document.text[char_start:before_end]) <= pair[1]


@every_strategy
@given(document=documents(), pair=sizes())
def test_ends_increase_so_every_chunk_adds_text(strategy, document, pair):
    assert (chunks_of(document, strategy, pair)["char_end"].diff().drop_nulls() > 0).all()


@every_strategy
@given(document=documents(), pair=sizes())
def test_no_chunk_begins_or_ends_with_white_space_that_could_be_left_out(strategy, document, pair):
    for content in chunks_of(document, strategy, pair)["content"]:
        # A mark that combines with a space keeps it, and so does a joiner before one.
        assert not content[0].isspace() or not is_boundary(content, 1)
        assert not content[-1].isspace() or not is_boundary(content, len(content) - 1)


@every_strategy
@given(document=documents(), pair=sizes())
def test_chunking_twice_gives_the_same(strategy, document, pair):
    assert chunks_of(document, strategy, pair).equals(chunks_of(document, strategy, pair))


@pytest.mark.parametrize("strategy", ["markdown_aware", "page"])
@given(text=texts, pair=sizes())
def test_without_blocks_and_pages_they_cut_like_recursive_character(strategy, text, pair):
    assert chunks_of(plain(text), strategy, pair).equals(chunks_of(plain(text), "recursive_character", pair))


@every_strategy
@given(document=documents(), pair=sizes())
def test_lines_are_those_of_the_first_and_the_last_character(strategy, document, pair):
    text = document.text
    rows = chunks_of(document, strategy, pair).select("char_start", "char_end", "start_line", "end_line").iter_rows()
    for char_start, char_end, start_line, end_line in rows:
        assert start_line == text.count("\n", 0, char_start) + 1
        assert end_line == text.count("\n", 0, char_end - 1) + 1
