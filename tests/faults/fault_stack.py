"""The full tier: a real `stemma up`, changed and killed while it works, and compared with an undisturbed run of the same library."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from fault_commands import draw_command
from fault_library import NEEDLE, Library, change, text_hash
from fault_reader import DirectQueries, K, Reader
from fault_reference import undisturbed
from fault_seed import Bench, Report
from fault_state import differences, read_state

from stemma.cli.home import supervisor_of
from stemma.cli.postgres import postmaster_of
from stemma.embedding.models import MINILM, embedding_spec
from stemma.retrieval.answer import SearchAnswer
from stemma.settings import Settings, load_settings
from stemma.store.app_settings import set_overrides
from stemma.store.embedded import postgres_url
from stemma.store.embedding_indexes import active_embedding_index
from stemma.store.postgres import StoreUnavailable, connect, open_pool

STEMMA = (sys.executable, "-m", "stemma.cli.main")
CODE_SERVER = "pipelines.code_server"
START_LIMIT_S = 240
CONVERGE_LIMIT_S = 240
COMMAND_LIMIT_S = 180
QUICK = {
    "RECONCILE_INTERVAL_S": "1",
    "RUN_DEAD_S": "2",
    "RETRY_BACKOFF_S": "0.5",
    "PRUNE_GRACE_S": "0",
    "RETIRE_AFTER_S": "8",
    "QUERY_TIMEOUT_S": "7",
    "LAUNCH_TIMEOUT_S": "20",
    "CHUNK_SIZE": "250",
    "CHUNK_OVERLAP": "30",
}
"""So that everything that waits, waits little."""

STAGE_POINTS = (
    "run.begun", "spool.recorded", "lake.object_written", "documents.recorded", "chunks.recorded", "contexts.recorded",
    "embeddings.before_store", "keywords.committed", "publish.before_commit", "publish.committed", "retire.entries_removed",
    "claim.before_commit", "request.before_commit", "look.done", "walk.before_decision",
)  # fmt: skip


class Stack:
    """A home with everything that `stemma up` runs for it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.library_folder, self.failing = folder / "home", folder / "library", folder / "failing"
        self.library_folder.mkdir(parents=True)
        self.failing.mkdir()
        self.service_port, self.dagster_port = _free_port(), _free_port()
        self.supervisor: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Of the query service."""
        return f"http://127.0.0.1:{self.service_port}"

    @property
    def environment(self) -> dict[str, str]:
        """Of the supervisor and, through it, of everything."""
        own = {
            "STEMMA_HOME": str(self.home), "STEMMA_LIBRARY": str(self.library_folder), "STEMMA_FAILPOINTS": str(self.failing),
            "STEMMA_SERVICE_PORT": str(self.service_port), "STEMMA_DAGSTER_PORT": str(self.dagster_port),
        }  # fmt: skip
        return os.environ | own | {f"STEMMA_{name}": value for name, value in QUICK.items()}

    @property
    def settings(self) -> Settings:
        """The installation, as its processes know it."""
        return load_settings(
            home=self.home, library=self.library_folder, **{name.lower(): value for name, value in QUICK.items()}
        )  # fmt: skip

    def up(self) -> None:
        """Start the supervisor, and wait until everything answers."""
        with (self.folder / "up.log").open("ab") as output:
            self.supervisor = subprocess.Popen([*STEMMA, "up"], env=self.environment, stdout=output, stderr=output)
        wait_for(self._is_ready, START_LIMIT_S, "the start", self.words)

    def _is_ready(self) -> bool:
        assert self.supervisor is not None and self.supervisor.poll() is None, self.words()
        holder = supervisor_of(self.home)
        return holder is not None and holder.pid == self.supervisor.pid and holder.state == "ready"

    def words(self) -> str:
        """What `stemma up` said."""
        return (self.folder / "up.log").read_text()[-3_000:]

    def processes(self) -> list[psutil.Process]:
        """Everything that runs for this home, the supervisor too."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE and process.environ().get("STEMMA_HOME") == str(self.home):
                    found.append(process)
        postmaster = postmaster_of(self.home)
        return found + ([postmaster] if postmaster else [])

    def named(self, *words: str) -> list[psutil.Process]:
        """The processes whose command line holds all these words."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                if all(word in " ".join(process.cmdline()) for word in words):
                    found.append(process)
        return found

    def workers(self) -> list[psutil.Process]:
        """The processes of runs and what they started: forked by a child of the code server."""
        found = []
        for server in self.named(CODE_SERVER):
            with suppress(psutil.Error):
                found += [process for child in server.children() for process in child.children(recursive=True)]
        return found

    def backends(self) -> list[psutil.Process]:
        """PostgreSQL's processes that serve a connection."""
        postmaster = postmaster_of(self.home)
        if postmaster is None:
            return []
        return [child for child in postmaster.children() if "[local]" in " ".join(child.cmdline())]

    def end(self, how: int = signal.SIGKILL) -> None:
        """End the supervisor, and wait until nothing runs."""
        if self.supervisor is not None and self.supervisor.poll() is None:
            self.supervisor.send_signal(how)
            self.supervisor.wait(120)
        wait_for(lambda: not self.processes(), 120, "the end of everything", lambda: str(self.processes()))


def wait_for(condition: Callable[[], Any], limit_s: float, what: str, words: Callable[[], str]) -> Any:
    """The condition's first true value."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not happen within {limit_s:.0f} s: {words()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _kill(processes: list[psutil.Process]) -> int:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return len(processes)


class StackSeed:
    """One seed at work on a stack of its own."""

    def __init__(self, seed: int, folder: Path, reference_url: str, bench: Bench) -> None:
        self.stack = Stack(folder)
        self.draw = random.Random(seed)
        self.report = Report(seed)
        self.library = Library(self.stack.library_folder, random.Random(seed * 7 + 1))
        self.bench, self.nursery, self.folder = bench, bench.nursery, folder
        self.models = [MINILM, bench.nursery.models[0]]
        self.typed: list[subprocess.Popen[bytes]] = []
        self.damaged = False
        self.reference = load_settings(
            home=folder / "reference_home", library=folder / "reference_library", postgres_url=reference_url,
            **{name.lower(): value for name, value in QUICK.items()},
        )  # fmt: skip

    def run(self, n_kills: int = 5) -> Report:
        """Start, change and kill in turns, converge, compare."""
        started = time.monotonic()
        self.library.begin(4)
        readers: list[Reader] = []
        try:
            self.stack.up()
            readers += self._readers()
            for reader in readers:
                reader.start()
            for kill in self.draw.sample(KILLS, n_kills):
                for _ in range(self.draw.randrange(2, 4)):
                    self._operate()
                kill(self)
                if self.stack.supervisor is not None and self.stack.supervisor.poll() is not None:
                    self.stack.up()
            self._compare()
        finally:
            judges = [reader.stop() for reader in readers]
            self.stack.end(signal.SIGTERM if not self.report.violations else signal.SIGKILL)
        self.report.n_reads = sum(judge.n_answers for judge in judges) + sum(reader.n_looks for reader in readers)
        self.report.violations += [violation for judge in judges for violation in judge.violations]
        self.report.story += self.library.done
        self.report.n_operations = sum(not line.startswith("fault") for line in self.library.done)
        self.report.seconds = time.monotonic() - started
        return self.report

    def _readers(self) -> Iterator[Reader]:
        """One over HTTP, one that looks into the stores."""
        address = f"{self.stack.address}/api/search"

        def ask(method: str) -> SearchAnswer | None:
            try:
                answer = httpx.post(address, json={"query": NEEDLE, "method": method, "k": K}, timeout=30)
            except httpx.TransportError:
                return None
            if answer.status_code == 503:
                return None
            assert answer.status_code == 200, f"{answer.status_code}: {answer.text[:500]}"
            return SearchAnswer.model_validate(answer.json())

        yield Reader(self.library, ask)
        pool = open_pool(postgres_url(self.stack.settings), max_size=2, timeout_s=3)
        direct = DirectQueries(self.library, self.stack.settings, pool, self.bench.embedder_of)
        yield Reader(self.library, direct, look=direct.look)

    def _operate(self) -> None:
        kind = self.draw.random()
        try:
            if kind < 0.15:
                self._set()
            elif kind < 0.30:
                self._delete()
            elif kind < 0.50:
                command = draw_command(self.library, self.draw, self.models, self._reachable)
                self.library.done.append(f"{command}")
                self.damaged |= "--repair" in command.words
                self.typed.append(self._type(*command.words))
            else:
                change(self.library)
        except (StoreUnavailable, psycopg.OperationalError):
            self.library.done.append("PostgreSQL was away")

    @property
    def _reachable(self) -> Settings:
        return self.stack.settings.model_copy(update={"postgres_url": postgres_url(self.stack.settings)})

    def _set(self) -> None:
        given = self.draw.choice(
            [{"CHUNK_SIZE": "120"}, {"CHUNK_SIZE": "400"}, {"CONTEXTUALIZER": "none"}, {"EMBEDDING_MODEL": self.draw.choice(self.models)}]
        )
        with connect(postgres_url(self.stack.settings)) as connection:
            set_overrides(connection, self.stack.settings, given)
        with connect(self.reference.postgres_url or "") as connection:
            set_overrides(connection, self.reference, given)
        self.library.done.append(f"settings: {given}")

    def _delete(self) -> None:
        """Over HTTP; whether it was answered is not known, nor asked."""
        with connect(postgres_url(self.stack.settings)) as connection:
            rows = connection.execute("SELECT source_path, source_id FROM sources WHERE presence = 'present' ORDER BY 1").fetchall()
        known = [(path, source_id) for path, source_id in rows if path in self.library.movable]
        if not known:
            return
        path, source_id = self.draw.choice(known)
        keep = self.draw.random() < 0.5
        self.library.disturbed.add(path)
        if keep:
            self.library.keep_out(path, text_hash((self.library.root / path).read_bytes()))
        with suppress(httpx.TransportError):
            answer = httpx.delete(f"{self.stack.address}/api/documents/{source_id}", params={"remove_file": not keep}, timeout=30)
            assert answer.status_code in (200, 404, 409, 503), answer.text
        self.library.done.append(f"DELETE {path}{'' if keep else ' and its file'}")

    def _type(self, *words: str) -> subprocess.Popen[bytes]:
        """A command in a terminal of its own."""
        with (self.folder / "commands.log").open("ab") as output:
            return subprocess.Popen([*STEMMA, *words], env=self.stack.environment, cwd=self.library.root, stdout=output, stderr=output)

    def _typed_out(self) -> None:
        for process in self.typed:
            try:
                if process.wait(COMMAND_LIMIT_S) not in (0, 1, 2, 3):
                    self.report.violations.append(f"a command ended with {process.returncode}: {' '.join(map(str, process.args))}")
            except subprocess.TimeoutExpired:
                process.kill()
                self.report.violations.append(f"a command does not end: {' '.join(map(str, process.args))}")
        self.typed.clear()
        log = self.folder / "commands.log"
        if log.exists() and "Traceback" in (said := log.read_text()):
            self.report.violations.append(f"a command ended in a traceback: {said[said.index('Traceback') :][:2_000]}")

    # The ways to die.

    def kill_a_run(self) -> None:
        with suppress(AssertionError):  # there may be nothing to do for a run
            wait_for(self.stack.workers, 15, "a run", str)
        time.sleep(self.draw.random() * 3)
        self._struck("a run", _kill(self.stack.workers()))

    def kill_at_a_point(self) -> None:
        point = self.draw.choice(STAGE_POINTS)
        (self.stack.failing / point).write_text("kill")
        with suppress(AssertionError):  # the library may need nothing that passes there
            wait_for((self.stack.failing / f"{point}.fired").exists, 20, point, str)
        (self.stack.failing / point).unlink(missing_ok=True)
        fired = self.stack.failing / f"{point}.fired"
        self._struck(f"at {point}", int(fired.exists()))
        fired.unlink(missing_ok=True)

    def kill_the_daemon(self) -> None:
        time.sleep(self.draw.random() * 3)
        self._struck("the daemon", _kill(self.stack.named("dagster._daemon")))

    def kill_the_code_server(self) -> None:
        time.sleep(self.draw.random() * 6)
        self._struck("the code server and its runs", _kill(self.stack.workers() + self.stack.named(CODE_SERVER)))

    def kill_the_service(self) -> None:
        time.sleep(self.draw.random())
        self._struck("the query service", _kill(self.stack.named("stemma.service")))

    def kill_postgres(self) -> None:
        time.sleep(self.draw.random() * 6)
        postmaster = postmaster_of(self.stack.home)
        self._struck("PostgreSQL", _kill([postmaster] if postmaster else []))

    def kill_a_backend(self) -> None:
        time.sleep(self.draw.random() * 6)
        backends = self.stack.backends()
        self._struck("a backend", _kill(self.draw.sample(backends, min(1, len(backends)))))

    def kill_the_supervisor(self) -> None:
        time.sleep(self.draw.random() * 6)
        self.stack.end(signal.SIGKILL)
        self._struck("the supervisor", 1)

    def drain(self) -> None:
        time.sleep(self.draw.random() * 6)
        self.stack.end(signal.SIGTERM)
        self._struck("SIGTERM", 1)

    def kill_everything(self) -> None:
        time.sleep(self.draw.random() * 6)
        self._struck("everything", _kill(self.stack.processes()))
        self.stack.end()

    def _struck(self, what: str, n: int) -> None:
        self.report.n_kills += n > 0
        self.report.fired[what] += n > 0
        self.library.done.append(f"fault: {what}{'' if n else ' (nothing to kill)'}")

    def _compare(self) -> None:
        """Bring everything to rest as an operator would; wait until the corpus is that of an undisturbed run, and audit it."""
        self._typed_out()
        steps = [["reembed"] if self.draw.random() < 0.6 else ["reembed", "--abandon"], ["retry", "--failed", "--cancelled"]]
        steps += [["audit", "--repair"]] * self.damaged
        for words in steps:
            self._type(*words).wait(COMMAND_LIMIT_S)
        wanted = None
        said: list[str] = ["nothing was compared"]
        deadline = time.monotonic() + CONVERGE_LIMIT_S
        while said and time.monotonic() < deadline:
            self._type("prune", "--confirm").wait(COMMAND_LIMIT_S)
            with suppress(StoreUnavailable), connect(postgres_url(self.stack.settings)) as connection:
                found = read_state(connection, self.stack.home)
                active = active_embedding_index(connection)
                self.report.n_documents = len(found.documents)
                if active is None or found.broken:
                    said = found.broken
                    continue
                if wanted is None:
                    model = next(location for location in self.models if embedding_spec(location) == active.spec)
                    log = self.folder / "reference.log"
                    wanted = undisturbed(self.nursery, self.library, self.reference, model=model, found=found, log=log)
                said = wanted.broken + differences(found, wanted)
        self.report.violations += said
        audited = subprocess.run(
            [*STEMMA, "audit", "--deep", "--json"], env=self.stack.environment, capture_output=True, text=True, check=False
        )
        if audited.returncode != 0:
            found_by_audit = json.loads(audited.stdout)["violations"] if audited.stdout else [audited.stderr]
            self.report.violations += [f"audit: {row}" for row in found_by_audit]


KILLS: list[Callable[[StackSeed], None]] = [
    StackSeed.kill_a_run,
    StackSeed.kill_at_a_point,
    StackSeed.kill_at_a_point,
    StackSeed.kill_at_a_point,
    StackSeed.kill_the_daemon,
    StackSeed.kill_the_code_server,
    StackSeed.kill_the_service,
    StackSeed.kill_postgres,
    StackSeed.kill_a_backend,
    StackSeed.kill_the_supervisor,
    StackSeed.drain,
    StackSeed.kill_everything,
]
