"""The quick tier: a seed is a sequence of operations and faults over the domain library, in processes that are killed, then compared.

The same seed makes the same operations and faults at the same places; only the moments of kills that wait for no fail point vary.
"""

import contextlib
import random
import shutil
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
from fault_child import NEEDS_A_REASON, Child, Nursery
from fault_library import Library, change, text_hash
from fault_reader import DirectQueries, Reader
from fault_state import State, differences, read_state

from stemma.embedding.embedder import Vectors
from stemma.embedding.models import MINILM, embedding_spec
from stemma.failpoints import FAIL_POINTS
from stemma.library.deletion import mark_deleting
from stemma.library.wishes import request_ingest
from stemma.settings import Settings, load_settings
from stemma.store.app_settings import set_overrides
from stemma.store.postgres import Pool, autocommitted, connect, open_pool

CHILD_LIMIT_S = 120
RAISING_POINTS = ("spool.copied", "lake.before_rename", "keywords.before_commit", "deletion.before_unlink")
"""Where the operating system may refuse."""

AT_ONCE = {"retire_after_s": 0.02, "query_timeout_s": 0.01}
"""Settings with which entries are retired while nobody reads."""

Fault = Literal["kill at a point", "kill at a moment", "refuse", "overlap", "cut connections", "none"]
FAULTS: dict[Fault, int] = {"kill at a point": 10, "kill at a moment": 3, "refuse": 2, "overlap": 3, "cut connections": 1, "none": 1}


@dataclass
class Report:
    """What a seed did and found."""

    seed: int
    n_operations: int = 0
    n_kills: int = 0
    fired: Counter[str] = field(default_factory=Counter)
    """Fault or fail point -> how often it struck."""
    n_reads: int = 0
    n_documents: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)


class FixedQuery:
    """The vector of one query, computed beforehand: whoever reads loads no model."""

    def __init__(self, vector: Vectors) -> None:
        self.spec = embedding_spec(MINILM)
        self._vector = vector

    def embed_passages(self, passages) -> Vectors:
        raise AssertionError("a reader embeds no passages")

    def embed_query(self, query: str) -> Vectors:
        return self._vector


def needle_vector(nursery: Nursery, folder: Path, needle: str) -> Vectors:
    """The query's vector, by a child that has the model."""
    child = nursery.start("embed_needle", needle, folder / "needle.npy", log=folder / "needle.log")
    child.join(CHILD_LIMIT_S)
    assert child.exitcode == 0, (folder / "needle.log").read_text()
    return np.load(folder / "needle.npy")


@dataclass(frozen=True)
class Bench:
    """What all seeds share."""

    nursery: Nursery
    embedder: FixedQuery


class Seed:
    """One seed at work in a folder and a database of its own."""

    def __init__(self, seed: int, folder: Path, database_url: str, reference_url: str, bench: Bench) -> None:
        self.folder, self.nursery, self.embedder = folder, bench.nursery, bench.embedder
        self.draw = random.Random(seed)
        self.report = Report(seed)
        self.library = Library(folder / "library", random.Random(seed * 7 + 1))
        self.library.root.mkdir(parents=True)
        self.settings = _settings(folder / "home", self.library.root, database_url)
        self.reference = _settings(folder / "reference_home", folder / "reference_library", reference_url)
        self.failing = folder / "failing"
        self.log = folder / "children.log"

    def run(self, n_rounds: int = 5) -> Report:
        """Everything, to the comparison."""
        started = time.monotonic()
        self.library.begin()
        with _closing_pool(self.settings) as self.pool:
            queries = DirectQueries(self.library, self.settings, self.pool, self.embedder)
            reader = Reader(self.library, queries, look=queries.look)
            reader.start()
            try:
                for _ in range(n_rounds):
                    self._round()
            finally:
                judge = reader.stop()
            self.report.n_reads = judge.n_answers + reader.n_looks
            self.report.violations += judge.violations
            self._compare()
        self.report.story += self.library.done
        self.report.n_operations = len(self.library.done)
        self.report.seconds = time.monotonic() - started
        return self.report

    def _round(self) -> None:
        for _ in range(self.draw.randrange(1, 4)):
            self._operate()
        fault = self.draw.choices(list(FAULTS), list(FAULTS.values()))[0]
        shutil.rmtree(self.failing, ignore_errors=True)
        self.failing.mkdir()
        match fault:
            case "kill at a point":
                point = self.draw.choice(FAIL_POINTS)
                self._arm(point, f"kill:{self.draw.choice((1, 1, 1, 2, 3))}")
                self._end(self._start(quiet_looks=2), allowed=(0, -9))
            case "kill at a moment":
                child = self._start(quiet_looks=2)
                child.join(self.draw.random() ** 2 * 3)
                child.kill()
                self._end(child, allowed=(0, -9))
            case "refuse":
                self._arm(self.draw.choice(RAISING_POINTS), self.draw.choice(("full", "read_only")))
                self._end(self._start(quiet_looks=2), allowed=(0, NEEDS_A_REASON))
            case "overlap":
                point = self.draw.choice(FAIL_POINTS)
                self._overlap(point)
            case "cut connections":
                child = self._start(quiet_looks=2)
                child.join(self.draw.random() ** 2 * 3)
                with connect(self.settings.postgres_url or "") as connection:
                    connection.execute(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                    )
                self._end(child, allowed=(0, 1, NEEDS_A_REASON))
            case _:
                self._end(self._start(quiet_looks=2), allowed=(0,))
        fired = sorted(path.stem for path in self.failing.iterdir() if path.suffix in (".fired", ".reached"))
        self.report.fired.update([fault, *fired])
        self.library.done.append(f"fault: {fault} {' '.join(fired)}")

    def _operate(self) -> None:
        kind = self.draw.random()
        if kind < 0.12:
            self._set()
        elif kind < 0.20:
            self._delete()
        elif kind < 0.25:
            with self.pool.connection() as connection:
                request_ingest(connection, paths=None, force=True, now=datetime.now(UTC))
            self.library.done.append("reingest everything")
        else:
            change(self.library)

    def _set(self) -> None:
        given = self.draw.choice(
            [
                {"CHUNK_SIZE": str(self.draw.choice((120, 250, 800)))},
                {"CONTEXTUALIZER": self.draw.choice(("none", "structural"))},
                {"CHUNKING_STRATEGY": self.draw.choice(("recursive_character", "markdown_aware", "sentence"))},
            ]
        )
        with contextlib.ExitStack() as both:
            for settings in (self.settings, self.reference):
                connection = both.enter_context(connect(settings.postgres_url or ""))
                set_overrides(connection, settings, {"CHUNK_OVERLAP": "30", **given})
        self.library.done.append(f"settings: {given}")

    def _delete(self) -> None:
        """Delete a document by the product, its file too or not."""
        keep = self.draw.random() < 0.5
        with autocommitted(self.pool) as connection:
            rows = connection.execute("SELECT source_path, source_id FROM sources WHERE presence = 'present' ORDER BY 1").fetchall()
            known = [(path, source_id) for path, source_id in rows if path in self.library.movable]
            if not known:
                return
            path, source_id = self.draw.choice(known)
            self.library.disturbed.add(path)
            if keep:
                self.library.kept_out[path] = text_hash((self.library.root / path).read_bytes())
            mark_deleting(connection, [source_id], "keep_file" if keep else "remove_file", now=datetime.now(UTC))
        self.library.done.append(f"delete{' but keep the file' if keep else ''}: {path}")

    def _arm(self, point: str, action: str) -> None:
        (self.failing / point).write_text(action)

    def _start(self, *, quiet_looks: int, settings: Settings | None = None) -> Child:
        return self.nursery.start("ingest", settings or self.settings, self.failing, quiet_looks, log=self.log)

    def _end(self, child: Child, *, allowed: tuple[int, ...]) -> None:
        child.join(CHILD_LIMIT_S)
        if child.exitcode is None:
            child.kill()
            child.join(10)
            self.report.violations.append(f"a child did not end within {CHILD_LIMIT_S} s: {self._last_words()}")
        elif child.exitcode not in allowed:
            self.report.violations.append(f"a child ended with {child.exitcode}: {self._last_words()}")
        self.report.n_kills += child.exitcode == -9

    def _overlap(self, point: str) -> None:
        """A run stops at a point while the library changes and another run does all it can; then the first goes on."""
        self._arm(point, "pause")
        slow = self._start(quiet_looks=1)
        deadline = time.monotonic() + 20
        while slow.is_alive() and not (self.failing / f"{point}.reached").exists() and time.monotonic() < deadline:
            slow.join(0.02)
        (self.failing / point).unlink(missing_ok=True)  # where it does not come, the next is not to be held
        for _ in range(2):
            change(self.library)
        self._end(self._start(quiet_looks=1), allowed=(0, NEEDS_A_REASON))  # it may wait in vain for a lock
        (self.failing / f"{point}.go").touch()
        self._end(slow, allowed=(0, NEEDS_A_REASON))

    def _last_words(self) -> str:
        return self.log.read_text()[-3_000:]

    def _compare(self) -> None:
        """Let the corpus come to rest, and compare it with one that nothing ever disturbed."""
        shutil.rmtree(self.failing, ignore_errors=True)
        for _ in range(3):
            self._end(self._start(quiet_looks=4, settings=self.settings.model_copy(update=AT_ONCE)), allowed=(0,))
            with self.pool.connection() as connection:
                found = read_state(connection, self.settings.home)
            if not found.broken:
                break
        self.report.violations += found.broken
        self.report.n_documents = len(found.documents)
        self._judge_kept_out(found)
        wanted = self._undisturbed(found)
        self.report.violations += wanted.broken
        self.report.violations += differences(found, wanted)

    def _judge_kept_out(self, found: State) -> None:
        for path, (status, _, _, _) in found.sources.items():
            if status == "cancelled" and path not in self.library.kept_out:
                self.report.violations.append(f"{path} is kept out, though nobody asked for it")
        for path in self.library.kept_out:
            if path in found.documents:
                # Bytes that were not ingested yet when the document was deleted count as changed.
                self.library.done.append(f"{path} came back")

    def _undisturbed(self, found: State) -> State:
        kept_out = {path for path, (status, *_) in found.sources.items() if status == "cancelled"}
        for path in self.library.paths:
            if path not in kept_out:
                target = self.reference.library / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.library.root / path, target)
        self._end(self._start(quiet_looks=3, settings=self.reference.model_copy(update=AT_ONCE)), allowed=(0,))
        with connect(self.reference.postgres_url or "") as connection:
            wanted = read_state(connection, self.reference.home)
        wanted.sources |= {path: found.sources[path] for path in kept_out}
        return wanted


def _settings(home: Path, library: Path, database_url: str) -> Settings:
    return load_settings(
        home=home, library=library, postgres_url=database_url, prune_grace_s=0, retry_backoff_s=0, run_dead_s=0.5, launch_timeout_s=0.5,
        retire_after_s=5, query_timeout_s=4, chunk_overlap=30, chunk_size=250,
    )  # fmt: skip


@contextlib.contextmanager
def _closing_pool(settings: Settings) -> Generator[Pool]:
    with open_pool(settings.postgres_url or "", max_size=3) as pool:
        yield pool
