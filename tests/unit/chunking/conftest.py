"""What the tests of chunking share: documents built by hand, and the shared checks that know nothing of this code."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def oracles(shared: Path) -> ModuleType:
    """`check_chunks` and `grapheme_cut` of the shared cases."""
    spec = importlib.util.spec_from_file_location("case_oracles", shared / "cases" / "oracles.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
