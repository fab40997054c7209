"""What vanished leaves by itself, and what waits for an operator's word."""

import os
import shutil

import pytest

from stemma.library import walk
from stemma.library.pruning import UnknownWorkspace, losses, prune


@pytest.fixture
def ingested(catalog):
    """A published file, another beside it, and a workspace of two."""
    for path in ("a.txt", "other.txt", "sales/1.txt", "sales/2.txt"):
        catalog.write(path)
    catalog.walk()
    catalog.publish("a.txt")
    return catalog


def pruned(catalog, **options):
    with catalog.pool.connection() as connection:
        return prune(connection, catalog.settings, now=catalog.now, **options)


def walk_thrice(catalog):
    return [catalog.walk() for _ in range(3)][-1]


def write_many(catalog, folder: str, n: int) -> None:
    for number in range(n):
        catalog.write(f"{folder}/{number}.txt")


def remove(catalog, folder: str, numbers: range) -> None:
    for number in numbers:
        (catalog.library / f"{folder}/{number}.txt").unlink()


def marked(catalog) -> list[str]:
    return catalog.paths("deletion_intent = 'vanished'")


def test_a_first_folder_that_became_wholly_empty_is_held_back_and_the_walk_says_so(ingested):
    shutil.rmtree(ingested.library / "sales")
    outcome = walk_thrice(ingested)
    assert marked(ingested) == []
    assert "Each of the 2 files of the folder sales is missing, as when a disk is away" in outcome.message
    assert "stemma prune --confirm" in outcome.message


def test_a_folder_that_is_emptied_of_its_only_file_is_held_back(ingested):
    ingested.write("solo/only.txt")
    ingested.walk()
    (ingested.library / "solo/only.txt").unlink()
    assert "The only file of the folder solo is missing" in walk_thrice(ingested).message
    assert marked(ingested) == []


def test_the_root_is_emptied_by_itself_whatever_the_folder_named_default_holds(ingested):
    ingested.write("default/stays.txt")
    ingested.walk()
    for name in ("a.txt", "other.txt"):
        (ingested.library / name).unlink()
    assert "2 files at the root of the library is missing" in walk_thrice(ingested).message
    assert marked(ingested) == []


def test_an_emptied_library_is_searchable_until_the_operator_confirms(ingested):
    for path in list(ingested.library.rglob("*.txt")):
        path.unlink()
    outcome = walk_thrice(ingested)
    assert f"The library {ingested.library} holds no file" in outcome.message
    assert ingested.paths("presence = 'missing' AND deletion_intent IS NULL") == ["a.txt", "other.txt", "sales/1.txt", "sales/2.txt"]
    assert len(pruned(ingested, confirm=True).marked) == 4


@pytest.mark.parametrize(("n_files", "n_removed", "gone"), [(40, 20, True), (40, 21, False), (15, 10, True), (15, 11, False)])
def test_more_than_the_share_and_the_count_of_a_workspace_is_held_back(ingested, n_files: int, n_removed: int, gone: bool):
    write_many(ingested, "many", n_files)
    ingested.walk()
    remove(ingested, "many", range(n_removed))
    outcome = walk_thrice(ingested)
    assert len(marked(ingested)) == (n_removed if gone else 0)
    assert (f"{n_removed} of {n_files} files of the workspace many are missing, more than 50%" in outcome.message) is not gone


def test_a_small_workspace_may_lose_all_but_one(ingested):
    (ingested.library / "sales/1.txt").unlink()
    walk_thrice(ingested)
    assert marked(ingested) == ["sales/1.txt"]


def test_what_is_held_back_in_one_workspace_holds_nothing_back_in_another(ingested):
    shutil.rmtree(ingested.library / "sales")
    (ingested.library / "other.txt").unlink()
    walk_thrice(ingested)
    assert marked(ingested) == ["other.txt"]


def test_what_is_held_back_goes_by_itself_once_the_files_are_back_in_part(ingested):
    shutil.rmtree(ingested.library / "sales")
    walk_thrice(ingested)
    ingested.write("sales/2.txt")
    walk_thrice(ingested)
    assert marked(ingested) == ["sales/1.txt"]


def test_a_renamed_workspace_folder_is_renamed_and_nothing_is_missing(ingested):
    write_many(ingested, "many", 12)
    ingested.walk()
    for number in range(12):
        ingested.publish(f"many/{number}.txt")
    before = {ingested.source_id(f"many/{number}.txt") for number in range(12)}
    (ingested.library / "many").rename(ingested.library / "all")
    outcome = ingested.walk()
    assert (outcome.n_renamed, outcome.n_vanished, outcome.notices) == (12, 0, ())
    assert {ingested.source_id(f"all/{number}.txt") for number in range(12)} == before


def test_a_library_that_goes_away_in_the_middle_of_a_walk_loses_nothing(ingested):
    ingested.walk(budget_s=0)  # one entry; the walk goes on
    ingested.library.rename(ingested.library.parent / "unmounted")
    ingested.library.mkdir()  # what is left is an empty mount point; here, of the same device
    for _ in range(12):
        ingested.walk(budget_s=0)
    assert marked(ingested) == []
    ingested.library.rmdir()
    (ingested.library.parent / "unmounted").rename(ingested.library)
    walk_thrice(ingested)
    assert ingested.paths("presence = 'missing'") == []


def test_a_missing_file_whose_folder_can_no_longer_be_listed_is_unknown_again(ingested, monkeypatch):
    ingested.write("sales/locked/x.txt")
    ingested.walk()
    (ingested.library / "sales/locked/x.txt").unlink()
    ingested.walk()
    real = os.scandir

    def refusing(path: bytes):
        if path.endswith(b"locked"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    with monkeypatch.context() as patched:
        patched.setattr(walk.os, "scandir", refusing)
        outcome = walk_thrice(ingested)
    assert "Cannot be listed: sales/locked (permission denied)" in outcome.message
    assert ingested.paths("presence = 'present' AND missing_since IS NULL AND deletion_intent IS NULL") == ingested.paths()
    walk_thrice(ingested)
    assert marked(ingested) == ["sales/locked/x.txt"]


def test_a_confirmed_prune_takes_what_is_missing_of_the_named_workspaces_alone(ingested):
    shutil.rmtree(ingested.library / "sales")
    (ingested.library / "a.txt").unlink()
    ingested.walk()
    assert len(pruned(ingested, confirm=True, workspaces=["sales"], dry_run=True).marked) == 2
    assert marked(ingested) == []
    assert len(pruned(ingested, confirm=True, workspaces=["sales"]).marked) == 2
    assert marked(ingested) == ["sales/1.txt", "sales/2.txt"]


def test_without_a_confirmation_nothing_early_or_held_back_is_taken(ingested):
    shutil.rmtree(ingested.library / "sales")
    (ingested.library / "a.txt").unlink()
    ingested.walk()
    found = pruned(ingested)
    assert found.marked == ()
    assert [(loss.workspace, loss.n_missing, loss.n_due, bool(loss.held)) for loss in found.losses] == [
        ("default", 1, 0, False), ("sales", 2, 0, True),
    ]  # fmt: skip


def test_a_workspace_that_does_not_exist_is_refused(ingested):
    with pytest.raises(UnknownWorkspace):
        pruned(ingested, confirm=True, workspaces=["sales", "slaes"])


def test_a_confirmed_prune_of_no_workspace_takes_nothing(ingested):
    shutil.rmtree(ingested.library / "sales")
    ingested.walk()
    assert pruned(ingested, confirm=True, workspaces=[]).marked == ()


def test_a_whole_library_has_no_losses(ingested):
    with ingested.pool.connection() as connection:
        assert losses(connection, ingested.settings, now=ingested.now) == ()
