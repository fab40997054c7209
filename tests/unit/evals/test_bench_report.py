"""What benchmarks print and keep."""

import json

from evals.bench.generated_library import write_documents
from evals.bench.orchestration import table as orchestration_table
from evals.bench.parsing import table
from evals.bench.report import Spread, machine_facts, save


def test_a_spread_shows_median_and_range():
    assert str(Spread((3.0, 1.0, 2.0))) == "2 (1-3)"


def test_a_result_is_kept_with_its_method_and_machine(tmp_path):
    path = save("reading", method="Two\n  lines.", machine=machine_facts("polars"), measured={"pages": 3}, folder=tmp_path / "new")
    kept = json.loads(path.read_text("utf-8"))
    assert (path.name, kept["method"], kept["measured"]) == ("reading.json", "Two lines.", {"pages": 3})
    assert kept["machine"].keys() >= {"cpu", "cores", "load_1m_before", "versions", "commit"}


def test_the_ratio_is_of_medians_of_the_same_run():
    figures = {"stemma": [8.0, 10.0, 12.0], "docling": [4.0, 5.0, 6.0], "pypdf": [20.0, 20.0, 20.0]}
    measured = {"readers": {name: {"pages_per_s": values, "largest_peak_mb": [1.0]} for name, values in figures.items()}}
    rows = [line.split(" | ") for line in table(measured).splitlines()[2:]]
    assert [row[2] for row in rows] == ["1.00", "2.00", "0.50"]


def test_every_generated_document_has_a_text_of_its_own_and_paths_in_the_order_of_numbers(tmp_path):
    paths = write_documents(tmp_path, range(0, 300, 3))
    assert paths == sorted(paths)
    assert len({(tmp_path / path).read_text() for path in paths}) == 100
    edited = write_documents(tmp_path, [3], says="wades")
    assert edited == [paths[1]]
    assert "wades" in (tmp_path / paths[1]).read_text()


def test_every_figure_of_the_orchestration_bench_is_a_row():
    rows = orchestration_table({"edits": {"runs": 1, "steps_s": {"chunks": 0.25}}, "cpu": None}).splitlines()[2:]
    assert rows == ["| edits runs | 1 |", "| edits steps_s chunks | 0.25 |", "| cpu | None |"]
