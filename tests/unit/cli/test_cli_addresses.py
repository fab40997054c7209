"""What is said of an address at which no service can be."""

import pytest

from stemma.cli.addresses import service_problem
from stemma.settings import load_settings


@pytest.mark.parametrize("host", ["999.1.1.1", "no.such.host.invalid", "::zz"])
def test_a_host_that_is_none_is_a_problem_and_no_crash(host):
    problem = service_problem(load_settings(service_host=host))
    assert problem is not None and problem.startswith("it does not answer")
