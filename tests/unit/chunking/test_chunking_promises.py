"""Promises of every strategy, held against random texts of mixed scripts with random blocks: each text is cut once for all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from types import ModuleType

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


@dataclass(frozen=True)
class Cut:
    """A document, and the chunks that a strategy made of it with a (size, overlap)."""

    document: ParsedDocument
    strategy: str
    size: int
    overlap: int
    oracles: ModuleType

    @property
    def text(self) -> str:
        return self.document.text

    def again(self) -> pl.DataFrame:
        return chunk_document(
            self.document, strategy=self.strategy, size=self.size, overlap=self.overlap, tokenizer=minilm_tokenizer(), embed=embed_letters
        )

    def measure(self, text: str) -> int:
        return measured(self.strategy, text)


Promise = Callable[[Cut, pl.DataFrame], None]


def offsets_are_exact_starts_increase_and_nothing_visible_is_lost(cut: Cut, chunks: pl.DataFrame) -> None:
    assert broken_promises(cut.text, chunks) == []


def the_shared_checks_find_no_problem(cut: Cut, chunks: pl.DataFrame) -> None:
    def is_blank(gap: str) -> bool:
        return next_visible(gap, 0, len(gap)) is None

    spans = chunks.select("char_start", "char_end", "content").rows()
    assert cut.oracles.check_chunks(cut.text, spans, max_chunks=len(cut.text), allow_gap=is_blank) == []


def only_an_atomic_block_that_is_whole_makes_a_chunk_longer_than_the_size(cut: Cut, chunks: pl.DataFrame) -> None:
    text = cut.text
    atomic = [
        (next_visible(text, block.char_start, block.char_end), block.char_start + len(text[block.char_start : block.char_end].rstrip()))
        for block in cut.document.blocks
        if block.kind in ATOMIC
    ]
    for char_start, char_end, content in chunks.select("char_start", "char_end", "content").iter_rows():
        whole = any(first is not None and char_start <= first and last <= char_end for first, last in atomic)
        limit = HARD_LIMIT * cut.size if whole and cut.strategy == "markdown_aware" else cut.size
        assert cut.measure(content) <= limit or len(content) == 1


def a_cut_falls_inside_a_grapheme_cluster_only_where_the_cluster_exceeds_the_size(cut: Cut, chunks: pl.DataFrame) -> None:
    boundaries = [position for position in range(len(cut.text) + 1) if is_boundary(cut.text, position)]
    room = cut.size - cut.size // 2 if cut.strategy == "docling_hybrid" else cut.size  # what a chunk's own text has at least
    if max((cut.measure(cut.text[start:end]) for start, end in pairwise(boundaries)), default=0) > room:
        return
    for char_start, char_end in chunks.select("char_start", "char_end").iter_rows():
        assert not cut.oracles.grapheme_cut(cut.text, char_start)
        assert not cut.oracles.grapheme_cut(cut.text, char_end)


def a_chunk_reaches_back_at_most_the_overlap(cut: Cut, chunks: pl.DataFrame) -> None:
    for (_, before_end), (char_start, _) in pairwise(chunks.select("char_start", "char_end").rows()):
        assert cut.measure(cut.text[char_start:before_end]) <= cut.overlap


def ends_increase_so_every_chunk_adds_text(cut: Cut, chunks: pl.DataFrame) -> None:
    assert (chunks["char_end"].diff().drop_nulls() > 0).all()


def no_chunk_begins_or_ends_with_white_space_that_could_be_left_out(cut: Cut, chunks: pl.DataFrame) -> None:
    for content in chunks["content"]:
        # A mark that combines with a space keeps it, and so does a joiner before one.
        assert not content[0].isspace() or not is_boundary(content, 1)
        assert not content[-1].isspace() or not is_boundary(content, len(content) - 1)


def lines_are_those_of_the_first_and_the_last_character(cut: Cut, chunks: pl.DataFrame) -> None:
    for char_start, char_end, start_line, end_line in chunks.select("char_start", "char_end", "start_line", "end_line").iter_rows():
        assert start_line == cut.text.count("\n", 0, char_start) + 1
        assert end_line == cut.text.count("\n", 0, char_end - 1) + 1


def chunking_twice_gives_the_same(cut: Cut, chunks: pl.DataFrame) -> None:
    assert cut.again().equals(chunks)


OF_EVERY_DOCUMENT: tuple[Promise, ...] = (
    offsets_are_exact_starts_increase_and_nothing_visible_is_lost,
    the_shared_checks_find_no_problem,
    only_an_atomic_block_that_is_whole_makes_a_chunk_longer_than_the_size,
    a_cut_falls_inside_a_grapheme_cluster_only_where_the_cluster_exceeds_the_size,
    a_chunk_reaches_back_at_most_the_overlap,
    ends_increase_so_every_chunk_adds_text,
    no_chunk_begins_or_ends_with_white_space_that_could_be_left_out,
    lines_are_those_of_the_first_and_the_last_character,
    chunking_twice_gives_the_same,
)


def no_chunk_measures_more_than_the_size_unless_it_is_one_character(cut: Cut, chunks: pl.DataFrame) -> None:
    for content in chunks["content"]:
        assert cut.measure(content) <= cut.size or len(content) == 1


def clusters_of_the_standard_stay_whole(cut: Cut, chunks: pl.DataFrame) -> None:
    if 2 * max((cut.measure(cluster) for cluster in regex.findall(r"\X", cut.text)), default=0) > cut.size:
        return
    boundaries = {0, *(match.end() for match in regex.finditer(r"\X", cut.text))}
    for char_start, char_end in chunks.select("char_start", "char_end").iter_rows():
        assert char_start in boundaries and char_end in boundaries


def without_blocks_and_pages_it_cuts_like_recursive_character(cut: Cut, chunks: pl.DataFrame) -> None:
    if cut.strategy in ("markdown_aware", "page"):
        assert Cut(cut.document, "recursive_character", cut.size, cut.overlap, cut.oracles).again().equals(chunks)


OF_PLAIN_TEXT: tuple[Promise, ...] = (
    no_chunk_measures_more_than_the_size_unless_it_is_one_character,
    clusters_of_the_standard_stay_whole,
    without_blocks_and_pages_it_cuts_like_recursive_character,
)


@every_strategy
@given(document=documents(), pair=sizes())
def test_every_promise_is_kept_for_a_document_with_blocks_and_pages(strategy, oracles, document, pair):
    cut = Cut(document, strategy, *pair, oracles)
    chunks = cut.again()
    for promise in OF_EVERY_DOCUMENT:
        promise(cut, chunks)


@every_strategy
@given(text=texts, pair=sizes())
def test_every_promise_about_plain_text_is_kept(strategy, oracles, text, pair):
    cut = Cut(plain(text), strategy, *pair, oracles)
    chunks = cut.again()
    for promise in OF_PLAIN_TEXT:
        promise(cut, chunks)
