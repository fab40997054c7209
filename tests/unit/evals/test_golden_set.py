"""Golden sets: malformed lines are refused, references resolve by index or by fact, and what no longer holds is never a silent miss."""

from pathlib import Path

import polars as pl
import pytest

from evals.golden_set import GoldenSetInvalid, Question, Reference, load_golden_set, resolve_by_fact, resolve_by_index

TEXT = "The dome weighs four tonnes. The crank is behind the grey panel. Grease the rail in March."
QUESTION = Question(query="Where is the crank?", relevant=(Reference(rel_source="dome.md", chunk_index=1, fact="behind the grey panel"),))


def cut(*spans: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "chunk_id": [f"dome::{number}" for number in range(len(spans))],
            "chunk_index": list(range(len(spans))),
            "char_start": [start for start, _ in spans],
            "content": [TEXT[start:end] for start, end in spans],
        }
    )


SENTENCES = cut((0, 28), (29, 64), (65, 90))
OVERLAPPING = cut((0, 64), (29, 90))


def written(folder: Path, *lines: str) -> Path:
    path = folder / "golden.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 2: "),
        ('{"query": "Where?"}', "line 2: relevant"),
        ('{"query": "Where?", "relevant": [{"rel_source": "a", "chunk_index": -1, "fact": "b"}]}', "relevant.0.chunk_index"),
        ('{"query": "Where?", "relevant": [{"rel_source": "a", "chunk_index": 0, "fact": ""}]}', "relevant.0.fact"),
        ('{"query": "Where?", "relevant": [], "answer": 1}', "line 2: answer"),
        ('{"query": "Who?", "relevant": []}', "asked twice"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, said):
    with pytest.raises(GoldenSetInvalid, match=said):
        load_golden_set(written(tmp_path, '{"query": "Who?", "relevant": []}', line))


def test_an_index_resolves_to_the_chunk_that_says_the_fact():
    assert resolve_by_index([QUESTION], lambda _: SENTENCES) == [("dome::1",)]


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        (None, "dome.md is not in the library"),
        (SENTENCES.head(1), "chunk 1 does not exist, there are 1"),
        (cut((0, 28), (65, 90)), "chunk 1 does not say"),
    ],
)
def test_a_reference_that_no_longer_holds_is_an_error_and_no_miss(chunks, said):
    with pytest.raises(GoldenSetInvalid, match=said):
        resolve_by_index([QUESTION], lambda _: chunks)


def test_any_chunk_that_holds_the_fact_satisfies_it_under_other_boundaries():
    (resolved,) = resolve_by_fact([QUESTION], {"dome.md": OVERLAPPING})
    assert resolved.chunks == (frozenset({"dome::0", "dome::1"}),)
    assert resolved.split == ()


def test_a_fact_cut_by_a_boundary_is_told_apart_from_a_miss():
    (resolved,) = resolve_by_fact([QUESTION], {"dome.md": cut((0, 50), (50, 90))})
    assert resolved.chunks == ()
    assert resolved.split == QUESTION.relevant


def test_a_fact_is_looked_for_in_its_own_document_alone():
    with pytest.raises(GoldenSetInvalid, match=r"dome\.md is not in the corpus"):
        resolve_by_fact([QUESTION], {"copy.md": SENTENCES})


def test_a_fact_that_the_document_no_longer_says_is_an_error():
    with pytest.raises(GoldenSetInvalid, match=r"dome\.md does not say 'behind the grey panel'"):
        resolve_by_fact([QUESTION], {"dome.md": cut((0, 28), (65, 90))})
