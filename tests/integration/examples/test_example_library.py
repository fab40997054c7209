"""The example library is what its README and its questions say, read by the real parsers."""

from pathlib import Path

import pytest

from evals.golden_set import load_golden_set, resolve_by_index
from evals.pinned_chunks import pinned_chunks
from stemma.errors import CorruptDocument
from stemma.parsing.document import ParsedDocument
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import detect_format
from stemma.parsing.parse import parse_file

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
LIBRARY = EXAMPLES / "library"
FILES = sorted(path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*") if path.is_file())
DAMAGED = "observatory/archive/logbook-1998-damaged.docx"
GOLDEN = EXAMPLES.parent / "evals" / "golden" / "examples.jsonl"
QUESTIONS = load_golden_set(GOLDEN)


def parse(source_path: str) -> ParsedDocument:
    path = LIBRARY / source_path
    format = detect_format(path.read_bytes()[:8192], path.suffix)
    assert format, f"no parser reads {source_path}"
    return parse_file(path, source_path=source_path, format=format, options=ParsingOptions())


@pytest.fixture(scope="module")
def documents() -> dict[str, ParsedDocument]:
    return {source_path: parse(source_path) for source_path in FILES if source_path != DAMAGED}


def test_every_sound_file_has_text(documents):
    assert [source_path for source_path, document in documents.items() if not document.text] == []


def test_the_damaged_file_fails_legibly():
    with pytest.raises(CorruptDocument) as failure:
        parse(DAMAGED)
    assert "cut off" in failure.value.message


def test_every_golden_reference_resolves_to_the_chunk_that_says_the_fact():
    answers = resolve_by_index(QUESTIONS, pinned_chunks(LIBRARY))
    assert [
        question.query for question, chunks in zip(QUESTIONS, answers, strict=True) if bool(chunks) == (question.kind == "negative")
    ] == []


def test_there_is_a_question_for_every_sound_file(documents):
    assert {reference.rel_source for question in QUESTIONS for reference in question.relevant} == set(documents)


def test_the_golden_set_has_questions_of_every_kind():
    assert len(QUESTIONS) >= 60
    assert {question.kind for question in QUESTIONS} == {"single", "multi", "table", "ocr", "non_english", "negative"}


def test_the_readme_lists_every_file():
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    assert [source_path for source_path in FILES if f"| `{source_path}` |" not in readme] == []


def test_the_first_example_is_answered_on_page_two(documents):
    document = documents["observatory/instruments/cameras/ccd-calibration.pdf"]
    answer = document.text.index("cooled to -15 °C")
    assert [page.number for page in document.pages if page.char_start <= answer < page.char_end] == [2]


def test_text_that_is_not_utf_8_keeps_its_letters(documents):
    recipe = documents["kitchen/desserts/creme-brulee.txt"]
    assert recipe.text.startswith("Crème brûlée à la vanille")
    assert recipe.warning == "encoding_guessed"


def test_the_library_stays_small():
    assert sum((LIBRARY / source_path).stat().st_size for source_path in FILES) < 1_500_000
