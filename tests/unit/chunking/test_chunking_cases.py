"""Inputs that broke other chunkers, parsed by the real parsers."""

from functools import cache
from pathlib import Path

import polars as pl
import pytest
from chunked_documents import embed_letters, measured

from stemma.chunking.chunk import chunk_document
from stemma.chunking.graphemes import next_visible
from stemma.chunking.markdown_aware import HARD_LIMIT
from stemma.chunking.promises import broken_promises
from stemma.chunking.strategies import UNITS
from stemma.chunking.tokenizer import minilm_tokenizer
from stemma.context.contextualize import contextualize
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import detect_format
from stemma.parsing.parse import parse_file

EVERY = pytest.mark.parametrize("strategy", sorted(UNITS))


@pytest.fixture(scope="session")
def parse(shared):
    @cache
    def parse(case: str) -> ParsedDocument:
        path: Path = shared / "cases" / case
        return parse_file(
            path, source_path=case, format=detect_format(path.read_bytes()[:8192], path.suffix), options=ParsingOptions(ocr_engine="none")
        )

    return parse


@pytest.fixture(scope="session")
def chunks():
    tokenizer = minilm_tokenizer()

    def chunks(document: ParsedDocument, strategy: str, size: int, overlap: int) -> pl.DataFrame:
        return chunk_document(document, strategy=strategy, size=size, overlap=overlap, tokenizer=tokenizer, embed=embed_letters)

    return chunks


def problems(oracles, text: str, frame: pl.DataFrame) -> list[str]:
    def is_blank(gap: str) -> bool:
        return next_visible(gap, 0, len(gap)) is None

    spans = frame.select("char_start", "char_end", "content").rows()
    return oracles.check_chunks(text, spans, max_chunks=len(text), allow_gap=is_blank) + broken_promises(text, frame)


@EVERY
@pytest.mark.parametrize("step", [40, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["repeated_paragraph.txt", "tiny.txt"])
def test_repeated_text_gets_the_offsets_of_each_repetition(*, oracles, parse, chunks, strategy, name, step):
    document = parse(f"01-offsets-repeated-text/{name}")
    for size in range(5, 401, step):
        for overlap in {0, 1, size // 2, size - 1}:
            assert problems(oracles, document.text, chunks(document, strategy, size, overlap)) == []


@EVERY
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["short_lines.txt", "long_word_6000.txt", "tail.txt"])
def test_every_size_and_overlap_ends(*, oracles, shared, parse, chunks, strategy, name):
    document = parse(f"02-overlap-never-ends/{name}")
    grid = pl.read_csv(shared / "cases" / "02-overlap-never-ends" / "grid.csv")
    for size, overlap in grid.iter_rows():
        frame = chunks(document, strategy, size, overlap)
        assert problems(oracles, document.text, frame) == []
        assert max(measured(strategy, content) for content in frame["content"]) <= size


@EVERY
@pytest.mark.parametrize("size", [64, 128, 512])
@pytest.mark.parametrize(
    ("name", "needle"),
    [("deep_headings.md", "needle-deephead"), ("huge_table.md", "needle-mdtable"), ("wide_1000_columns.csv", "needle-wide")],
)
def test_a_heading_or_table_neither_breaks_the_limit_nor_loses_its_text(*, oracles, parse, chunks, strategy, size, name, needle):
    document = parse(f"04-limit-exceeded-by-heading-or-table/{name}")
    frame = chunks(document, strategy, size, 16)
    assert problems(oracles, document.text, frame) == []
    limit = HARD_LIMIT * size if strategy == "markdown_aware" else size
    assert max(measured(strategy, content) for content in frame["content"]) <= limit
    assert frame["content"].str.contains(needle, literal=True).any()


@pytest.mark.parametrize("size", [64, 128, 512])
@pytest.mark.parametrize("name", ["deep_headings.md", "huge_table.md", "wide_1000_columns.csv"])
def test_what_docling_hybrid_embeds_exceeds_the_size_only_by_a_context_of_more_than_half(parse, chunks, name, size):
    document = parse(f"04-limit-exceeded-by-heading-or-table/{name}")
    situated = contextualize(chunks(document, "docling_hybrid", size, 16), method="structural", title=document.title)
    for context, embedded in situated.select("context", "contextualized_content").iter_rows():
        said = measured("docling_hybrid", context or "")
        assert measured("docling_hybrid", embedded) <= size + max(0, said - size // 2)


@pytest.mark.parametrize("strategy", [name for name, unit in UNITS.items() if unit == "tokens"])
@pytest.mark.parametrize(("name", "tail"), [("tail_a.txt", "The vault code is seven."), ("tail_b.txt", "The ferry leaves at noon.")])
def test_no_chunk_is_longer_than_what_the_model_reads_and_the_tail_is_in_one(*, parse, chunks, strategy, name, tail):
    frame = chunks(parse(f"05-embedder-cuts-silently/{name}"), strategy, 254, 20)
    assert frame["n_tokens"].max() <= 254
    assert frame["content"].str.contains(tail, literal=True).any()


@EVERY
@pytest.mark.parametrize(
    "name",
    [
        "merged_formulas_errors.xlsx",
        "cached_formulas.xlsx",
        "last_cell.xlsx",
        "inflated.xlsx",
        pytest.param("big_table.xlsx", marks=pytest.mark.slow),
    ],
)
def test_spreadsheets_are_cut_in_time_and_cited_by_sheet(*, oracles, parse, chunks, strategy, name):
    document = parse(f"44-spreadsheet-values-and-size/{name}")
    frame = chunks(document, strategy, 400, 20)
    assert problems(oracles, document.text, frame) == []
    assert frame["page_start"].min() == 1 and frame["page_end"].max() == max(
        page.number for page in document.pages if page.char_start < page.char_end
    )


def test_a_big_spreadsheet_is_cut_in_time(parse, chunks):
    document = parse("44-spreadsheet-values-and-size/big_table.xlsx")
    assert broken_promises(document.text, chunks(document, "markdown_aware", 400, 20)) == []


@EVERY
@pytest.mark.parametrize(
    ("name", "n_chunks"), [("layout_gap.txt", None), ("empty_sections.md", None), ("only_nbsp_zwsp.txt", 0), ("empty_table.html", None)]
)
def test_nothing_blank_becomes_a_chunk(*, oracles, parse, chunks, strategy, name, n_chunks):
    document = parse(f"06-blank-chunks/{name}")
    frame = chunks(document, strategy, 80, 10)
    assert problems(oracles, document.text, frame) == []
    assert n_chunks is None or frame.height == n_chunks


def test_sections_without_text_end_in_one_chunk_with_the_text_that_follows(parse, chunks):
    frame = chunks(parse("06-blank-chunks/empty_sections.md"), "markdown_aware", 80, 0)
    assert frame["content"].to_list() == [frame["content"][0]] and "needle-emptysec" in frame["content"][0]
    assert frame["section_path"].to_list() == [["D"]]


@EVERY
def test_a_text_file_has_no_page_numbers(parse, chunks, strategy):
    frame = chunks(parse("42-page-citation/no_pages.txt"), strategy, 20, 5)
    assert frame["page_start"].null_count() == frame.height > 0


@EVERY
@pytest.mark.parametrize("overlap", [0, 200])
def test_each_of_200_pages_is_cited_on_its_own_page(parse, chunks, strategy, overlap):
    frame = chunks(parse("42-page-citation/200_pages.pdf"), strategy, 400, overlap)
    for page in (1, 2, 99, 137, 200):
        hits = frame.filter(pl.col("content").str.contains(f"needle-page{page:03d}", literal=True))
        assert hits.height and ((hits["page_start"] <= page) & (hits["page_end"] >= page)).all()
    assert frame["page_end"].max() == 200


@EVERY
@pytest.mark.parametrize("size", [60, 400])
@pytest.mark.parametrize(
    "name", ["code_fence_hash.md", "bom_heading.md", "setext_frontmatter.md", "duplicate_headings.md", "crlf.md", "html_in_md.md"]
)
def test_markdown_keeps_every_character(*, oracles, parse, chunks, strategy, size, name):
    document = parse(f"49-markdown-structure/{name}")
    assert problems(oracles, document.text, chunks(document, strategy, size, 0)) == []


@pytest.mark.parametrize(
    ("name", "needle", "section_path"),
    [
        ("code_fence_hash.md", "needle-fence", ["Real heading"]),
        ("bom_heading.md", "needle-bomhead", ["Heading after BOM"]),
        ("setext_frontmatter.md", "needle-setext", ["Top heading"]),
        ("crlf.md", "needle-mdcrlf", ["One"]),
    ],
)
def test_markdown_headings_are_found_and_nothing_else_is_one(parse, chunks, name, needle, section_path):
    frame = chunks(parse(f"49-markdown-structure/{name}"), "markdown_aware", 60, 0)
    assert frame.filter(pl.col("content").str.contains(needle, literal=True))["section_path"].to_list() == [section_path]


@pytest.mark.parametrize("name", ["200_pages.pdf", "sentence_across_pages.pdf", "empty_pages_inside.pdf", "rotated_pages.pdf"])
def test_by_page_no_chunk_is_on_two_pages(parse, chunks, name):
    document = parse(f"42-page-citation/{name}")
    frame = chunks(document, "page", 100_000, 100)
    assert (frame["page_start"] == frame["page_end"]).all()
    assert frame["page_start"].to_list() == [
        page.number for page in document.pages if document.text[page.char_start : page.char_end].strip()
    ]


def test_equal_headings_keep_their_order(parse, chunks):
    frame = chunks(parse("49-markdown-structure/duplicate_headings.md"), "markdown_aware", 400, 0)
    sections = frame["content"].str.extract(r"Section (\d+)").drop_nulls().cast(pl.Int64).to_list()
    assert sections == sorted(sections) and len(sections) > 1
