"""What the words of `stemma delete` mean."""

import pytest
from typer.testing import CliRunner

from stemma.cli.delete import NamesFolder, NothingSelected, selection_of
from stemma.cli.ingest import OutsideLibrary
from stemma.cli.main import app
from stemma.library.selection import Selection


@pytest.fixture
def library(tmp_path, monkeypatch):
    library = tmp_path / "library"
    (library / "handbook").mkdir(parents=True)
    (library / "handbook/leave.md").touch()
    monkeypatch.chdir(tmp_path)
    return library


def test_paths_ids_folders_and_workspaces_are_told_apart(library):
    words = [
        "handbook/leave.md",
        "0123456789abcdef",
        "0f8fad5b-d9cb-469f-a165-70867728950e",
        "handbook/gone.md",
        str(library / "handbook/leave.md"),
    ]
    assert selection_of(words, ["library/handbook/"], ["sales"], library) == Selection(
        documents=("0123456789abcdef", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        paths=("handbook/leave.md", "handbook/gone.md", "handbook/leave.md"), folders=("handbook",), workspaces=("sales",),
    )  # fmt: skip


@pytest.mark.parametrize("word", ["", " ", "library", "."])
def test_nothing_and_the_whole_library_are_refused(library, monkeypatch, word):
    if word == ".":
        monkeypatch.chdir(library)
    for documents, folders in (([word], []), ([], [word])):
        with pytest.raises(NothingSelected):
            selection_of(documents, folders, [], library)


def test_no_word_at_all_is_refused(library):
    with pytest.raises(NothingSelected):
        selection_of([], [], [], library)


def test_a_folder_must_be_called_one(library):
    with pytest.raises(NamesFolder):
        selection_of(["handbook"], [], [], library)


def test_what_lies_elsewhere_is_refused(library, tmp_path):
    (tmp_path / "elsewhere.md").touch()
    with pytest.raises(OutsideLibrary):
        selection_of(["elsewhere.md"], [], [], library)


@pytest.mark.parametrize("library_option", ["", "  "])
def test_an_empty_library_is_wrong_usage(tmp_path, monkeypatch, library_option):
    monkeypatch.setenv("STEMMA_HOME", str(tmp_path / "home"))
    done = CliRunner().invoke(app, ["up", "--library", library_option])
    assert (done.exit_code, "LIBRARY cannot be empty" in done.output) == (2, True)
    assert not (tmp_path / "home").exists()
