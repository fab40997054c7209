"""Which chunks lack the head of their table, and what it says."""

import time
from dataclasses import replace

import pytest
from chunked_documents import Words, composed, plain

from stemma.chunking.breadcrumb import MAX_HEADER_CHARS
from stemma.chunking.chunk import chunk_document
from stemma.chunking.strategies import UNITS
from stemma.chunking.table_headers import header_of, table_headers
from stemma.parsing.document import Block

ROWS = "| Name | Price \\| net |\n| --- | :-: |\n" + "".join(f"| thing {n} | {n} |\n" for n in range(50))


def header(table: str) -> str | None:
    return header_of(table, Block("table", 0, len(table)))


def test_the_head_is_the_first_row_without_its_bars():
    assert header(ROWS) == "Name | Price | net"


@pytest.mark.parametrize("table", ["| a | b |\n| 1 | 2 |", "| a | b |", "", "   ", "|  |  |\n| --- | --- |\n| 1 | 2 |", "a\nb\nc"])
def test_a_table_without_a_head_has_none(table):
    assert header(table) is None


def test_a_head_of_a_thousand_columns_is_clipped_between_words():
    wide = "| " + " | ".join(f"column {n}" for n in range(1_000)) + " |\n|" + " --- |" * 1_000
    found = header(wide)
    assert found is not None and len(found) <= MAX_HEADER_CHARS and found.startswith("column 0 | column 1 |") and found.endswith("…")


def test_only_a_chunk_that_begins_below_the_head_lacks_it():
    document = composed(("paragraph", "Words."), ("table", ROWS), ("paragraph", "After."))
    table = document.blocks[1]
    starts = [0, table.char_start, table.char_start + 3, document.text.index("| thing 7"), table.char_end + 2]
    assert table_headers(document, starts) == [None, None, None, "Name | Price | net", None]


@pytest.mark.parametrize("strategy", ["recursive_character", "markdown_aware", "sentence", "token_based", "docling_hybrid"])
def test_no_strategy_pastes_the_head_into_the_text(strategy):
    document = composed(("table", ROWS.strip()))
    size = 30 if UNITS[strategy] == "tokens" else 120
    chunks = chunk_document(document, strategy=strategy, size=size, overlap=0, tokenizer=Words())
    assert "".join("".join(chunks["content"].to_list()).split()) == "".join(document.text.split())
    assert chunks["table_header"].to_list() == [None] + ["Name | Price | net"] * (chunks.height - 1)


def test_the_heads_of_many_chunks_of_one_table_take_no_time():
    table = ROWS * 2_000
    document = replace(plain(table), blocks=(Block("table", 0, len(table)),))
    began = time.process_time()
    assert table_headers(document, range(1_000, len(table), 40))[-1] == "Name | Price | net"
    assert time.process_time() - began < 2
