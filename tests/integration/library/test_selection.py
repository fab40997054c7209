"""What a selection means: names, folders, workspaces; and that an empty one is nothing."""

from dataclasses import astuple
from uuid import uuid4

import pytest

from stemma.library.selection import Selection, delete_selected, select_sources

PATHS = ("a.txt", "sales/1.txt", "sales/old/2.txt", "sales/older/3.txt")


@pytest.fixture
def published(catalog):
    for path in PATHS:
        catalog.write(path)
    catalog.walk()
    for path in PATHS:
        catalog.publish(path)
    return catalog


def select(catalog, *, remove_file: bool = False, **parts):
    with catalog.pool.connection() as connection:
        return select_sources(connection, Selection(**{name: tuple(values) for name, values in parts.items()}), remove_file=remove_file)


def paths(selected) -> list[str]:
    return [source.source_path for source in selected.sources]


def delete(catalog, selected, intent="keep_file"):
    return delete_selected(catalog.pool, selected, lambda _: None, library=catalog.library, intent=intent, now=catalog.now)


def test_documents_are_named_by_source_and_by_version_and_paths(published):
    source_id = published.source_id("a.txt")
    [(doc_id,)] = published.rows("SELECT doc_id FROM documents WHERE source_id = %s", [source_id])
    for parts in (
        {"documents": [str(source_id)]},
        {"documents": [doc_id]},
        {"paths": ["a.txt"]},
        {"documents": [doc_id, str(source_id), doc_id]},
    ):
        selected = select(published, **parts)
        assert (paths(selected), selected.not_found) == (["a.txt"], ())


def test_a_folder_is_its_subtree_and_nothing_that_begins_alike(published):
    assert paths(select(published, folders=["sales/old"])) == ["sales/old/2.txt"]
    assert paths(select(published, folders=["/sales/"])) == ["sales/1.txt", "sales/old/2.txt", "sales/older/3.txt"]


def test_a_workspace_is_all_its_documents(published):
    assert paths(select(published, workspaces=["sales"])) == ["sales/1.txt", "sales/old/2.txt", "sales/older/3.txt"]
    assert paths(select(published, workspaces=["default"])) == ["a.txt"]


def test_the_parts_add_up_and_each_source_counts_once(published):
    assert paths(select(published, paths=["a.txt", "sales/1.txt"], folders=["sales"], workspaces=["sales"])) == list(PATHS)


@pytest.mark.parametrize("names", [[], [""], [" "], ["/"], ["."], ["%"], ["unknown"], ["*"], [str(uuid4())], ["0" * 16]])
@pytest.mark.parametrize("part", ["documents", "paths", "folders", "workspaces"])
def test_what_names_nothing_selects_nothing(published, part: str, names: list[str]):
    selected = select(published, **{part: names})
    assert (selected.sources, selected.not_found) == ((), tuple(names))
    report = delete(published, selected)
    assert astuple(report)[:-1] == ((), (), (), (), ())
    assert published.rows("SELECT count(*) FROM documents") == [(4,)]


def test_unknown_names_stop_nothing_and_come_back_in_the_order_asked(published):
    report = delete(published, select(published, documents=["zebra", str(published.source_id("a.txt")), "ant", "zebra"]))
    assert [source.source_path for source in report.excluded] == ["a.txt"]
    assert report.not_found == ("zebra", "ant")


def test_ten_thousand_unknown_ids_are_looked_up_at_once(published):
    selected = select(published, documents=[str(uuid4()) for _ in range(10_000)])
    assert (selected.sources, len(selected.not_found)) == ((), 10_000)


def test_a_second_deletion_finds_nothing_unless_the_file_is_to_go_now(published):
    delete(published, select(published, paths=["a.txt"]))
    assert select(published, paths=["a.txt"]).not_found == ("a.txt",)
    again = select(published, paths=["a.txt"], remove_file=True)
    assert [source.source_path for source in delete(published, again, "remove_file").deleted] == ["a.txt"]
    assert not (published.library / "a.txt").exists()


def test_a_workspace_goes_with_its_files_and_folders(published):
    report = delete(published, select(published, workspaces=["sales"], remove_file=True), "remove_file")
    assert [source.source_path for source in report.deleted] == ["sales/1.txt", "sales/old/2.txt", "sales/older/3.txt"]
    assert sorted(path.name for path in published.library.iterdir()) == ["a.txt"]
    assert published.rows("SELECT count(*) FROM folders") == [(0,)]


def test_twins_are_deleted_one_by_one(published):
    for path in ("sales/1.txt", "sales/twin.txt"):
        published.write(path, "the same bytes")
    published.walk()
    for path in ("sales/1.txt", "sales/twin.txt"):
        published.publish(path)
    delete(published, select(published, paths=["sales/twin.txt"]))
    assert published.rows("SELECT source_path FROM documents WHERE starts_with(source_path, 'sales/') ORDER BY 1")[0] == ("sales/1.txt",)
