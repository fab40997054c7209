"""Every source is listed, and found by each of its ids."""

import pytest

from stemma.library.listing import SourceRow, SupersededDocument, UnknownDocument, count_by_status, list_sources, source_of


@pytest.fixture
def listed(catalog):
    """A ready, a failed and a pending file."""
    for path in ("a.txt", "sales/b.txt", "sales/c.pdf"):
        catalog.write(path)
    catalog.walk()
    catalog.publish("a.txt")
    catalog.run(
        "UPDATE sources SET status = 'failed', stage = 'parsing', error_code = 'encrypted', error_message = 'It is.' WHERE source_path = 'sales/b.txt'"
    )
    return catalog


def rows(catalog, **options) -> list[SourceRow]:
    with catalog.pool.connection() as connection:
        return list_sources(connection, **{"limit": 100} | options)[0]


def find(catalog, document: str) -> SourceRow:
    with catalog.pool.connection() as connection:
        return source_of(connection, document)


def test_every_source_is_listed_whatever_its_status(listed):
    assert [(row.source_path, row.workspace, row.status, row.error_code, row.n_chunks, row.title) for row in rows(listed)] == [
        ("a.txt", "default", "ready", None, 1, "Title of a.txt"),
        ("sales/b.txt", "sales", "failed", "encrypted", None, "b.txt"),
        ("sales/c.pdf", "sales", "pending", None, None, "c.pdf"),
    ]


def test_a_row_describes_the_file_and_the_last_attempt(listed):
    for number in (1, 2):
        listed.run(
            "INSERT INTO attempts (source_id, attempt_number, batch_id, state, finished_at, progress) VALUES (%s, %s, gen_random_uuid(), 'failed', now(), 0.5)",
            [listed.source_id("a.txt"), number],
        )
    [row] = [row for row in rows(listed) if row.source_path == "a.txt"]
    stat = (listed.library / "a.txt").stat()
    assert (row.size, row.file_type, row.attempt_number, row.progress) == (stat.st_size, "txt", 2, 0.5)
    assert row.file_modified_at is not None
    assert abs(row.file_modified_at.timestamp() - stat.st_mtime) < 0.001


@pytest.mark.parametrize(
    ("options", "paths"),
    [({"status": "failed"}, ["sales/b.txt"]), ({"workspace": "sales"}, ["sales/b.txt", "sales/c.pdf"]), ({"workspace": "sales", "status": "ready"}, [])],
)  # fmt: skip
def test_a_list_can_be_narrowed(listed, options: dict, paths: list[str]):
    assert [row.source_path for row in rows(listed, **options)] == paths


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_pages_hold_every_source_once(listed, limit: int):
    pages, after = [], None
    with listed.pool.connection() as connection:
        while True:
            page, after = list_sources(connection, after=after, limit=limit)
            pages.append([row.source_path for row in page])
            if after is None:
                break
    assert [path for page in pages for path in page] == ["a.txt", "sales/b.txt", "sales/c.pdf"]
    assert all(len(page) == limit for page in pages[:-1])


def test_odd_names_come_back_page_by_page(catalog):
    names = [
        "new\nline.txt",
        "tab\tname.txt",
        "日本語.txt",
        "Ünïcode.txt",
        "100%.txt",
        "quote'\".txt",
        "back\\slash.txt",
        "Zz.txt",
        "zz.txt",
    ]
    for name in names:
        catalog.write(name)
    catalog.walk()
    seen, after = [], None
    with catalog.pool.connection() as connection:
        while True:
            [row], after = list_sources(connection, after=after, limit=1)
            seen.append(row.source_path)
            if after is None:
                break
    assert sorted(seen) == sorted(names)


def test_sources_are_counted_by_status(listed):
    with listed.pool.connection() as connection:
        assert count_by_status(connection) == {"ready": 1, "failed": 1, "pending": 1}


def test_a_source_is_found_by_its_own_id_and_by_that_of_its_document(listed):
    source_id = listed.source_id("a.txt")
    [(doc_id,)] = listed.rows("SELECT doc_id FROM documents")
    assert find(listed, str(source_id)).source_id == find(listed, doc_id).source_id == source_id


def test_an_older_doc_id_names_the_present_one(listed):
    [(old,)] = listed.rows("SELECT doc_id FROM documents")
    listed.write("a.txt", "an edit")
    listed.walk()
    listed.publish("a.txt")
    [(present,)] = listed.rows("SELECT doc_id FROM documents")
    listed.run("UPDATE publications SET state = 'retired' WHERE doc_id = %s", [old])
    with pytest.raises(SupersededDocument) as error:
        find(listed, old)
    assert (error.value.code, error.value.present_doc_id) == ("superseded_document", present)


def test_a_version_that_was_put_back_is_the_present_one(listed):
    [(doc_id,)] = listed.rows("SELECT doc_id FROM documents")
    original = (listed.library / "a.txt").read_text()
    for content in ("an edit", original):
        listed.write("a.txt", content)
        listed.walk()
        listed.publish("a.txt")
    assert find(listed, doc_id).doc_id == doc_id


@pytest.mark.parametrize("document", ["0123456789abcdef", "5b0c1a52-0f4f-4a5e-9a3e-0d7b9f6f2f11", "", "no id", "x\x00y"])
def test_an_unknown_id_is_a_typed_error(listed, document: str):
    with pytest.raises(UnknownDocument, match="stemma documents"):
        find(listed, document)


def test_a_version_that_was_never_visible_is_unknown(listed):
    listed.run(
        "INSERT INTO publications (source_id, doc_id, source_path, run_id, state) VALUES (%s, 'ffffffffffffffff', 'a.txt', 'run', 'abandoned')",
        [listed.source_id("a.txt")],
    )
    with pytest.raises(UnknownDocument):
        find(listed, "ffffffffffffffff")
