"""Deleting leaves every store, step by step, and goes on where it was stopped."""

from uuid import UUID, uuid4

import pytest

from stemma.library import deletion
from stemma.library.deletion import delete_sources, mark_deleting, pending_deletions
from stemma.library.files import unlink_source
from stemma.store import locks


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def published(catalog):
    """Two published files, one of them in a folder of its own."""
    for path in ("folder/goes.txt", "stays.txt"):
        catalog.write(path)
    catalog.walk()
    for path in ("folder/goes.txt", "stays.txt"):
        catalog.publish(path)
    return catalog


def mark(catalog, path: str, intent: deletion.Intent) -> UUID:
    source_id = catalog.source_id(path)
    with catalog.pool.connection() as connection:
        assert mark_deleting(connection, [source_id], intent, now=catalog.now) == [source_id]
    return source_id


def delete(catalog, *source_ids: UUID, remove_sparse=lambda publications: None):
    return delete_sources(catalog.pool, source_ids, remove_sparse, library=catalog.library, now=catalog.now)


def pending(catalog) -> list[UUID]:
    with catalog.pool.connection() as connection:
        return pending_deletions(connection)


def remains(catalog, source_id: UUID) -> list[int]:
    """Rows that the source still has in the corpus."""
    return [
        catalog.rows(f"SELECT count(*) FROM {table} WHERE {condition}", [source_id])[0][0]
        for table, condition in [
            ("sources", "source_id = %s"),
            ("documents", "source_id = %s"),
            ("chunks", "publication_id IN (SELECT publication_id FROM publications WHERE source_id = %s)"),
            ("stage_state", "source_id = %s"),
        ]
    ]


def test_a_deleted_file_is_gone_from_every_store_and_from_the_disk(published):
    source_id = mark(published, "folder/goes.txt", "remove_file")
    [(publication_id,)] = published.rows("SELECT publication_id FROM publications WHERE source_id = %s", [source_id])
    removed: list[int] = []
    outcome = delete(published, source_id, remove_sparse=removed.extend)
    assert outcome.deleted == [source_id]
    assert removed == [publication_id]
    assert remains(published, source_id) == [0, 0, 0, 0]
    assert not (published.library / "folder").exists()
    assert published.rows("SELECT state FROM publications WHERE publication_id = %s", [publication_id]) == [("retired",)]
    assert published.rows("SELECT partition_key FROM retired_partitions") == [("folder/goes.txt",)]


def test_what_was_not_asked_for_is_left_alone(published):
    delete(published, mark(published, "folder/goes.txt", "remove_file"))
    assert (published.library / "stays.txt").exists()
    assert remains(published, published.source_id("stays.txt")) == [1, 1, 1, 1]


@pytest.mark.parametrize("source_ids", [[], [uuid4()]])
def test_nothing_is_deleted_for_no_or_an_unknown_source(published, source_ids: list[UUID]):
    outcome = delete(published, *source_ids, remove_sparse=lambda _: pytest.fail("no entry is to be removed"))
    assert (outcome.deleted, outcome.excluded, outcome.failed) == ([], [], {})
    assert published.rows("SELECT count(*) FROM documents") == [(2,)]


def test_a_source_that_is_not_marked_is_not_deleted(published):
    assert delete(published, published.source_id("stays.txt")).deleted == []
    assert published.rows("SELECT count(*) FROM documents") == [(2,)]


def test_marking_twice_keeps_the_first_intent(published):
    source_id = mark(published, "stays.txt", "keep_file")
    with published.pool.connection() as connection:
        assert mark_deleting(connection, [source_id], "remove_file", now=published.now) == []
    assert published.paths("deletion_intent = 'keep_file'") == ["stays.txt"]


def test_a_source_whose_file_is_back_is_not_marked_as_vanished(published):
    with published.pool.connection() as connection:
        assert mark_deleting(connection, [published.source_id("stays.txt")], "vanished", now=published.now) == []


def test_a_keyword_index_that_fails_leaves_the_source_marked_and_the_next_call_ends_it(published):
    source_id = mark(published, "folder/goes.txt", "remove_file")

    def fail(publications: list[int]) -> None:
        raise ConnectionError("the index is away")

    with pytest.raises(ConnectionError):
        delete(published, source_id, remove_sparse=fail)
    assert published.paths("deletion_step = 'marked'") == ["folder/goes.txt"]
    assert (published.library / "folder/goes.txt").exists()
    assert pending(published) == [source_id]
    assert delete(published, source_id).deleted == [source_id]
    assert pending(published) == []


@pytest.mark.parametrize("intent", ["keep_file", "remove_file", "vanished"])
@pytest.mark.parametrize(
    "statement", ["forget_coverage", "advance_deletions", "delete_documents", "retire_publications", "exclude_sources", "delete_sources"]
)
def test_a_deletion_that_is_killed_at_any_statement_ends_as_if_it_had_not_been(
    published, monkeypatch, intent: deletion.Intent, statement: str
):
    if intent == "vanished":
        published.run("UPDATE sources SET presence = 'missing', missing_since = now() WHERE source_path = 'folder/goes.txt'")
        (published.library / "folder/goes.txt").unlink()
    source_id = mark(published, "folder/goes.txt", intent)
    load_queries = deletion.load_queries

    class Deadly(dict):
        def __getitem__(self, name: str):
            if name == statement:
                raise Killed
            return super().__getitem__(name)

    with monkeypatch.context() as patched:
        patched.setattr(deletion, "load_queries", lambda topic: Deadly(load_queries(topic)))
        with pytest.raises(Killed):
            delete(published, source_id)
    outcome = delete(published, source_id)
    assert [*outcome.deleted, *outcome.excluded] == [source_id]
    assert remains(published, source_id) == [1 if intent == "keep_file" else 0, 0, 0, 0]
    assert (published.library / "folder/goes.txt").exists() is (intent == "keep_file")
    assert pending(published) == []


def test_a_deletion_that_is_killed_after_the_unlink_ends(published, monkeypatch):
    source_id = mark(published, "folder/goes.txt", "remove_file")

    def unlink_and_die(*arguments):
        unlink_source(*arguments)
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(deletion, "unlink_source", unlink_and_die)
        with pytest.raises(Killed):
            delete(published, source_id)
    assert delete(published, source_id).deleted == [source_id]


def test_a_file_that_was_changed_stays_and_becomes_a_new_source(published):
    source_id = mark(published, "folder/goes.txt", "remove_file")
    published.write("folder/goes.txt", "changed meanwhile")
    outcome = delete(published, source_id)
    assert (outcome.deleted, outcome.changed) == ([source_id], [source_id])
    assert published.walk().n_new == 1
    assert published.source_id("folder/goes.txt") != source_id


def test_an_edit_that_was_seen_but_not_ingested_is_not_removed(published):
    published.write("folder/goes.txt", "changed and seen")
    published.walk()
    assert delete(published, mark(published, "folder/goes.txt", "remove_file")).changed
    assert (published.library / "folder/goes.txt").exists()


def test_a_file_that_cannot_be_removed_leaves_the_source_listed_and_to_be_tried_again(published, monkeypatch):
    source_id = mark(published, "folder/goes.txt", "remove_file")

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(deletion, "unlink_source", refuse)
        outcome = delete(published, source_id)
    assert outcome.failed[source_id].detail == "The file could not be removed (Operation not permitted)"
    assert published.rows("SELECT error_code FROM sources WHERE source_id = %s", [source_id]) == [("file_not_removed",)]
    assert pending(published) == [source_id]
    assert delete(published, source_id).deleted == [source_id]


def test_a_file_that_cannot_be_removed_may_be_kept_after_all(published, monkeypatch):
    source_id = mark(published, "folder/goes.txt", "remove_file")

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(deletion, "unlink_source", refuse)
    delete(published, source_id)
    assert mark(published, "folder/goes.txt", "keep_file") == source_id
    assert delete(published, source_id).excluded == [source_id]
    assert published.paths("error_code IS NOT NULL OR deletion_intent IS NOT NULL") == []


def test_a_file_whose_disk_is_away_is_not_taken_for_removed(published):
    source_id = mark(published, "folder/goes.txt", "remove_file")
    published.run("UPDATE sources SET seen_device = seen_device + 1 WHERE source_id = %s", [source_id])
    (published.library / "folder/goes.txt").unlink()
    assert delete(published, source_id).failed[source_id].detail == "The file's disk is away"
    assert pending(published) == [source_id]


def test_a_kept_file_that_was_edited_before_its_deletion_is_not_brought_back_by_that(published):
    published.write("stays.txt", "an edit that nobody has seen yet")
    delete(published, mark(published, "stays.txt", "keep_file"))
    assert published.paths("excluded_hash = encode(sha256('an edit that nobody has seen yet'), 'hex')") == ["stays.txt"]


def test_a_failed_document_is_deleted_like_any_other(published):
    published.run("UPDATE sources SET status = 'failed', error_code = 'corrupt', error_message = 'x' WHERE source_path = 'stays.txt'")
    source_id = mark(published, "stays.txt", "keep_file")
    assert delete(published, source_id).excluded == [source_id]
    assert published.rows("SELECT status, error_code FROM sources WHERE source_id = %s", [source_id]) == [("cancelled", None)]


def test_what_another_process_has_ended_meanwhile_and_someone_took_again_is_left_alone(published, monkeypatch):
    source_id = mark(published, "stays.txt", "keep_file")
    real = deletion._present_hash

    def overtaken(library, pending_deletion):
        monkeypatch.setattr(deletion, "_present_hash", real)
        assert delete(published, source_id).excluded == [source_id]
        published.publish("stays.txt")
        published.run("UPDATE sources SET excluded_hash = NULL WHERE source_id = %s", [source_id])
        return real(library, pending_deletion)

    monkeypatch.setattr(deletion, "_present_hash", overtaken)
    assert delete(published, source_id).excluded == []
    assert remains(published, source_id) == [1, 1, 1, 1]


def test_folders_that_a_deletion_empties_leave_the_catalog(published):
    published.write("ws/deep/goes.txt")
    published.walk()
    delete(published, mark(published, "ws/deep/goes.txt", "remove_file"))
    assert published.rows("SELECT name FROM folders") == []


def test_a_kept_file_is_excluded_and_stays(published):
    source_id = mark(published, "folder/goes.txt", "keep_file")
    outcome = delete(published, source_id)
    assert outcome.excluded == [source_id]
    assert remains(published, source_id) == [1, 0, 0, 0]
    assert published.paths("excluded_hash = content_hash AND status = 'cancelled' AND deletion_intent IS NULL") == ["folder/goes.txt"]
    published.walk()
    assert published.paths() == ["folder/goes.txt", "stays.txt"]


def test_a_kept_file_that_was_never_hashed_is_excluded_by_its_bytes(published):
    published.write("new.txt", "new")
    published.walk()
    delete(published, mark(published, "new.txt", "keep_file"))
    assert published.paths("excluded_hash = encode(sha256('new'), 'hex')") == ["new.txt"]


def test_work_under_way_is_cancelled_and_its_publication_left_to_the_sweep(published):
    source_id = mark(published, "folder/goes.txt", "keep_file")
    published.run("INSERT INTO attempts (source_id, attempt_number, batch_id) VALUES (%s, 1, gen_random_uuid())", [source_id])
    published.run("INSERT INTO publications (source_id, source_path, run_id) VALUES (%s, '', 'run')", [source_id])
    delete(published, source_id)
    assert published.rows("SELECT state FROM attempts") == [("cancelled",)]
    assert published.rows("SELECT state FROM publications WHERE source_id = %s ORDER BY 1", [source_id]) == [("abandoned",), ("retired",)]


def test_vanished_files_go_all_the_way(published):
    (published.library / "folder/goes.txt").rename(published.library / "folder/ignored.tmp")
    published.write("folder/stays.txt")
    marked = [published.walk().marked for _ in range(2)][-1]
    assert delete(published, *marked).deleted == list(marked)
    assert published.paths() == ["folder/stays.txt", "stays.txt"]


def test_a_path_that_comes_back_after_its_deletion_is_a_new_source_with_a_live_partition(published):
    source_id = mark(published, "folder/goes.txt", "remove_file")
    delete(published, source_id)
    published.write("folder/goes.txt")
    published.walk()
    assert published.source_id("folder/goes.txt") != source_id
    assert published.rows("SELECT count(*) FROM retired_partitions") == [(0,)]


def test_more_sources_than_one_transaction_locks_are_deleted(catalog, monkeypatch):
    monkeypatch.setattr(locks, "SOURCES_PER_TRANSACTION", 3)
    for n in range(10):
        catalog.write(f"{n}.txt")
    catalog.walk()
    with catalog.pool.connection() as connection:
        marked = mark_deleting(
            connection, [row[0] for row in connection.execute("SELECT source_id FROM sources")], "remove_file", now=catalog.now
        )
    assert len(marked) == 10
    assert len(delete(catalog, *marked).deleted) == 10
    assert list(catalog.library.iterdir()) == []
