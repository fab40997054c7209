"""What is away, full, read-only or out of time: the work says why it stopped, nothing that was live is lost, and it goes on afterwards."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from fault_state import read_state
from ingested_corpus import Corpus

from stemma.cli.postgres import stop_server
from stemma.lexical.errors import LexicalIndexUnavailable
from stemma.library.reconcile import reconcile
from stemma.library.spool import SpoolUnavailable
from stemma.settings import load_settings
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.store import embedded, migrations
from stemma.store.lake import LakeUnavailable
from stemma.store.postgres import StoreUnavailable, connect

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


def test_a_file_that_is_written_to_while_it_is_read_is_published_as_it_came_to_rest(corpus, failing):
    path = corpus.write("a.md", TEXT)
    [batch] = corpus.look().batches
    run = corpus.open(batch.batch_id)
    with failing.paused("spool.copied", lambda: corpus.work(run)):
        path.write_text(OTHER)
    corpus.runs.ended.add(run.run_id)
    corpus.write("a.md", OTHER)
    converges(corpus, OTHER)
