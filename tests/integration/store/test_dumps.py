"""Dumps before a migration: taken and read back or nothing is migrated, and put back by one exchange."""

import psycopg
import pytest

from stemma.store import dumps as module
from stemma.store.dumps import DatabaseInUse, NoSnapshot, SnapshotFailed, dumps, put_back, upgrade_safely
from stemma.store.migrations import Migration, applied_migrations, shipped_migrations
from stemma.store.postgres import connect


@pytest.fixture
def later(monkeypatch):
    """A release with one migration more, which loses what a person may want back."""
    shipped = [
        *shipped_migrations(),
        Migration("900_loses.sql", "UPDATE documents SET title = 'lost'; ALTER TABLE workspaces ADD COLUMN note text;"),
    ]
    monkeypatch.setattr(module.migrations, "shipped_migrations", lambda: shipped)


def test_documents_are_dumped_before_they_are_touched_and_come_back(corpus, later):
    url, home = corpus.settings.postgres_url, corpus.settings.home
    corpus.write("a.md", "# A title\n\nA text.")
    corpus.ingest()
    before = corpus.rows("SELECT doc_id, title, text FROM documents")
    vectors = corpus.value("SELECT vector_table FROM embedding_indexes")
    with connect(url) as connection:
        assert upgrade_safely(connection, url, home) == ["900_loses.sql"]
        assert upgrade_safely(connection, url, home) == []
    [dump] = dumps(home)
    newest = shipped_migrations()[-1].name[:3]
    assert (dump.path.name, dump.before, dump.upgraded_to) == (f"{newest}-900.dump", newest, "900")
    (home / "backups" / "001-002.dump.partial").write_bytes(b"half")
    assert len(dumps(home)) == 1
    with pytest.raises(DatabaseInUse):
        put_back(url, home, dump.path.name)
    with pytest.raises(NoSnapshot):
        put_back(url, home, "001-002.dump.partial")
    corpus.installation.close()
    put_back(url, home, dump.path.name)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT doc_id, title, text FROM documents").fetchall() == before
        assert connection.execute(f"SELECT count(*) FROM {vectors}").fetchone() == (1,)
        assert "900_loses.sql" not in applied_migrations(connection)


def test_nothing_is_migrated_when_the_dump_fails_and_none_is_taken_without_documents(corpus, later, monkeypatch):
    url, home = corpus.settings.postgres_url, corpus.settings.home
    corpus.write("a.md", "# A title\n\nA text.")
    corpus.ingest()
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _folder: type("Usage", (), {"free": 1_000})())
    with connect(url) as connection:
        with pytest.raises(SnapshotFailed, match="1,000 are free"):
            upgrade_safely(connection, url, home)
        assert "900_loses.sql" not in applied_migrations(connection)
        connection.execute("DELETE FROM documents")
        connection.commit()
        assert upgrade_safely(connection, url, home) == ["900_loses.sql"]
    assert dumps(home) == []
