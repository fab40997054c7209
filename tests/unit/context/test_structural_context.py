"""What is put before a chunk for search, and what is not."""

import polars as pl
import pytest
from chunked_documents import Words, composed, texts
from hypothesis import given
from hypothesis import strategies as st

from stemma.chunking.breadcrumb import MAX_CHARS as MAX_CONTEXT_CHARS
from stemma.chunking.chunk import chunk_document
from stemma.chunking.frame import CHUNK_SCHEMA, CONTEXT_SCHEMA
from stemma.context.contextualize import UnknownContextualizer, contextualize
from stemma.context.structural import structural


def chunks(*section_paths: list[str], content: str = "Words.") -> pl.DataFrame:
    rows = [{"chunk_index": index, "content": content, "section_path": path} for index, path in enumerate(section_paths)]
    return pl.DataFrame(rows, schema={name: CHUNK_SCHEMA[name] for name in ("chunk_index", "content", "section_path", "table_header")})


def chunked(document) -> pl.DataFrame:
    return chunk_document(document, strategy="markdown_aware", size=80, overlap=10, tokenizer=Words())


def test_title_and_trail_stand_before_the_content():
    frame = contextualize(chunks(["Set-up", "Ports"]), method="structural", title="The Guide")
    assert frame.rows() == [(0, "The Guide > Set-up > Ports", "The Guide > Set-up > Ports\n\nWords.")]
    assert frame.schema == CONTEXT_SCHEMA


def test_without_title_and_headings_there_is_no_context():
    assert contextualize(chunks([]), method="structural", title=None).rows() == [(0, None, "Words.")]


def test_the_method_none_leaves_the_content_alone():
    assert contextualize(chunks(["Set-up"]), method="none", title="The Guide").rows() == [(0, None, "Words.")]


def test_no_chunk_gives_no_row_and_the_schema():
    assert contextualize(chunks(), method="structural", title="The Guide").schema == CONTEXT_SCHEMA


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(UnknownContextualizer, match="none, structural"):
        contextualize(chunks([]), method="astrology", title=None)


def test_a_title_that_is_the_first_heading_is_said_once():
    assert structural("The  guide", ["The Guide", "Ports"]) == "The Guide > Ports"
    assert structural("Guide", ["Ports", "Guide"]) == "Guide > Ports > Guide"


@pytest.mark.parametrize("blank", ["", " \n", "\x00", "\u200b"])
def test_a_blank_title_or_heading_is_no_context(blank):
    assert structural(blank, [blank]) is None


def test_a_trail_of_200_headings_keeps_its_ends():
    context = structural("Title", [f"Heading {n}" for n in range(200)])
    assert context is not None and len(context) <= MAX_CONTEXT_CHARS
    assert context.startswith("Title > … > Heading ") and context.endswith("Heading 198 > Heading 199")


def test_an_endless_heading_is_clipped_between_words():
    context = structural(None, ["word " * 1_000])
    assert context is not None and context.endswith("word…") and len(context) <= 120


@given(title=st.one_of(st.none(), texts), section_path=st.lists(st.one_of(texts, st.text(max_size=400)), max_size=60))
def test_a_context_is_one_bounded_line_without_nul(title, section_path):
    context = structural(title, section_path)
    assert context is None or (context.strip() and len(context) <= MAX_CONTEXT_CHARS)
    assert context is None or ("\x00" not in context and len(context.splitlines()) == 1)


def test_a_joiner_within_a_word_stays():
    assert structural(None, ["می\u200cخواهم"]) == "می\u200cخواهم"


@given(title=st.one_of(st.none(), texts), section_path=st.lists(texts, max_size=8), content=st.text(min_size=1))
def test_what_is_embedded_is_the_context_a_blank_line_and_the_content(title, section_path, content):
    row = contextualize(chunks(section_path, content=content), method="structural", title=title).row(0, named=True)
    assert row["contextualized_content"] == (content if row["context"] is None else f"{row['context']}\n\n{content}")


def test_an_insertion_changes_the_context_of_no_other_chunk():
    prose = "A paragraph of a section that is long enough to stand by itself."
    before = [("heading", "# One"), ("paragraph", prose), ("heading", "# Two"), ("paragraph", prose + " Two.")]
    after = [*before[:2], ("heading", "## New", 2), ("paragraph", prose + " New."), *before[2:]]
    of_before, of_after = (
        dict(contextualize(frame, method="structural", title="T").join(frame, on="chunk_index").select("content", "context").iter_rows())
        for frame in (chunked(composed(*before)), chunked(composed(*after)))
    )
    assert {content: of_after[content] for content in of_before} == of_before
    assert len(of_after) == len(of_before) + 1
