"""Seeds of operations, kills and refusals: what is left is what an undisturbed run makes, and no reader saw anything else."""

import pytest
from fault_seed import Seed


@pytest.mark.parametrize("seed", range(11))
def test_a_corpus_that_was_killed_again_and_again_is_that_of_an_undisturbed_run(seed, tmp_path, databases, bench):
    report = Seed(seed, tmp_path, databases(), databases(), bench).run()
    assert report.violations == [], "\n".join(report.story)
    assert report.n_reads > 0
