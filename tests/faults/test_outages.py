"""What is away, full, read-only or out of time: the work says why it stopped, nothing that was live is lost, and it goes on afterwards."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from fault_state import read_state
from ingested_corpus import Corpus

from stemma.cli.postgres import stop_server
from stemma.embedding.models import MINILM, embedding_spec
from stemma.lexical.errors import LexicalIndexUnavailable
from stemma.library.reconcile import reconcile
from stemma.library.spool import SpoolUnavailable
from stemma.settings import load_settings
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.stages.keyword_rebuild import rebuild_keyword_index
from stemma.store import embedded, migrations
from stemma.store.app_settings import set_overrides
from stemma.store.embedding_indexes import ensure_embedding_index
from stemma.store.embedding_switch import retire_building
from stemma.store.lake import LakeUnavailable
from stemma.store.postgres import StoreUnavailable, autocommitted, connect

TEXT = "# Herons\n\nA heron stands in the shallow water."
OTHER = "# Herons\n\nA heron flies over the deep water."


def run_to_its_end(corpus) -> None:
    """One look and its run; what the run raises is raised, and its process counts as gone."""
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    corpus.runs.ended.add(run.run_id)
    corpus.work(run)


def texts(corpus) -> list[str]:
    return [text for (text,) in corpus.rows("SELECT text FROM documents ORDER BY source_path")]


def converges(corpus, *wanted: str) -> None:
    for _ in range(3):
        corpus.ingest()
    assert texts(corpus) == list(wanted)
    with corpus.installation.pool.connection() as connection:
        assert read_state(connection, corpus.settings.home).broken == []


@pytest.mark.parametrize(
    ("point", "refusal", "error"),
    [
        ("spool.copied", "full", SpoolUnavailable),
        ("lake.before_rename", "full", LakeUnavailable),
        ("lake.before_rename", "read_only", LakeUnavailable),
        ("keywords.before_commit", "full", LexicalIndexUnavailable),
        ("keywords.before_commit", "read_only", LexicalIndexUnavailable),
    ],
)
def test_a_disk_that_refuses_is_named_and_the_work_goes_on_when_it_takes_again(corpus, failing, point, refusal, error):
    corpus.write("a.md", TEXT)
    corpus.ingest()
    corpus.write("a.md", OTHER)
    failing.arm(point, refusal)
    with pytest.raises(error, match=r"No space left|Read-only"):
        run_to_its_end(corpus)
    assert texts(corpus) == [TEXT], "what was live stays live"
    converges(corpus, OTHER)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[Path, str], None]]:
    """Mounts a small memory disk, and unmounts it; skipped where that is not allowed."""
    mounted: list[Path] = []

    def mount(folder: Path, size: str) -> None:
        if os.geteuid() != 0 or shutil.which("mount") is None:
            pytest.skip("needs root and mount(8) for a small disk")
        folder.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"needs a mount, which is refused here: {done.stderr.strip()}")
        mounted.append(folder)

    yield mount
    for folder in reversed(mounted):
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize(("folder", "size", "error"), [("lake", "64k", LakeUnavailable), ("spool", "64k", SpoolUnavailable)])
def test_a_disk_that_is_really_full_is_named_and_what_is_freed_is_used(corpus, small_disk, folder, size, error):
    disk = corpus.settings.home / folder
    small_disk(disk, size)
    (disk / "ballast").write_bytes(os.urandom(60 * 1024))
    corpus.write("a.md", TEXT + " " + " ".join(f"heron {n}" for n in range(3_000)))
    with pytest.raises(error, match="No space left"):
        run_to_its_end(corpus)
    (disk / "ballast").unlink(missing_ok=True)
    corpus.write("a.md", TEXT)
    converges(corpus, TEXT)


def test_a_keyword_disk_that_is_really_full_loses_no_entry_that_was_committed(corpus, small_disk):
    disk = corpus.settings.home / "bm25"
    small_disk(disk, "300k")
    corpus.write("a.md", TEXT)
    corpus.ingest()
    ballast = disk / "ballast"
    with pytest.raises(OSError, match="No space left"):
        ballast.write_bytes(os.urandom(1_000_000))
    corpus.write("a.md", OTHER)
    with pytest.raises(LexicalIndexUnavailable):
        run_to_its_end(corpus)
    assert texts(corpus) == [TEXT]
    ballast.unlink()
    converges(corpus, OTHER)


@pytest.fixture
def restarting(tmp_path: Path) -> Iterator[Corpus]:
    """A corpus on a PostgreSQL of its own, which the test may stop and start."""
    home, library = tmp_path / "home", tmp_path / "library"
    library.mkdir()
    with connect(embedded.start_embedded(home)) as connection:
        migrations.upgrade(connection)
    settings = load_settings(home=home, library=library, prune_grace_s=0, retry_backoff_s=0, retire_after_s=0.02, query_timeout_s=0.01)
    installation = Installation(settings)
    yield Corpus(settings, installation)
    installation.close()
    stop_server(home)


@pytest.mark.slow
@pytest.mark.parametrize("held_at", ["embeddings.before_store", "keywords.committed", "publish.before_commit"])
def test_a_postgres_that_restarts_in_the_middle_of_a_run_costs_the_run_alone(restarting, failing, held_at):
    corpus, home = restarting, restarting.settings.home
    corpus.write("a.md", TEXT)
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    corpus.runs.ended.add(run.run_id)
    raised: list[Exception] = []

    def work() -> None:
        try:
            corpus.work(run)
        except (psycopg.OperationalError, StoreUnavailable) as error:
            raised.append(error)

    with failing.paused(held_at, work):
        embedded.stop_embedded(home, mode="immediate")
        embedded.start_embedded(home)
    assert texts(corpus) == ([TEXT] if not raised else [])
    converges(corpus, TEXT)


def look_at(corpus, now: datetime):
    here = corpus.installation
    settings = here.settings()
    return reconcile(here.pool, settings, wanted_fingerprints(settings), corpus.runs, remove_sparse=here.remove_sparse, now=now)


def test_a_clock_that_jumps_back_stops_no_walk(corpus):
    now = datetime.now(UTC)
    look_at(corpus, now)
    corpus.write("a.md", TEXT)
    assert look_at(corpus, now - timedelta(hours=3)).batches, "the library is looked at, whatever the clock said before"


def test_a_clock_that_jumps_back_leaves_no_dead_run_waiting(corpus):
    now = datetime.now(UTC)
    corpus.write("a.md", TEXT)
    [batch] = look_at(corpus, now).batches
    corpus.open(batch.batch_id)  # its process is gone, and nobody says so
    look_at(corpus, now - timedelta(hours=3))
    assert corpus.rows("SELECT state FROM attempts ORDER BY attempt_number LIMIT 1") == [("interrupted",)]


def test_a_clock_that_jumps_back_lets_a_lost_request_be_repeated(corpus):
    now = datetime.now(UTC)
    corpus.write("a.md", TEXT)
    [first] = look_at(corpus, now).batches
    [again] = look_at(corpus, now - timedelta(hours=3)).batches
    assert again.batch_id == first.batch_id


def test_looks_that_are_made_at_once_take_no_clock_for_set_back(corpus):
    now = datetime.now(UTC)
    corpus.write("a.md", TEXT)
    look_at(corpus, now)
    beside = look_at(corpus, now - timedelta(seconds=20))
    assert not beside.batches
    assert "clock" not in beside.message


def test_a_clock_that_jumps_back_ends_the_wait_for_a_retry(corpus):
    later = datetime.now(UTC) + timedelta(hours=3)
    corpus.write("a.md", TEXT)
    [batch] = look_at(corpus, later).batches
    corpus.runs.ended.add(corpus.open(batch.batch_id).run_id)
    with corpus.installation.pool.connection() as connection:
        set_overrides(connection, corpus.settings, {"RETRY_BACKOFF_S": "60"})
    assert not look_at(corpus, later).batches, "it waits"
    assert look_at(corpus, datetime.now(UTC)).batches


WAITED_FOR = {
    "sources": ("retry_at", "missing_since", "hashed_at"),
    "publications": ("superseded_at",),
    "retired_partitions": ("retired_at",),
    "embedding_indexes": ("retired_at",),
    "sparse_indexes": ("retired_at",),
    "stage_results": ("last_used_at",),
    "embedding_cache": ("last_used_at",),
}
"""The times that some wait, grace or limit is counted from."""


def test_after_a_clock_was_set_back_nothing_is_counted_from_the_future(corpus):
    now = datetime.now(UTC)
    later = now + timedelta(hours=3)
    corpus.write("a.md", TEXT)
    corpus.ingest()
    with autocommitted(corpus.installation.pool) as connection:
        ensure_embedding_index(connection, replace(embedding_spec(MINILM), revision="another"))
        retire_building(connection, corpus.settings, now=later)
    rebuild_keyword_index(corpus.installation)
    corpus.write("a.md", OTHER)
    corpus.work(corpus.open(corpus.look().batches[0].batch_id))
    corpus.rows_affected("INSERT INTO retired_partitions (partition_key, retired_at) VALUES ('gone.md', now())")
    look_at(corpus, later)
    corpus.rows_affected("UPDATE publications SET state = 'superseded' WHERE state = 'retired'")
    for table, columns in WAITED_FOR.items():
        for column in columns:
            only = (
                "WHERE state = 'retired'" if table.endswith("indexes") else "WHERE state = 'superseded'" if table == "publications" else ""
            )
            assert corpus.rows_affected(f"UPDATE {table} SET {column} = %s {only}", [later]), f"{table} has nothing to be counted from"
    assert "the clock was set back" in look_at(corpus, now).message
    in_future = {
        (table, column): corpus.value(f"SELECT count(*) FROM {table} WHERE {column} > %s", [now])
        for table, columns in WAITED_FOR.items()
        for column in columns
    }
    assert {place for place, n in in_future.items() if n} == set()
    corpus.ingest()
    assert texts(corpus) == [OTHER]


def test_a_file_that_is_written_to_while_it_is_read_is_published_as_it_came_to_rest(corpus, failing):
    path = corpus.write("a.md", TEXT)
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    with failing.paused("spool.copied", lambda: corpus.work(run)):
        path.write_text(OTHER)
    corpus.runs.ended.add(run.run_id)
    corpus.write("a.md", OTHER)
    converges(corpus, OTHER)
