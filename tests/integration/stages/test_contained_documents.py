"""Documents inside other files: from the mail or archive in the library to published documents, and through everything that befalls it."""

import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from io import BytesIO
from threading import Barrier, Event, Thread

import pytest

from stemma.audit.audit import audit
from stemma.library import contained
from stemma.library.cancellation import Chosen, retry_documents
from stemma.library.deletion import delete_sources, mark_deleting, pending_deletions
from stemma.library.lineage import trace
from stemma.library.listing import contained_sources, source_of
from stemma.library.pruning import losses
from stemma.library.selection import Selection, delete_selected, select_sources
from stemma.stages.installation import wanted_fingerprints
from stemma.store.app_settings import set_overrides

WORDS = "The heron fishes at dawn in the reeds."


def mail(subject: str, *attachments: tuple[str, bytes | EmailMessage]) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["Subject"] = "ann@example.org", subject
    message.set_content(f"{subject}: see what is attached.")
    for name, content in attachments:
        if isinstance(content, EmailMessage):
            message.add_attachment(content, filename=name)
        else:
            message.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
    return message


def zipped(**parts: bytes) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


def status(corpus) -> dict[str, str]:
    """source_path -> status, or code of the failure."""
    return dict(corpus.rows("SELECT source_path, coalesce(error_code, status) FROM sources ORDER BY source_path"))


def identities(corpus) -> dict[str, object]:
    return dict(corpus.rows("SELECT source_path, source_id FROM sources"))


def calls(corpus) -> tuple[int, int]:
    return corpus.rows("SELECT sum(n_parsed), sum(n_embedded) FROM attempts")[0]


def read_zips(corpus, value: str) -> None:
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"ZIP_ARCHIVES": value})


def delete(corpus, path: str, intent: str) -> None:
    here, now = corpus.installation, datetime.now(UTC)
    with here.pool.connection() as connection:
        marked = mark_deleting(connection, [identities(corpus)[path]], intent, now=now)
    delete_sources(here.pool, marked, here.remove_sparse, library=corpus.settings.library)


@pytest.fixture
def inbox(corpus, shared):
    """A mail with a PDF, a Word file and a mail that holds a text again, taken in."""
    files = shared / "files"
    inner = mail("Inner", ("deep.txt", WORDS.encode()))
    report = (files / "pdf/k_movie-theater-booking-2024.pdf").read_bytes()
    letter = (files / "docx/u_tables-with-incomplete-rows.docx").read_bytes()
    corpus.outer = mail("Outer", ("report.pdf", report), ("letter.docx", letter), ("inner.eml", inner))
    corpus.write("post/outer.eml", corpus.outer.as_bytes())
    corpus.ingest()
    return corpus


ALL = {
    "post/outer.eml", "post/outer.eml//report.pdf", "post/outer.eml//letter.docx", "post/outer.eml//inner.eml",
    "post/outer.eml//inner.eml//deep.txt",
}  # fmt: skip


def test_attachments_become_documents_linked_both_ways(inbox):
    assert status(inbox) == dict.fromkeys(ALL, "ready")
    assert inbox.value("SELECT text FROM documents WHERE source_path = 'post/outer.eml//inner.eml//deep.txt'") == WORDS
    assert inbox.keyword_hits("heron")
    with inbox.installation.pool.connection() as connection:
        outer = source_of(connection, str(identities(inbox)["post/outer.eml"]))
        held = contained_sources(connection, outer.source_id)
    assert [row.source_path for row in held] == sorted(ALL - {"post/outer.eml", "post/outer.eml//inner.eml//deep.txt"})
    assert {row.container_id for row in held} == {outer.source_id} and outer.container_id is None
    assert {row.workspace for row in held} == {"post"} and all(row.size and row.media_type for row in held)
    hashes = inbox.rows("SELECT content_hash = member_hash FROM sources WHERE kind = 'contained'")
    assert hashes == [(True,)] * 4
    assert inbox.value("SELECT source FROM documents WHERE source_path LIKE '%%deep.txt'").endswith("outer.eml//inner.eml//deep.txt")


def test_an_unchanged_mail_is_neither_read_nor_listed_again(inbox):
    before = inbox.value("SELECT count(*) FROM attempts")
    written = inbox.rows("SELECT source_id, updated_at FROM sources ORDER BY source_id")
    assert inbox.ingest() == []
    assert inbox.value("SELECT count(*) FROM attempts") == before
    assert inbox.rows("SELECT source_id, updated_at FROM sources ORDER BY source_id") == written


def test_an_edit_of_the_mail_leaves_unchanged_attachments_alone_and_removes_those_that_are_gone(inbox):
    before = identities(inbox)
    edited = mail("Outer", ("report.pdf", inbox.outer.get_payload()[1].get_payload(decode=True)), ("new.txt", b"A new heron."))
    inbox.write("post/outer.eml", edited.as_bytes())
    inbox.ingest()
    inbox.look()
    after = identities(inbox)
    assert status(inbox) == dict.fromkeys(["post/outer.eml", "post/outer.eml//report.pdf", "post/outer.eml//new.txt"], "ready")
    assert all(after[path] == before[path] for path in after.keys() & before.keys())
    attempts = dict(inbox.rows("SELECT source_path, count(*) FROM attempts JOIN sources USING (source_id) GROUP BY source_path"))
    assert attempts == {"post/outer.eml": 2, "post/outer.eml//report.pdf": 1, "post/outer.eml//new.txt": 1}
    retired = {key for (key,) in inbox.rows("SELECT partition_key FROM retired_partitions")}
    assert retired == ALL - after.keys()


def test_a_renamed_mail_takes_its_attachments_along_without_a_call(inbox):
    before, called = identities(inbox), calls(inbox)
    library = inbox.settings.library
    (library / "moved").mkdir()
    (library / "post/outer.eml").rename(library / "moved/letter.eml")
    inbox.ingest()
    after = identities(inbox)
    assert after == {path.replace("post/outer.eml", "moved/letter.eml"): source_id for path, source_id in before.items()}
    assert calls(inbox) == called
    assert {path for (path,) in inbox.rows("SELECT source_path FROM documents")} == after.keys()
    assert {key for (key,) in inbox.rows("SELECT DISTINCT w.key FROM sources JOIN workspaces AS w USING (workspace_id)")} == {"moved"}


def test_a_mail_that_is_missing_keeps_its_attachments_and_one_that_has_vanished_takes_them_along(inbox):
    inbox.write("post/other.txt", "stays")
    inbox.ingest()
    hidden = inbox.settings.home / "outer.eml"
    (inbox.settings.library / "post/outer.eml").rename(hidden)
    inbox.look()
    assert inbox.value("SELECT count(*) FROM documents") == 6
    assert inbox.value("SELECT count(*) FROM sources WHERE presence = 'missing'") == 1  # the file's, which decides for all it holds
    inbox.ingest()
    assert status(inbox) == {"post/other.txt": "ready"}
    assert inbox.value("SELECT count(*) FROM documents") == 1 and not inbox.keyword_hits("heron")


def test_deleting_a_mail_deletes_what_lies_in_it_and_an_excluded_attachment_stays_away(inbox):
    delete(inbox, "post/outer.eml//report.pdf", "remove_file")  # there is no file of its own to remove
    assert (inbox.settings.library / "post/outer.eml").exists()
    assert inbox.ingest() == []
    assert status(inbox)["post/outer.eml//report.pdf"] == "cancelled"
    delete(inbox, "post/outer.eml", "keep_file")
    assert status(inbox) == {"post/outer.eml": "cancelled"}
    assert inbox.ingest() == [] and inbox.value("SELECT count(*) FROM documents") == 0
    inbox.write("post/outer.eml", mail("Anew", ("deep.txt", WORDS.encode())).as_bytes())
    inbox.ingest()
    assert status(inbox) == dict.fromkeys(["post/outer.eml", "post/outer.eml//deep.txt"], "ready")


@pytest.mark.parametrize(
    "selection",
    [
        pytest.param(Selection(workspaces=("post",)), marks=pytest.mark.slow),
        pytest.param(Selection(folders=("post",)), marks=pytest.mark.slow),
        Selection(paths=("post/outer.eml",)),
    ],
)
@pytest.mark.parametrize("intent", ["keep_file", "remove_file"])
def test_however_a_mail_is_selected_all_that_lies_in_it_goes_in_the_same_call(inbox, selection, intent):
    here = inbox.installation
    with here.pool.connection() as connection:
        selected = select_sources(connection, selection, remove_file=intent == "remove_file")
    report = delete_selected(here.pool, selected, here.remove_sparse, library=inbox.settings.library, intent=intent)
    gone = report.deleted if intent == "remove_file" else report.excluded
    assert "post/outer.eml" in {source.source_path for source in gone} and not report.pending and not report.failed
    assert status(inbox) == ({} if intent == "remove_file" else {"post/outer.eml": "cancelled"})
    assert (inbox.settings.library / "post/outer.eml").exists() == (intent == "keep_file")
    assert inbox.ingest() == [] and inbox.value("SELECT count(*) FROM documents") == 0 and not inbox.keyword_hits("heron")


def test_an_attachment_that_is_being_deleted_by_itself_goes_with_its_mail_after_all(inbox):
    here, now = inbox.installation, datetime.now(UTC)
    known = identities(inbox)
    with here.pool.connection() as connection:
        mark_deleting(connection, [known["post/outer.eml//report.pdf"]], "keep_file", now=now)
        assert mark_deleting(connection, [known["post/outer.eml"]], "remove_file", now=now) == [known["post/outer.eml"]]
        assert len(pending_deletions(connection)) == len(ALL)
    delete_sources(here.pool, [known["post/outer.eml"]], here.remove_sparse, library=inbox.settings.library)
    assert status(inbox) == {}


def test_a_library_with_mails_passes_the_audit_and_members_are_not_counted_as_files(inbox):
    inbox.write("post/other.txt", "stays")
    inbox.ingest()
    assert audit(inbox.installation, deep=True, now=datetime.now(UTC)).rows() == []
    (inbox.settings.library / "post/outer.eml").unlink()
    inbox.look()
    with inbox.installation.pool.connection() as connection:
        [loss] = losses(connection, inbox.settings, now=datetime.now(UTC))
    assert (loss.n_files, loss.n_missing) == (2, 1)


def test_lineage_of_an_attachment_says_in_which_file_it_lies(inbox):
    with inbox.installation.pool.connection() as connection:
        deep = trace(connection, str(identities(inbox)["post/outer.eml//inner.eml//deep.txt"])).compared(inbox.settings.library)
    assert deep.file is not None
    assert (deep.file.on_disk, deep.file.container_path) == ("contained", "post/outer.eml//inner.eml")


def test_a_member_that_cannot_be_taken_out_is_not_retried(corpus):
    read_zips(corpus, "true")
    corpus.write("bomb.zip", zipped(**{"bomb.txt": bytes(20_000_000)}))
    corpus.ingest()
    with corpus.installation.pool.connection() as connection:
        settings = corpus.installation.settings()
        wanted = wanted_fingerprints(settings)
        assert retry_documents(connection, Chosen(), settings, wanted, of=("failed",), now=datetime.now(UTC)) == ()
    assert status(corpus)["bomb.zip//bomb.txt"] == "unpacks_too_large"


def test_an_attachment_that_got_another_name_is_the_same_document(corpus):
    corpus.write("a.eml", mail("A", ("old.txt", WORDS.encode()), ("same.txt", b"one"), ("twin.txt", b"one")).as_bytes())
    corpus.ingest()
    before, called = identities(corpus), calls(corpus)
    corpus.write("a.eml", mail("A", ("new.txt", WORDS.encode()), ("same.txt", b"one"), ("twin.txt", b"one")).as_bytes())
    corpus.ingest()
    after = identities(corpus)
    assert after["a.eml//new.txt"] == before["a.eml//old.txt"] and len(after) == len(before)
    assert calls(corpus)[1] == called[1] + calls_of_listing(corpus)


def calls_of_listing(corpus) -> int:
    """Embeddings of the mail itself, whose text names its attachments."""
    return corpus.value(
        "SELECT n_embedded FROM attempts JOIN sources USING (source_id) WHERE source_path = 'a.eml' ORDER BY attempt_id DESC LIMIT 1"
    )


def test_archives_are_read_while_the_setting_is_on_and_leave_when_it_is_off(corpus):
    inner = zipped(**{"deep.txt": b"Deep heron."})
    corpus.write("a.zip", zipped(**{"docs__note.txt": WORDS.encode(), "inner.zip": inner, ".hidden": b"x"}))
    corpus.write("b.txt", "beside")
    corpus.ingest()
    assert status(corpus) == {"a.zip": "unsupported", "b.txt": "ready"}
    read_zips(corpus, "true")
    corpus.ingest()
    within = ["a.zip", "a.zip//docs/note.txt", "a.zip//inner.zip", "a.zip//inner.zip//deep.txt"]
    assert status(corpus) == dict.fromkeys([*within, "b.txt"], "ready")
    assert corpus.value("SELECT count(*) FROM attempts JOIN sources USING (source_id) WHERE source_path = 'b.txt'") == 1
    read_zips(corpus, "false")
    corpus.ingest()
    corpus.look()
    assert status(corpus) == {"a.zip": "unsupported", "b.txt": "ready"}
    assert corpus.ingest() == []
    read_zips(corpus, "true")
    corpus.ingest()
    assert status(corpus) == dict.fromkeys([*within, "b.txt"], "ready")


def test_hostile_archives_are_contained(corpus, shared):
    read_zips(corpus, "true")
    nested = zipped(**{"bottom.txt": b"bottom"})
    for level in range(5):
        nested = zipped(**{f"{level}.zip": nested})
    corpus.write("deep.zip", nested)
    corpus.write("bomb.zip", zipped(**{"bomb.txt": bytes(20_000_000), "fine.txt": b"fine"}))
    corpus.write("slip.zip", (shared / "cases/41-hostile-or-damaged-bundle/slip_dotdot.zip").read_bytes())
    corpus.write("cut.zip", zipped(**{"a.txt": b"a" * 1_000})[:60])
    corpus.ingest()
    found = status(corpus)
    assert found["deep.zip//4.zip//3.zip//2.zip"] == "ready"
    assert found["deep.zip//4.zip//3.zip//2.zip//1.zip"] == "nested_too_deeply"
    assert not any("0.zip" in path for path in found)
    assert (found["bomb.zip//bomb.txt"], found["bomb.zip//fine.txt"], found["cut.zip"]) == ("unpacks_too_large", "ready", "corrupt")
    assert found["slip.zip//%2E./escape.txt"] == "ready"
    assert not list(corpus.settings.library.parent.rglob("*escape*"))
    assert corpus.ingest() == []


def test_a_file_that_holds_too_much_says_so_and_takes_nothing(corpus, monkeypatch):
    monkeypatch.setattr(contained, "MAX_PER_FILE", 2)
    corpus.write("a.eml", mail("A", *((f"{n}.txt", b"x") for n in range(3))).as_bytes())
    corpus.ingest()
    assert status(corpus) == {"a.eml": "too_many_contained"}


def test_a_run_that_dies_before_its_members_are_recorded_is_made_up_for(corpus, monkeypatch):
    corpus.write("a.eml", mail("A", ("deep.txt", WORDS.encode())).as_bytes())
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)

    class Killed(Exception):
        pass

    def killed(*_args, **_kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("stemma.stages.documents.record", killed)
        with pytest.raises(Killed):
            corpus.work(run)
    corpus.runs.ended.add(run.run_id)
    corpus.rows("UPDATE sources SET retry_at = NULL RETURNING 1")
    for batch in corpus.look().batches:
        corpus.work(corpus.open(batch.batch_id))
    corpus.rows("UPDATE sources SET retry_at = NULL RETURNING 1")
    corpus.ingest()
    assert status(corpus) == {"a.eml": "ready", "a.eml//deep.txt": "ready"}


def test_an_attachment_of_a_mail_that_changed_since_is_taken_when_the_mail_was_listed_again(corpus):
    corpus.write("a.eml", mail("A", ("x.txt", b"one")).as_bytes())
    [batch] = corpus.look().batches
    corpus.runs.ended.add("first")
    corpus.work(corpus.open(batch.batch_id, "first"))
    [members] = corpus.look().batches
    corpus.write("a.eml", mail("A", ("x.txt", b"two")).as_bytes())
    corpus.work(corpus.open(members.batch_id, "second"))
    corpus.runs.ended.add("second")
    assert status(corpus)["a.eml//x.txt"] == "container_changed"
    corpus.ingest()
    assert status(corpus)["a.eml//x.txt"] == "ready"
    assert corpus.value("SELECT text FROM documents WHERE source_path = 'a.eml//x.txt'") == "two"


def test_a_mail_that_cannot_be_read_any_more_keeps_what_was_live_of_it_and_in_it(corpus):
    corpus.write("a.eml", mail("A", ("x.txt", b"one")).as_bytes())
    corpus.ingest()
    corpus.write("a.eml", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 damaged")
    corpus.ingest()
    found = status(corpus)
    assert found["a.eml"] != "ready" and found["a.eml//x.txt"] == "ready"
    assert corpus.value("SELECT count(*) FROM documents") == 2


def encrypted(archive: bytes) -> bytes:
    """The archive with its first member marked as encrypted, in both of its directories."""
    marked = bytearray(archive)
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        marked[marked.index(signature) + offset] |= 1
    return bytes(marked)


def test_encrypted_archives_and_members_are_listed_as_such_until_their_bytes_change(corpus):
    read_zips(corpus, "true")
    corpus.write("whole.zip", encrypted(zipped(**{"secret.txt": b"secret"})))
    corpus.write("partly.zip", encrypted(zipped(**{"secret.txt": b"secret", "open.txt": WORDS.encode()})))
    corpus.ingest()
    assert status(corpus) == {
        "whole.zip": "encrypted", "partly.zip": "ready", "partly.zip//open.txt": "ready", "partly.zip//secret.txt": "encrypted",
    }  # fmt: skip
    assert corpus.keyword_hits("heron") and corpus.ingest() == []
    corpus.write("whole.zip", zipped(**{"secret.txt": b"open now"}))
    corpus.write("partly.zip", zipped(**{"secret.txt": b"secret no more", "open.txt": WORDS.encode()}))
    corpus.ingest()
    assert set(status(corpus).values()) == {"ready"} and len(status(corpus)) == 5


def at_once(*works: Callable[[], object]) -> None:
    """Run all of these in threads of their own; fails when one fails, or waits for another for ever."""
    failures: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "they wait for each other"
    assert failures == []


def once_each(corpus) -> dict[str, str]:
    """source_path -> text of what is published; fails when a source or document is there twice."""
    paths = [path for (path,) in corpus.rows("SELECT source_path FROM sources")]
    texts = corpus.rows("SELECT source_path, text FROM documents")
    assert len(paths) == len(set(paths)) and len(texts) == len(dict(texts)) == len(paths)
    return dict(texts)


def test_a_run_that_lists_a_mail_anew_and_one_that_works_on_what_lay_in_it_do_not_disturb_each_other(corpus, monkeypatch):
    corpus.write("a.eml", mail("A", ("x.txt", b"one"), ("gone.txt", b"gone"), ("same.txt", WORDS.encode())).as_bytes())
    [batch] = corpus.look().batches
    corpus.work(corpus.open(batch.batch_id, "listing"))
    corpus.runs.ended.add("listing")
    [members] = corpus.look().batches
    corpus.write("a.eml", mail("A", ("x.txt", b"two"), ("new.txt", b"new"), ("same.txt", WORDS.encode())).as_bytes())
    [anew] = corpus.look().batches
    runs = [corpus.open(members.batch_id, "members"), corpus.open(anew.batch_id, "anew")]
    _meet_where_contents_are_recorded(monkeypatch)
    at_once(*(lambda run=run: corpus.work(run) for run in runs))
    corpus.runs.ended |= {"members", "anew"}
    corpus.ingest()
    texts = once_each(corpus)
    assert (texts["a.eml//x.txt"], texts["a.eml//new.txt"], texts["a.eml//same.txt"]) == ("two", "new", WORDS)
    assert set(status(corpus)) == {"a.eml", "a.eml//x.txt", "a.eml//new.txt", "a.eml//same.txt"}


def test_a_run_that_was_taken_for_dead_and_its_successor_list_a_mail_once(corpus, monkeypatch):
    corpus.write("a.eml", mail("A", *((f"{n}.txt", f"text {n}".encode()) for n in range(3))).as_bytes())
    [batch] = corpus.look().batches
    first = corpus.open(batch.batch_id, "first")

    def second() -> None:
        assert arrived.wait(60)  # the first has read its copy, which the second removes
        corpus.runs.ended.add("first")
        corpus.look()
        corpus.rows("UPDATE sources SET retry_at = NULL RETURNING 1")
        [again] = corpus.look().batches
        corpus.work(corpus.open(again.batch_id, "second"))

    arrived = _meet_where_contents_are_recorded(monkeypatch)
    at_once(lambda: corpus.work(first), second)
    corpus.runs.ended.add("second")
    corpus.ingest()
    assert len(once_each(corpus)) == 4


def _meet_where_contents_are_recorded(monkeypatch) -> Event:
    """Have two threads wait for each other before they record what lies in containers; returns what tells that one is there."""
    barrier, arrived, recorded = Barrier(2), Event(), contained.record_contents

    def met(*args, **options):
        arrived.set()
        if len(meetings) < 2:
            meetings.append(barrier.wait(40))
        return recorded(*args, **options)

    meetings: list[int] = []
    monkeypatch.setattr("stemma.stages.documents.record_contents", met)
    return arrived
