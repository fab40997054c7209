"""What a path on the command line means: a place in the library, or a refusal."""

import pytest

from stemma.cli.ingest import NoSuchFile, OutsideLibrary, source_path_of


@pytest.fixture
def library(tmp_path, monkeypatch):
    library = tmp_path / "library"
    (library / "handbook").mkdir(parents=True)
    (library / "handbook" / "leave.md").write_text("leave")
    (library / ".notes").write_text("hidden")
    (tmp_path / "elsewhere.md").write_text("elsewhere")
    (tmp_path / "linked").symlink_to(library)
    monkeypatch.chdir(tmp_path)
    return library


@pytest.mark.parametrize(
    ("path", "source_path"),
    [
        ("library/handbook/leave.md", "handbook/leave.md"),
        ("handbook/leave.md", "handbook/leave.md"),
        ("library/handbook/", "handbook"),
        ("library/handbook/../handbook/leave.md", "handbook/leave.md"),
        ("library", ""),
        ("library/.notes", ".notes"),
        ("linked/handbook", "handbook"),
    ],
)
def test_a_path_is_read_from_here_and_from_the_library(library, path, source_path):
    assert source_path_of(path, library) == source_path


def test_an_absolute_path_is_taken_as_it_is(library):
    assert source_path_of(str(library / "handbook"), library) == "handbook"


def test_a_decomposed_name_means_the_composed_source_path(library):
    (library / "Bu\u0308ro.md").write_text("office")
    assert source_path_of(str(library / "Bu\u0308ro.md"), library) == "B\u00fcro.md"


@pytest.mark.parametrize("path", ["elsewhere.md", "library/../elsewhere.md", "/etc/hosts", "..", "library-of-another"])
def test_what_lies_outside_the_library_is_refused(library, path):
    with pytest.raises(OutsideLibrary):
        source_path_of(path, library)


def test_a_name_in_the_library_that_is_nothing_is_refused(library):
    with pytest.raises(NoSuchFile):
        source_path_of("library/handbook/gone.md", library)
