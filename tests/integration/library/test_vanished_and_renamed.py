"""What complete walks decide: renames, missing files, and files that have vanished for good."""

import os
import shutil
from pathlib import Path

import pytest

from stemma.library import renames, walk


@pytest.fixture
def ingested(catalog):
    """A catalog of one published file beside others that keep the workspace alive."""
    catalog.write("a.txt", "needle-rename content.\n")
    catalog.write("other.txt")
    catalog.walk()
    for path in ("a.txt", "other.txt"):
        catalog.publish(path)
    return catalog


def test_a_renamed_file_keeps_its_source(ingested):
    source_id = ingested.source_id("a.txt")
    (ingested.library / "a.txt").rename(ingested.library / "b.txt")
    outcome = ingested.walk()
    assert (outcome.n_renamed, outcome.n_new, outcome.n_vanished) == (1, 0, 0)
    assert ingested.source_id("b.txt") == source_id
    assert ingested.paths() == ["b.txt", "other.txt"]
    assert [(r.source_id, r.old_path, r.new_path, r.retired_partition) for r in outcome.renamed] == [(source_id, "a.txt", "b.txt", "a.txt")]


def test_the_published_document_keeps_its_path_until_the_renamed_one_is_published(ingested):
    (ingested.library / "a.txt").rename(ingested.library / "b.txt")
    ingested.walk()
    assert ingested.rows("SELECT source_path FROM documents WHERE source_id = %s", [ingested.source_id("b.txt")]) == [("a.txt",)]


def test_a_rename_moves_the_source_to_its_new_workspace_and_folder(ingested):
    (ingested.library / "sales/deep").mkdir(parents=True)
    (ingested.library / "a.txt").rename(ingested.library / "sales/deep/A.MD")
    ingested.walk()
    assert ingested.rows(
        "SELECT w.key, f.name, partition_key, file_type, disk_path FROM sources JOIN workspaces w USING (workspace_id) JOIN folders f USING (folder_id)"
    ) == [("sales", "deep", "sales/deep/A.MD", "md", b"sales/deep/A.MD")]


def test_a_renamed_file_needs_no_new_hash_of_a_run(ingested):
    (ingested.library / "a.txt").rename(ingested.library / "b.txt")
    ingested.walk()
    assert ingested.paths(
        "(seen_size, seen_mtime_ns, seen_inode, seen_device) = (hashed_size, hashed_mtime_ns, hashed_inode, hashed_device)"
    ) == [
        "b.txt",
        "other.txt",
    ]


def test_a_partition_is_retired_by_a_rename_and_comes_back_with_its_path(ingested):
    (ingested.library / "a.txt").rename(ingested.library / "b.txt")
    ingested.walk()
    assert ingested.rows("SELECT partition_key FROM retired_partitions") == [("a.txt",)]
    (ingested.library / "b.txt").rename(ingested.library / "a.txt")
    ingested.walk()
    assert ingested.rows("SELECT partition_key FROM retired_partitions") == [("b.txt",)]


def test_a_copy_is_a_source_of_its_own(ingested):
    (ingested.library / "c").mkdir()
    shutil.copy2(ingested.library / "a.txt", ingested.library / "c/a.txt")
    outcome = ingested.walk()
    assert (outcome.n_new, outcome.n_renamed) == (1, 0)
    assert ingested.paths() == ["a.txt", "c/a.txt", "other.txt"]


def test_a_moved_folder_moves_its_sources(ingested):
    for n in range(3):
        ingested.write(f"c/{n}.txt")
    ingested.walk()
    for n in range(3):
        ingested.publish(f"c/{n}.txt")
    before = {ingested.source_id(f"c/{n}.txt") for n in range(3)}
    (ingested.library / "c").rename(ingested.library / "d")
    assert ingested.walk().n_renamed == 3
    assert {ingested.source_id(f"d/{n}.txt") for n in range(3)} == before


def test_swapped_contents_are_two_edits(ingested):
    before = {path: ingested.source_id(path) for path in ("a.txt", "other.txt")}
    (ingested.library / "a.txt").rename(ingested.library / "x")
    (ingested.library / "other.txt").rename(ingested.library / "a.txt")
    (ingested.library / "x").rename(ingested.library / "other.txt")
    outcome = ingested.walk()
    assert (outcome.n_changed, outcome.n_renamed, outcome.n_new, outcome.n_vanished) == (2, 0, 0, 0)
    assert {path: ingested.source_id(path) for path in ("a.txt", "other.txt")} == before


def test_moved_twins_are_told_apart_by_their_inodes(ingested):
    for path in ("dup/one.txt", "dup/two.txt"):
        ingested.write(path, "the same bytes")
    ingested.walk()
    for path in ("dup/one.txt", "dup/two.txt"):
        ingested.publish(path)
    before = [ingested.source_id(path) for path in ("dup/one.txt", "dup/two.txt")]
    (ingested.library / "dup").rename(ingested.library / "moved")
    assert ingested.walk().n_renamed == 2
    assert [ingested.source_id(path) for path in ("moved/one.txt", "moved/two.txt")] == before


def test_a_doubtful_rename_is_none(ingested):
    content = (ingested.library / "a.txt").read_bytes()
    (ingested.library / "b.txt").write_bytes(content)
    (ingested.library / "c.txt").write_bytes(content)
    (ingested.library / "a.txt").unlink()
    outcome = ingested.walk()
    assert (outcome.n_renamed, outcome.n_new, outcome.n_vanished) == (0, 2, 1)


def test_a_file_of_the_same_size_and_other_bytes_is_no_rename(ingested):
    (ingested.library / "a.txt").unlink()
    ingested.write("b.txt", "needle-rename CONTENT.\n")
    assert ingested.walk().n_renamed == 0


def test_a_file_that_was_missed_before_is_still_recognised(ingested):
    source_id = ingested.source_id("a.txt")
    (ingested.library / "a.txt").rename(ingested.library.parent / "away.txt")
    ingested.walk()
    (ingested.library.parent / "away.txt").rename(ingested.library / "back.txt")
    assert ingested.walk().n_renamed == 1
    assert ingested.rows("SELECT source_id, presence, missing_since, missing_scans FROM sources WHERE source_path = 'back.txt'") == [
        (source_id, "present", None, 0)
    ]


def test_an_excluded_file_stays_excluded_under_another_name(ingested):
    ingested.run("UPDATE sources SET excluded_hash = content_hash, status = 'cancelled' WHERE source_path = 'a.txt'")
    (ingested.library / "a.txt").rename(ingested.library / "b.txt")
    ingested.walk()
    assert ingested.paths("excluded_hash = content_hash") == ["b.txt"]


def test_hashing_for_renames_stops_with_the_budget_and_goes_on_where_it_stopped(ingested, monkeypatch):
    hashed: list[str] = []
    real = renames.hash_source

    def counted(library: Path, disk_path: bytes, source_path: str):
        hashed.append(source_path)
        return real(library, disk_path, source_path)

    monkeypatch.setattr(renames, "hash_source", counted)
    (ingested.library / "a.txt").rename(ingested.library / "z.txt")
    for name in ("x.txt", "y.txt"):
        ingested.write(name, "needle-rename CONTENT.\n")
    outcomes = [ingested.walk(budget_s=0)]
    while not outcomes[-1].complete:
        outcomes.append(ingested.walk(budget_s=0))
    assert outcomes[-1].n_renamed == 1
    assert hashed == ["x.txt", "y.txt", "z.txt"]
    assert ingested.paths("rename_hash IS NOT NULL") == []


def test_a_removed_file_is_missing_then_marked_and_stays_listed(ingested):
    (ingested.library / "a.txt").unlink()
    first = ingested.walk()
    assert (first.n_vanished, first.marked) == (1, ())
    assert ingested.paths("presence = 'missing' AND status = 'ready' AND deletion_intent IS NULL") == ["a.txt"]
    second = ingested.walk()
    assert (second.n_vanished, second.marked) == (0, (ingested.source_id("a.txt"),))
    assert ingested.paths("deletion_intent = 'vanished' AND deletion_step = 'marked' AND status = 'ready'") == ["a.txt"]


def test_two_walks_within_the_grace_mark_nothing(ingested):
    ingested.settings = ingested.settings.model_copy(update={"prune_grace_s": 100.0})  # walks are a minute apart
    (ingested.library / "a.txt").unlink()
    ingested.walk()
    assert ingested.walk().marked == ()
    assert len(ingested.walk().marked) == 1


def test_a_file_that_comes_back_is_present_again(ingested):
    (ingested.library / "a.txt").rename(ingested.library.parent / "away")
    ingested.walk()
    (ingested.library.parent / "away").rename(ingested.library / "a.txt")
    ingested.walk()
    assert ingested.rows("SELECT presence, missing_since, missing_scans FROM sources WHERE source_path = 'a.txt'") == [("present", None, 0)]


def test_an_absent_library_decides_nothing(ingested):
    ingested.library.rename(ingested.library.parent / "unmounted")
    outcome = ingested.walk()
    assert not outcome.complete
    assert "cannot be listed" in outcome.message
    assert ingested.paths("presence = 'present'") == ["a.txt", "other.txt"]


def test_what_lies_in_a_folder_that_cannot_be_listed_is_unknown(ingested, monkeypatch):
    ingested.write("ws/locked/x.txt")
    ingested.write("ws/open/y.txt")
    ingested.walk()
    real = os.scandir

    def refusing(path: bytes):
        if path.endswith(b"locked"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    # Permissions do not stop root, as whom the tests may run; tests/unit/library/test_walk.py meets a real refusal.
    monkeypatch.setattr(walk.os, "scandir", refusing)
    (ingested.library / "ws/open/y.txt").unlink()
    outcome = ingested.walk()
    assert outcome.unlistable == ("ws/locked",)
    assert ingested.paths("presence = 'missing'") == ["ws/open/y.txt"]


def test_a_file_whose_disk_is_away_is_not_missing(ingested):
    ingested.write("mount/x.txt")
    ingested.write("mount2/y.txt")
    ingested.walk()
    ingested.run("UPDATE sources SET seen_device = seen_device + 1 WHERE source_path = 'mount/x.txt'")
    (ingested.library / "mount/x.txt").unlink()
    (ingested.library / "mount2/y.txt").unlink()
    ingested.walk()
    assert ingested.paths("presence = 'missing'") == ["mount2/y.txt"]


def test_a_file_below_a_folder_that_became_a_link_is_missing(ingested, tmp_path: Path):
    ingested.write("ws/folder/x.txt")
    ingested.walk()
    (ingested.library / "ws/folder").rename(tmp_path / "elsewhere")
    (ingested.library / "ws/folder").symlink_to(tmp_path / "elsewhere")
    ingested.walk()
    assert ingested.paths("presence = 'missing'") == ["ws/folder/x.txt"]


def test_a_walk_leaves_a_source_that_is_being_deleted_alone(ingested):
    ingested.run("UPDATE sources SET deletion_intent = 'remove_file', deletion_step = 'marked' WHERE source_path = 'a.txt'")
    before = ingested.rows("SELECT * FROM sources WHERE source_path = 'a.txt'")
    ingested.walk()
    (ingested.library / "a.txt").unlink()
    ingested.walk()
    assert ingested.rows("SELECT * FROM sources WHERE source_path = 'a.txt'") == before
