"""`stemma reembed` and `stemma db index`, as they are typed."""

import json

import pytest
from small_models import random_model
from typer.testing import CliRunner

from stemma.cli.main import app


@pytest.fixture
def stemma(corpus, monkeypatch):
    """A command on the corpus of the test; returns (exit code, standard output, standard error)."""
    monkeypatch.setenv("STEMMA_HOME", str(corpus.settings.home))
    monkeypatch.setenv("STEMMA_LIBRARY", str(corpus.settings.library))
    monkeypatch.setenv("STEMMA_POSTGRES_URL", corpus.settings.postgres_url)
    corpus.write("a.txt", "An apple a day.")
    corpus.write("b.txt", "Bananas ripen in a bag.")
    corpus.ingest()

    def run(*arguments: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, arguments)
        return done.exit_code, done.stdout, done.stderr

    return run


def test_a_relative_folder_is_reembedded_by_rolled_back_and_dropped(stemma, corpus, tmp_path, monkeypatch):
    location = random_model(tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    code, output, _ = stemma("reembed", "--model", "other", "--dry-run")
    assert code == 0 and "0 of 2 chunks" in output and "2 of them for the model" in output
    code, output, _ = stemma("reembed", "--model", "other")
    assert code == 0 and "Searches read the vectors of other" in output
    assert corpus.installation.settings().embedding_model == location
    shown = json.loads(stemma("db", "index", "--json")[1])
    assert [(index["model"], index["state"], index["n_covered"]) for index in shown["embedding"]] == [
        ("other", "active", 2), ("minilm", "retired", 2),
    ]  # fmt: skip
    rolled_back = json.loads(stemma("reembed", "--rollback", "--json")[1])
    assert (rolled_back["model"], rolled_back["switched"], rolled_back["n_embedded"]) == ("minilm", True, 0)
    assert json.loads(stemma("reembed", "--drop-retired", "--json")[1]) == {"dropped": []}
    corpus.rows("UPDATE embedding_indexes SET retired_at = retired_at - interval '61 seconds' RETURNING 1")
    assert [index["model"] for index in json.loads(stemma("reembed", "--drop-retired", "--json")[1])["dropped"]] == ["other"]


@pytest.mark.parametrize("options", [("--rollback", "--abandon"), ("--drop-retired", "--dry-run"), ("--model", "minilm", "--rollback")])
def test_what_contradicts_itself_is_wrong_usage(stemma, options):
    code, _, error = stemma("reembed", *options)
    assert code == 2 and error.startswith("contradictory_options: ")


def test_a_model_that_is_not_there_changes_nothing(stemma, corpus):
    code, _, error = stemma("reembed", "--model", "/no/such/folder")
    assert code == 1 and error.startswith("embedding_model_unavailable: ")
    assert corpus.value("SELECT count(*) FROM embedding_indexes") == 1


def test_the_indexes_are_shown_and_made_again(stemma, corpus):
    code, output, _ = stemma("db", "index")
    assert code == 0 and "m=16, ef_construction=64" in output and "minilm" in output and "tantivy" in output
    rebuilt = json.loads(stemma("db", "index", "--rebuild", "vectors", "--m", "8", "--ef-construction", "32", "--json")[1])
    assert rebuilt["embedding"][0]["hnsw"] == "m=8, ef_construction=32"
    rebuilt = json.loads(stemma("db", "index", "--rebuild", "keywords", "--json")[1])
    assert rebuilt["rebuilt"]["n_documents"] == 2
    assert [index["state"] for index in rebuilt["sparse"]] == ["active", "retired"]
    code, _, error = stemma("db", "index", "--m", "1000")
    assert code == 2 and error.startswith("invalid_hnsw: ")
