"""`stemma cancel` and `stemma retry`, as they are typed."""

import json

import pytest
from typer.testing import CliRunner

from stemma.cli.main import app


@pytest.fixture
def stemma(corpus, monkeypatch):
    """A command on the corpus of the test; returns (exit code, standard output, standard error)."""
    monkeypatch.setenv("STEMMA_HOME", str(corpus.settings.home))
    monkeypatch.setenv("STEMMA_LIBRARY", str(corpus.settings.library))
    monkeypatch.setenv("STEMMA_POSTGRES_URL", corpus.settings.postgres_url)

    def run(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, arguments)
        return done.exit_code, done.stdout, done.stderr

    return run


def statuses(corpus) -> dict[str, str]:
    return dict(corpus.rows("SELECT source_path, status FROM sources ORDER BY 1"))


@pytest.fixture
def batch(corpus) -> str:
    """What is queued of three documents in two workspaces; the id of their batch."""
    for path in ("a/1.txt", "a/2.txt", "b/3.txt"):
        corpus.write(path, f"The text of {path}.")
    [queued] = corpus.look().batches
    return str(queued.batch_id)


def test_a_path_or_a_workspace_is_cancelled_and_comes_back_with_a_retry(stemma, corpus, batch):
    assert stemma("cancel", "a/1.txt") == (0, "1 document cancelled.\n", "")
    assert stemma("cancel", str(corpus.settings.library / "a"), "--json")[1] == '{"cancelled": 1}\n'
    assert statuses(corpus) == {"a/1.txt": "cancelled", "a/2.txt": "cancelled", "b/3.txt": "processing"}
    assert stemma("cancel", "--workspace", "b")[1] == "1 document cancelled.\n"
    assert stemma("retry", "--failed")[1] == "0 documents retried.\n"
    assert stemma("retry", "--cancelled", "--workspace", "a")[1] == "2 documents retried.\n"
    whole = str(corpus.settings.library)
    assert stemma("retry", whole)[1] == "1 document retried.\n"
    assert set(statuses(corpus).values()) == {"pending"}
    assert stemma("retry", whole)[1] == "0 documents retried.\n"


def test_a_batch_is_cancelled_by_the_id_that_its_run_carries(stemma, batch):
    assert json.loads(stemma("cancel", "--batch", "00000000-0000-4000-8000-000000000000", "--json")[1]) == {"cancelled": 0}
    assert json.loads(stemma("cancel", "--batch", batch, "--json")[1]) == {"cancelled": 3}


def test_what_failed_is_tried_again_with_all_its_attempts(stemma, corpus):
    corpus.write("bad.docx", b"PK\x03\x04 broken")
    corpus.ingest()
    assert stemma("retry", "--cancelled", "bad.docx")[1] == "0 documents retried.\n"
    assert stemma("retry", "bad.docx") == (0, "1 document retried.\n", "")
    assert statuses(corpus) == {"bad.docx": "pending"}


@pytest.mark.parametrize("arguments", [("cancel",), ("retry",), ("cancel", "--json")])
def test_nothing_named_is_wrong_usage_and_changes_nothing(stemma, corpus, batch, arguments):
    code, output, error = stemma(*arguments)
    assert (code, output) == (2, "") and "nothing_named" in error
    assert set(statuses(corpus).values()) == {"processing"}


def test_a_path_outside_the_library_is_refused(stemma):
    code, _, error = stemma("cancel", "/etc/hosts")
    assert code == 2 and error.startswith("outside_library: ")
