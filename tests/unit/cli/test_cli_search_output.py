"""What a search looks like at the terminal."""

from typing import get_args, get_type_hints

import pytest
import typer

from stemma.cli.search import _page_range, badges, print_hits, search
from stemma.retrieval.answer import METHODS
from stemma.retrieval.trace import RetrievalTrace


def trace(**fields) -> dict:
    return RetrievalTrace(**{"fused_score": 0.94, "fused_rank": 1, "final_rank": 1, **fields}).model_dump()


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"semantic_rank": 1, "bm25_rank": 3, "rerank_delta": 2}, "sem #1 · bm25 #3 · fused 0.94 · rerank +2"),
        ({"semantic_rank": 1, "bm25_rank": 3}, "sem #1 · bm25 #3 · fused 0.94"),
        ({"semantic_rank": 12}, "sem #12 · fused 0.94"),
        ({"bm25_rank": 2, "rerank_delta": -1}, "bm25 #2 · fused 0.94 · rerank -1"),
        ({"bm25_rank": 2, "rerank_delta": 0}, "bm25 #2 · fused 0.94 · rerank +0"),
    ],
)
def test_badges_name_only_the_arms_that_found_the_passage(fields, line):
    assert badges(trace(**fields)) == line


HIT = {
    "chunk_id": "0123456789abcdef::0", "source_id": "s", "source_path": "handbook/[bold]leave.md", "section_path": ["Leave", "Carry-over"],
    "page_start": None, "page_end": None, "start_line": 3, "end_line": 9, "char_start": 20, "char_end": 60, "extraction": "text",
    "content": "Unused leave\ncarries over.", "trace": trace(semantic_rank=1), "also_at": [],
}  # fmt: skip


def test_a_hit_shows_its_place_and_text_and_no_markup_of_a_file_name_is_obeyed(capsys):
    print_hits({"hits": [HIT], "degraded": []})
    shown = capsys.readouterr().out
    assert "1  handbook/[bold]leave.md · Leave › Carry-over · lines 3-9" in shown
    assert "Unused leave carries over." in shown
    assert "sem #1" not in shown


def test_verbose_adds_the_badges_and_very_verbose_the_offsets(capsys):
    print_hits({"hits": [HIT], "searched": [], "degraded": []}, verbose=1)
    once = capsys.readouterr().out
    print_hits({"hits": [HIT], "searched": [], "degraded": []}, verbose=2)
    twice = capsys.readouterr().out
    assert "sem #1 · fused 0.94" in once
    assert "0123456789abcdef::0" not in once
    assert "0123456789abcdef::0 · chars 20-60" in twice


@pytest.mark.parametrize("extraction", ["ocr", "ocr_fallback"])
def test_a_passage_that_was_read_from_pixels_says_so(capsys, extraction):
    print_hits({"hits": [HIT, HIT | {"extraction": extraction}], "degraded": []})
    first, second = (line for line in capsys.readouterr().out.splitlines() if "lines 3-9" in line)
    assert first.endswith("lines 3-9") and second.endswith("lines 3-9 · by OCR")


def test_a_hit_without_a_trace_has_no_badges(capsys):
    print_hits({"hits": [HIT | {"trace": None}], "searched": [], "degraded": []}, verbose=1)
    assert "fused" not in capsys.readouterr().out


def test_pages_are_named_where_there_are_pages(capsys):
    print_hits({"hits": [HIT | {"page_start": 2, "page_end": 3}], "degraded": []})
    assert "· pages 2-3" in capsys.readouterr().out


def test_an_empty_or_lesser_answer_says_so_on_standard_error(capsys):
    print_hits({"hits": [], "degraded": ["The keyword index is unavailable."]})
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "The keyword index is unavailable.\nNothing was found.\n"


def test_other_places_of_the_same_text_are_named(capsys):
    print_hits({"hits": [HIT | {"also_at": [{"source_path": "copies/[b]leave.md"}]}], "degraded": []})
    assert "also copies/[b]leave.md" in capsys.readouterr().out


@pytest.mark.parametrize(("written", "pages"), [("3", (3, 3)), ("3-5", (3, 5))])
def test_pages_are_written_alone_or_as_a_range(written, pages):
    assert tuple(_page_range(written).values()) == pages


@pytest.mark.parametrize("written", ["", "x", "3-x", "-5", "3-5-7", "²"])
def test_pages_that_are_none_are_refused(written):
    with pytest.raises(typer.BadParameter, match="pages such as"):
        _page_range(written)


def test_the_command_knows_the_methods_there_are():
    assert get_args(get_args(get_type_hints(search)["method"])[0]) == METHODS


def test_verbose_names_the_other_wordings_that_were_searched(capsys):
    print_hits({"hits": [HIT], "searched": ["annual leave", "holiday"], "degraded": []}, verbose=1)
    assert "Also searched: annual leave · holiday" in capsys.readouterr().err
