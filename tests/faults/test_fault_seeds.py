"""Seeds of operations, kills and refusals: what is left is what an undisturbed run makes, and no reader saw anything else."""

import pytest
from fault_seed import Seed
from fault_stack import StackSeed

QUICK = [pytest.param(seed, marks=[pytest.mark.slow] if seed >= 306 else []) for seed in range(300, 500)]


@pytest.mark.parametrize("seed", QUICK)
def test_a_corpus_that_was_killed_again_and_again_is_that_of_an_undisturbed_run(seed, tmp_path, databases, bench):
    report = Seed(seed, tmp_path, databases(), databases(), bench).run()
    assert report.violations == [], "\n".join(report.story)
    assert report.n_reads > 0


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("seed", [7_000, 7_001])
def test_a_whole_installation_that_was_killed_again_and_again_ends_as_an_undisturbed_run(seed, tmp_path, databases, bench):
    report = StackSeed(seed, tmp_path, databases(), bench).run()
    assert report.violations == [], "\n".join(report.story)
    assert report.n_kills > 0
