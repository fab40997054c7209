"""The walk meets every entry once, in one order, and opens none."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stemma.library.files import FileStat
from stemma.library.walk import Entry, Found, LibraryUnavailable, Skipped, Unlistable, walk

NOBODY = 65534


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    return folder


@pytest.fixture
def open_library() -> Iterator[Path]:
    """A library that another user reaches too."""
    folder = Path(tempfile.mkdtemp(prefix="stemma-walk-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@contextmanager
def unprivileged() -> Iterator[None]:
    """As a user for whom permissions count: they mean nothing to root, as whom the tests may run."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def write(library: Path, *paths: str | bytes) -> None:
    for path in paths:
        target = library / os.fsdecode(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(os.fsencode(path))


def found(entries: Iterator[Entry]) -> list[str]:
    return [entry.source_path for entry in entries if isinstance(entry, Found)]


def skipped(library: Path) -> dict[str, str]:
    return {entry.source_path: entry.reason for entry in walk(library) if isinstance(entry, Skipped)}


def unlistable(library: Path) -> dict[str, str]:
    return {entry.source_path: entry.reason for entry in walk(library) if isinstance(entry, Unlistable)}


def opened_while(action: Callable[[], object]) -> list[str]:
    """What is opened meanwhile; listing a folder is another event."""
    opened: list[str] = []
    watching = True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event == "open":
            opened.append(str(arguments[0]))

    sys.addaudithook(hook)  # it stays for the process's life, silent
    action()
    watching = False
    return opened


def test_an_odd_tree_is_met_as_expected(shared: Path, tmp_path: Path):
    script, tree = tmp_path / "build_odd_tree.py", tmp_path / "odd"
    # The tree was made for a product whose reserved folder has another name.
    original = (shared / "files/build_odd_tree.py").read_text("utf-8")
    script.write_text(original.replace("varagity", "stemma").replace("VARAGITY", "STEMMA"), "utf-8")
    subprocess.run([sys.executable, script, tree], check=True, capture_output=True)
    expected = json.loads((tmp_path / "odd.expected.json").read_text("utf-8"))
    met = {os.fsdecode(entry.disk_path): entry.source_path for entry in walk(tree) if isinstance(entry, Found)}
    assert {entry["path"] for entry in expected if entry["should_ingest"]} - met.keys() == set()
    # An archive is met like any file: that nothing reads it is a parser's answer, shown with a code.
    assert {entry["path"] for entry in expected if entry["should_ingest"] is False} & met.keys() == {"archive.tar.gz"}
    # What the tree leaves open: hidden names, backups and links are skipped; a missing extension or permission is no reason.
    undecided = {entry["path"] for entry in expected if entry["should_ingest"] is None}
    assert undecided & met.keys() == {"same/report", "noextension", "unreadable.txt"}
    assert len(set(met.values())) == len(met)


def test_every_skipped_entry_says_why(library: Path, tmp_path: Path):
    (tmp_path / "outside.txt").write_text("secret")
    litter = [
        "~$lock.docx",
        ".DS_Store",
        "Thumbs.db",
        "draft.txt~",
        "draft.txt.swp",
        "x.crdownload",
        "#draft#",
        "Desktop.ini",
        "a.tmp",
        "b.part",
    ]
    write(library, "plain.txt", ".hidden.txt", ".git/config", *litter)
    links = {"inside": "plain.txt", "up": "..", "outside": "../outside.txt", "broken": "nowhere", "round": "round"}
    for link, target in links.items():
        (library / link).symlink_to(target)
    os.mkfifo(library / "pipe.txt")
    assert skipped(library) == dict.fromkeys(litter, "leftover") | {
        ".hidden.txt": "hidden", ".git": "hidden", "inside": "link_inside", "up": "link_to_folder", "outside": "link_outside",
        "broken": "link_broken", "round": "link_broken", "pipe.txt": "special_file",
    }  # fmt: skip
    assert found(walk(library)) == ["plain.txt"]


@pytest.mark.parametrize("name", ["stemma-exports", "STEMMA-EXPORTS", "ſtemma-exportſ"])
def test_the_exports_folder_is_reserved_at_the_root_in_any_case(library: Path, name: str):
    write(library, f"{name}/bundle.zip")
    assert skipped(library) == {name: "reserved"}


def test_a_folder_named_like_the_exports_is_ordinary_elsewhere(library: Path):
    write(library, "nested/stemma-exports/ok.txt", "stemma-exports2/ok.txt")
    assert found(walk(library)) == ["nested/stemma-exports/ok.txt", "stemma-exports2/ok.txt"]


def test_folders_in_which_stemma_writes_are_skipped_whole_by_whatever_path_they_are_given(library: Path, tmp_path: Path):
    write(library, "a.txt", "state/logs/up.log", "state2/b.txt", "deep/lake/chunks.parquet")
    (tmp_path / "other name").symlink_to(library)
    own = [tmp_path / "other name" / "state", library / "deep" / "lake", library / "absent"]
    entries = list(walk(library, own_folders=own))
    assert found(iter(entries)) == ["a.txt", "state2/b.txt"]
    assert {entry.source_path: entry.reason for entry in entries if isinstance(entry, Skipped)} == {
        "state": "own_files", "deep/lake": "own_files",
    }  # fmt: skip


def test_a_link_to_a_folder_above_does_not_make_the_walk_endless(library: Path):
    write(library, "a/b/c.txt")
    (library / "a/b/up").symlink_to("../..")
    assert found(walk(library)) == ["a/b/c.txt"]


def test_a_library_that_is_itself_a_link_is_walked(library: Path, tmp_path: Path):
    write(library, "a.txt")
    (tmp_path / "link").symlink_to(library)
    assert found(walk(tmp_path / "link")) == ["a.txt"]


def test_both_spellings_of_a_name_are_met_whatever_was_made_first(library: Path):
    spellings = ["é.txt", unicodedata.normalize("NFD", "é.txt")]
    for order in (spellings, spellings[::-1]):
        folder = library / f"first {len(order[0])}"
        write(folder, *order)
    assert sorted(found(walk(library / "first 5"))) == sorted(found(walk(library / "first 6"))) == ["e%CC%81.txt", "é.txt"]


def test_litter_takes_no_name_from_a_document(library: Path):
    write(library, unicodedata.normalize("NFD", "é.txt"), unicodedata.normalize("NFC", "é.txt~"))
    assert found(walk(library)) == ["é.txt"]


def test_a_walk_opens_no_file(library: Path):
    write(library, "a.txt", "b/c.txt", "b/d/e.txt")
    (library / "link").symlink_to("a.txt")
    assert opened_while(lambda: list(walk(library))) == []


def test_the_watch_for_opens_sees_an_open(library: Path):
    write(library, "a.txt")
    assert opened_while((library / "a.txt").read_bytes) == [str(library / "a.txt")]


def test_siblings_come_by_the_bytes_of_their_names_and_folders_before_their_contents(library: Path):
    write(library, "b/x.txt", "b.txt", "a.txt", "B.txt", "é.txt", "b-c/y.txt")
    assert [entry.source_path for entry in walk(library)] == ["B.txt", "a.txt", "b", "b/x.txt", "b-c", "b-c/y.txt", "b.txt", "é.txt"]


def test_a_walk_goes_on_behind_any_entry(library: Path):
    write(library, "a.txt", "b/1.txt", "b/2/x.txt", "b/2/y.txt", "b/3.txt", "c/.hidden", "d/z.txt", b"bad\xff/f.txt")
    whole = list(walk(library))
    for position, entry in enumerate(whole):
        assert list(walk(library, after=entry.disk_path)) == whole[position + 1 :]


@pytest.mark.parametrize("gone", ["b/2/x.txt", "b/2", "b"])
def test_a_walk_goes_on_when_the_place_where_it_stopped_is_gone(library: Path, gone: str):
    write(library, "a.txt", "b/1.txt", "b/2/x.txt", "c.txt")
    target = library / gone
    target.unlink() if target.is_file() else shutil.rmtree(target)
    assert found(walk(library, after=b"b/2/x.txt")) == ["c.txt"]


def test_a_folder_that_vanishes_during_the_walk_is_left_out(library: Path):
    write(library, "a.txt", "b/x.txt", "c.txt")
    entries = walk(library)
    next(entries)
    shutil.rmtree(library / "b")
    assert [entry.source_path for entry in entries] == ["c.txt"]


def test_a_folder_that_may_not_be_listed_is_recorded_and_the_walk_goes_on(open_library: Path):
    write(open_library, "a/x.txt", "b/y.txt")
    (open_library / "a").chmod(0)
    with unprivileged():
        assert unlistable(open_library) == {"a": "permission_denied"}
        assert found(walk(open_library)) == ["b/y.txt"]


def test_a_folder_whose_files_may_not_be_looked_at_is_unknown(open_library: Path):
    write(open_library, "a/x.txt", "b/y.txt")
    (open_library / "a").chmod(0o444)
    with unprivileged():
        assert unlistable(open_library) == {"a": "permission_denied"}
        assert found(walk(open_library)) == ["b/y.txt"]


def test_a_folder_beyond_the_longest_path_of_the_system_is_recorded(library: Path):
    here = os.open(library, os.O_DIRECTORY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        here, above = os.open("d" * 200, os.O_DIRECTORY, dir_fd=here), here
        os.close(above)
    os.close(here)
    assert list(unlistable(library).values()) == ["path_too_long"]
    subprocess.run(["rm", "-rf", library], check=True)  # Python's rmtree does not reach it


@pytest.mark.parametrize("path", ["absent", "file.txt"])
def test_a_library_that_cannot_be_listed_is_an_error(tmp_path: Path, path: str):
    (tmp_path / "file.txt").touch()
    with pytest.raises(LibraryUnavailable, match="mounted"):
        list(walk(tmp_path / path))


def test_a_time_that_no_bigint_holds_is_cut(library: Path):
    write(library, "a.txt")
    far = 2**63 + 10**18
    os.utime(library / "a.txt", ns=(far, far))
    if (library / "a.txt").stat().st_mtime_ns < far:
        pytest.skip("this file system cannot hold times after 2262")
    assert [entry.stat.mtime_ns for entry in walk(library) if isinstance(entry, Found)] == [2**63 - 1]


def test_a_stat_is_that_of_the_file(library: Path):
    write(library, "a.txt")
    [entry] = walk(library)
    assert isinstance(entry, Found)
    assert entry.stat == FileStat.of((library / "a.txt").stat())
