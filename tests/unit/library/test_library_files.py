"""Files are read, vouched for and removed without leaving the library."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from stemma.errors import MovedWhileReading
from stemma.library.files import FileStat, is_racy, open_source, unlink_source
from stemma.library.spool import hash_source

NOW_NS = 1_700_000_000_000_000_000


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "library/folder").mkdir(parents=True)
    (tmp_path / "library/folder/a.txt").write_text("needle")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.txt").write_text("secret")
    return tmp_path / "library"


def stat_of(path: Path) -> FileStat:
    return FileStat.of(path.stat())


@pytest.mark.parametrize(
    ("age_s", "racy"), [(0.0, True), (1.9, True), (-1.9, True), (2.1, False), (3600.0, False), (-3600.0, False)]
)  # fmt: skip
def test_a_file_is_racy_within_two_seconds_of_its_mtime(age_s: float, racy: bool):
    assert is_racy(NOW_NS - int(age_s * 1e9), NOW_NS) is racy


def test_a_hash_is_that_of_the_bytes_and_comes_with_their_stat(library: Path):
    assert hash_source(library, b"folder/a.txt", "folder/a.txt") == (sha256(b"needle").hexdigest(), stat_of(library / "folder/a.txt"))


def test_a_file_that_became_a_link_is_not_followed(library: Path):
    (library / "folder/a.txt").unlink()
    (library / "folder/a.txt").symlink_to("../../outside/a.txt")
    with pytest.raises(MovedWhileReading):
        hash_source(library, b"folder/a.txt", "folder/a.txt")


def test_a_folder_that_became_a_link_is_not_followed(library: Path):
    (library / "folder/a.txt").unlink()
    (library / "folder").rmdir()
    (library / "folder").symlink_to("../outside")
    with pytest.raises(MovedWhileReading):
        hash_source(library, b"folder/a.txt", "folder/a.txt")


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(library: Path):
    (library / "folder/a.txt").unlink()
    os.mkfifo(library / "folder/a.txt")
    with pytest.raises(MovedWhileReading), open_source(library, b"folder/a.txt", "folder/a.txt"):
        pass


def test_an_error_of_the_reader_is_not_taken_for_one_of_the_file(library: Path):
    with pytest.raises(OSError, match="disk is full"), open_source(library, b"folder/a.txt", "folder/a.txt"):
        raise OSError(28, "the spool's disk is full")


def test_a_file_that_is_still_the_recorded_one_is_removed_with_the_folder_it_empties(library: Path):
    assert unlink_source(library, b"folder/a.txt", stat_of(library / "folder/a.txt"))
    assert list(library.iterdir()) == []


def test_a_folder_that_holds_something_else_stays(library: Path):
    (library / "folder/b.txt").touch()
    unlink_source(library, b"folder/a.txt", stat_of(library / "folder/a.txt"))
    assert [path.name for path in (library / "folder").iterdir()] == ["b.txt"]


def test_a_file_that_was_written_to_stays(library: Path):
    recorded = stat_of(library / "folder/a.txt")
    (library / "folder/a.txt").write_text("another needle")
    assert not unlink_source(library, b"folder/a.txt", recorded)
    assert (library / "folder/a.txt").exists()


def test_a_file_behind_a_link_is_not_removed(library: Path):
    (library / "link").symlink_to("../outside")
    unlink_source(library, b"link/a.txt", stat_of(library / "../outside/a.txt"))
    assert (library / "../outside/a.txt").exists()


def test_removing_a_file_twice_is_removing_it_once(library: Path):
    recorded = stat_of(library / "folder/a.txt")
    assert [unlink_source(library, b"folder/a.txt", recorded) for _ in range(2)] == [True, True]


def test_a_file_of_which_nothing_is_recorded_stays(library: Path):
    assert not unlink_source(library, b"folder/a.txt")
    assert (library / "folder/a.txt").exists()
