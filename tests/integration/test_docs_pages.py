"""The generated pages say what the code says: a setting, error, command or column without an entry fails here."""

import importlib.util
from pathlib import Path

import pytest

from stemma.store.postgres import connect

PROJECT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("docs_generate", PROJECT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", ["settings.md", "errors.md", "cli.md", "schema.md"])
def test_the_page_is_what_make_docs_would_write(generate, database_url, page):
    with connect(database_url) as connection:
        written = generate.pages(connection)[page]
    assert (PROJECT / "docs" / page).read_text("utf-8") == written, "run `make docs`"
