"""Where `markdown_aware` cuts: at headings first, and not through tables, code and formulas."""

import pytest
from chunked_documents import composed

from stemma.chunking.markdown_aware import HARD_LIMIT, markdown_aware
from stemma.chunking.structure import TINY
from stemma.parsing.document import ParsedDocument

SIZE = 80
PROSE = "Words of a section that is long enough to stand by itself."


def contents(document: ParsedDocument, size: int = SIZE, overlap: int = 0) -> list[str]:
    return [document.text[span.char_start : span.char_end] for span in markdown_aware(document, size=size, overlap=overlap)]


def test_a_heading_opens_a_chunk_and_belongs_to_it():
    document = composed(("heading", "# A"), ("paragraph", PROSE), ("heading", "# B"), ("paragraph", PROSE))
    assert contents(document) == [f"# A\n\n{PROSE}", f"# B\n\n{PROSE}"]


def test_text_before_the_first_heading_is_kept():
    assert contents(composed(("paragraph", PROSE), ("heading", "# A"), ("paragraph", PROSE)))[0] == PROSE


def test_a_heading_without_text_joins_the_section_after_it():
    document = composed(("heading", "# A"), ("heading", "## B", 2), ("paragraph", PROSE))
    assert contents(document) == [f"# A\n\n## B\n\n{PROSE}"]


@pytest.mark.parametrize("size", range(12, 60))
def test_a_heading_is_no_chunk_of_its_own_when_text_follows_and_both_begin_to_fit(size):
    document = composed(("heading", "# Heading"), ("paragraph", PROSE * 3))
    assert "# Heading" not in contents(document, size)


def test_a_last_heading_without_text_is_still_found():
    assert contents(composed(("heading", "# A"), ("paragraph", PROSE), ("heading", "# Last")))[-1] == "# Last"


def test_a_tiny_section_joins_the_next_of_the_same_level():
    document = composed(("heading", "# A"), ("paragraph", "x"), ("heading", "# B"), ("paragraph", PROSE))
    assert len("# A\n\nx\n\n") < SIZE // TINY
    assert contents(document) == [document.text]


def test_a_tiny_section_stays_alone_where_both_do_not_fit():
    document = composed(("heading", "# A"), ("paragraph", "x"), ("heading", "# B"), ("paragraph", PROSE * 3))
    assert contents(document)[0] == "# A\n\nx"


def test_overlap_does_not_reach_over_a_heading():
    document = composed(("heading", "# A"), ("paragraph", PROSE), ("heading", "# B"), ("paragraph", PROSE))
    assert contents(document, overlap=40) == contents(document)


@pytest.mark.parametrize(("kind", "line"), [("table", "| cell | cell |"), ("code", "x = compute(y)"), ("formula", "a = b + c")])
def test_an_atomic_block_stays_whole_above_the_size(kind, line):
    block = "\n".join([line] * 12)
    assert SIZE < len(block) < HARD_LIMIT * SIZE
    document = composed(("paragraph", PROSE), (kind, block), ("paragraph", PROSE))
    spans = markdown_aware(document, size=SIZE, overlap=20)
    assert contents(document, overlap=20) == [PROSE, block, PROSE]
    assert [span.chunk_type for span in spans] == ["prose", kind, "prose"]


def test_an_atomic_block_keeps_the_heading_right_before_it():
    table = "\n".join(["| cell | cell |"] * 12)
    document = composed(("heading", "# Prices"), ("table", table))
    assert contents(document) == [f"# Prices\n\n{table}"]
    assert markdown_aware(document, size=SIZE, overlap=0)[0].chunk_type == "table"


def test_a_table_above_the_hard_limit_is_cut_between_rows():
    rows = [f"| row {n} | some words here |" for n in range(100)]
    found = contents(composed(("table", "\n".join(rows))), overlap=20)
    assert max(map(len, found)) <= SIZE
    assert {line for chunk in found for line in chunk.split("\n")} == set(rows)


def test_a_row_above_the_size_is_cut_and_its_neighbours_are_not():
    rows = ["| short |", "| " + "long " * 100 + "|", "| short too |"]
    found = contents(composed(("table", "\n".join(rows))), size=60)
    assert max(map(len, found)) <= 60
    assert found[0].startswith("| short |") and found[-1].endswith("| short too |")


def test_a_small_block_shares_a_chunk_with_the_prose_around_it():
    document = composed(("paragraph", "Run this:"), ("code", "make run"), ("paragraph", "Then wait for a moment."))
    assert contents(document) == [document.text]
    assert markdown_aware(document, size=SIZE, overlap=0)[0].chunk_type == "prose"


def test_an_edit_in_one_section_changes_no_chunk_of_another():
    before = composed(("heading", "# A"), ("paragraph", PROSE * 4), ("heading", "# B"), ("paragraph", PROSE * 4))
    after = composed(("heading", "# A"), ("paragraph", "New. " + PROSE * 5), ("heading", "# B"), ("paragraph", PROSE * 4))
    of_b = [chunk for chunk in contents(before, overlap=20) if chunk.startswith("# B")]
    assert set(contents(before, overlap=20)[-4:]) <= set(contents(after, overlap=20))
    assert of_b
