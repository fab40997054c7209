"""The quick tier: a seed is a sequence of operations and faults over the domain library, in processes that are killed, then compared.

The same seed makes the same operations and faults at the same places; only the moments of kills that wait for no fail point vary.
"""

import contextlib
import json
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
from fault_child import BUG, CHILD_LIMIT_S, NEEDS_A_REASON, Child, Nursery
from fault_commands import Command, draw_command
from fault_library import Library, change
from fault_reader import DirectQueries, Reader
from fault_reference import AT_ONCE, undisturbed
from fault_state import differences, read_state

from stemma.embedding.embedder import Embedder, EmbeddingSpec, Vectors
from stemma.embedding.models import embedding_spec
from stemma.failpoints import FAIL_POINTS
from stemma.library.wishes import request_ingest
from stemma.settings import Settings, load_settings
from stemma.store.app_settings import set_overrides
from stemma.store.embedding_indexes import active_embedding_index
from stemma.store.postgres import Pool, connect, open_pool

RAISING_POINTS = ("spool.copied", "lake.before_rename", "keywords.before_commit", "deletion.before_unlink")
"""Where the operating system may refuse."""

REFUSALS = (1, 2, 3)
"""Exit codes with which a command says that it found something, or cannot do what was asked: often there is nothing to do."""

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
    """The vector of one query by one model, computed beforehand: whoever reads loads no model."""

    def __init__(self, spec: EmbeddingSpec, vector: Vectors) -> None:
        self.spec, self._vector = spec, vector

    def embed_passages(self, passages) -> Vectors:
        raise AssertionError("a reader embeds no passages")

    def embed_query(self, query: str) -> Vectors:
        return self._vector


@dataclass(frozen=True)
class Bench:
    """What all seeds share."""

    nursery: Nursery
    queries: dict[str, FixedQuery]
    """By spec_hash."""

    @classmethod
    def open(cls, folder: Path, needle: str) -> "Bench":
        """A nursery, and the query's vectors by each of its models."""
        nursery = Nursery(folder / "nursery")
        child = nursery.start("embed_needle", needle, nursery.models, folder / "needle.npz", log=folder / "needle.log")
        child.join(CHILD_LIMIT_S)
        assert child.exitcode == 0, (folder / "needle.log").read_text()
        vectors = np.load(folder / "needle.npz")
        specs = [embedding_spec(location) for location in nursery.models]
        return cls(nursery, {spec.spec_hash: FixedQuery(spec, vectors[spec.spec_hash]) for spec in specs})

    def embedder_of(self, spec: EmbeddingSpec) -> Embedder:
        """What a reader embeds its query by."""
        return self.queries[spec.spec_hash]


class Seed:
    """One seed at work in a folder and a database of its own."""

    def __init__(self, seed: int, folder: Path, database_url: str, reference_url: str, bench: Bench) -> None:
        self.folder, self.bench, self.nursery = folder, bench, bench.nursery
        self.models = bench.nursery.models[:2]
        self.draw = random.Random(seed)
        self.report = Report(seed)
        self.library = Library(folder / "library", random.Random(seed * 7 + 1))
        self.library.root.mkdir(parents=True)
        self.settings = _settings(folder / "home", self.library.root, database_url, self.models[0])
        self.reference = _settings(folder / "reference_home", folder / "reference_library", reference_url, self.models[0])
        self.damaged = False
        self.failing = folder / "failing"
        self.log = folder / "children.log"

    def run(self, n_rounds: int = 5) -> Report:
        """Everything, to the comparison."""
        started = time.monotonic()
        self.library.begin()
        with _closing_pool(self.settings) as self.pool:
            queries = DirectQueries(self.library, self.settings, self.pool, self.bench.embedder_of)
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
        command = draw_command(self.library, self.draw, self.models, self.settings) if self.draw.random() < 0.6 else None
        if command is not None:
            self.library.done.append(f"{command}")
            self.damaged |= "--repair" in command.words
        shutil.rmtree(self.failing, ignore_errors=True)
        self.failing.mkdir()
        match fault:
            case "kill at a point":
                self._arm(self._point(command), f"kill:{self.draw.choice((1, 1, 1, 2, 3))}")
                self._work(command, allowed=(0, -9))
            case "kill at a moment":
                self._work(command, allowed=(0, -9), killed_after_s=self.draw.random() ** 2 * 3)
            case "refuse":
                self._arm(self.draw.choice(RAISING_POINTS), self.draw.choice(("full", "read_only")))
                self._work(command, allowed=(0, NEEDS_A_REASON))
            case "overlap":
                self._overlap(self._point(command), command)
            case "cut connections":
                self._work(command, allowed=(0, NEEDS_A_REASON), cut_after_s=self.draw.random() ** 2 * 3)
            case _:
                self._work(command, allowed=(0,))
        fired = sorted(path.stem for path in self.failing.iterdir() if path.suffix in (".fired", ".reached"))
        self.report.fired.update([fault, *fired])
        self.library.done.append(f"fault: {fault} {' '.join(fired)}")

    def _point(self, command: Command | None) -> str:
        """A fail point, rather one of the command that runs."""
        return self.draw.choice(command.points if command and command.points and self.draw.random() < 0.7 else FAIL_POINTS)

    def _work(
        self, command: Command | None, *, allowed: tuple[int, ...], killed_after_s: float | None = None, cut_after_s: float | None = None
    ) -> None:
        """A command and a run at the same time, or the run alone; who is killed by the clock is drawn."""
        children = [(self._start(quiet_looks=1), allowed if cut_after_s is None else (*allowed, BUG))]  # a run says nothing to a person
        if command is not None:
            children.append((self._type(command), (*allowed, *REFUSALS)))
        if killed_after_s is not None:
            victim = self.draw.choice(children)[0]
            victim.join(killed_after_s)
            victim.kill()
        if cut_after_s is not None:
            children[0][0].join(cut_after_s)
            with connect(self.settings.postgres_url or "") as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
        for child, ends in children:
            self._end(child, allowed=ends)

    def _operate(self) -> None:
        kind = self.draw.random()
        if kind < 0.15:
            self._set()
        elif kind < 0.20:
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
                {"EMBEDDING_MODEL": self.draw.choice(self.models)},
            ]
        )
        with contextlib.ExitStack() as both:
            for settings in (self.settings, self.reference):
                connection = both.enter_context(connect(settings.postgres_url or ""))
                set_overrides(connection, settings, {"CHUNK_OVERLAP": "30", **given})
        self.library.done.append(f"settings: {given}")

    def _arm(self, point: str, action: str) -> None:
        (self.failing / point).write_text(action)

    def _start(self, *, quiet_looks: int, settings: Settings | None = None) -> Child:
        return self.nursery.start("ingest", settings or self.settings, self.failing, quiet_looks, log=self.log)

    def _type(self, command: Command) -> Child:
        return self.nursery.start("type_command", self.settings, self.failing, tuple(command.words), log=self.log)

    def _end(self, child: Child, *, allowed: tuple[int, ...]) -> None:
        child.join(CHILD_LIMIT_S)
        if child.exitcode is None:
            child.kill()
            child.join(10)
            self.report.violations.append(f"a child did not end within {CHILD_LIMIT_S} s: {self._last_words()}")
        elif child.exitcode not in allowed:
            self.report.violations.append(f"a child ended with {child.exitcode}: {self._last_words()}")
        self.report.n_kills += child.exitcode == -9

    def _overlap(self, point: str, command: Command | None) -> None:
        """Whoever reaches a point stops there while the library changes and another run does all it can; then it goes on."""
        self._arm(point, "pause")
        slow = [(self._start(quiet_looks=1), (0, NEEDS_A_REASON))]
        if command is not None:
            slow.append((self._type(command), (0, *REFUSALS)))
        deadline = time.monotonic() + 20
        while (
            any(child.is_alive() for child, _ in slow) and not (self.failing / f"{point}.reached").exists() and time.monotonic() < deadline
        ):
            slow[0][0].join(0.02)
            time.sleep(0.01)
        (self.failing / point).unlink(missing_ok=True)  # where it does not come, the next is not to be held
        for _ in range(2):
            change(self.library)
        self._end(self._start(quiet_looks=1), allowed=(0, NEEDS_A_REASON))  # it may wait in vain for a lock
        (self.failing / f"{point}.go").touch()
        for child, ends in slow:
            self._end(child, allowed=ends)

    def _last_words(self) -> str:
        return self.log.read_text()[-3_000:]

    def _compare(self) -> None:
        """Let the corpus come to rest, audit it, and compare it with one that nothing ever disturbed."""
        shutil.rmtree(self.failing, ignore_errors=True)
        settings, audited = self.settings.model_copy(update=AT_ONCE), self.folder / "audit.json"
        self._end(self.nursery.start("settle", settings, self.draw.random() < 0.6, self.damaged, audited, log=self.log), allowed=(0,))
        if not audited.exists():
            return
        self.report.violations += [f"audit: {row['check']}: {row['subject']}: {row['detail']}" for row in json.loads(audited.read_text())]
        with self.pool.connection() as connection:
            found = read_state(connection, self.settings.home)
            active = active_embedding_index(connection)
        self.report.violations += found.broken
        self.report.n_documents = len(found.documents)
        for path, (status, *_) in found.sources.items():
            if status == "cancelled" and path not in self.library.ever_kept_out:
                self.report.violations.append(f"{path} is kept out, though nobody asked for it")
        model = next(location for location in self.models if active and embedding_spec(location) == active.spec)
        wanted = undisturbed(self.nursery, self.library, self.reference, model=model, found=found, log=self.log)
        self.report.violations += wanted.broken
        self.report.violations += differences(found, wanted)


def _settings(home: Path, library: Path, database_url: str, model: str) -> Settings:
    return load_settings(
        home=home, library=library, postgres_url=database_url, embedding_model=model, lake_max_bytes=1, embedding_cache_max_bytes=1,
        prune_grace_s=0, retry_backoff_s=0, run_dead_s=0.5, launch_timeout_s=0.5, retire_after_s=5, query_timeout_s=4,
        chunk_overlap=30, chunk_size=250,
    )  # fmt: skip


@contextlib.contextmanager
def _closing_pool(settings: Settings) -> Generator[Pool]:
    with open_pool(settings.postgres_url or "", max_size=3) as pool:
        yield pool
