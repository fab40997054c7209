"""Imported once, by the process that children are forked from: the whole domain library, and models with their weights."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import numpy as np
import psutil
import torch
from ingested_corpus import Corpus
from small_models import random_model

from stemma import failpoints
from stemma.audit.audit import audit
from stemma.audit.repair import repair
from stemma.cli.main import app
from stemma.embedding.embedder import Embedder
from stemma.embedding.models import MINILM, embedding_spec, open_embedder
from stemma.library.cancellation import Chosen, retry_documents
from stemma.library.pruning import prune_and_delete
from stemma.parsing import worker, workers
from stemma.settings import Settings
from stemma.stages import installation, models_at_hand
from stemma.stages.batch_lock import BatchLock
from stemma.stages.garbage import collect_garbage
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.stages.keyword_rebuild import tend_keyword_index
from stemma.stages.reembed import abandon_reembed, reembed, unmet_wish
from stemma.store import postgres
from stemma.store.embedded import postgres_url
from stemma.store.postgres import autocommitted

torch.set_num_threads(1)  # a process with threads cannot be forked
MODELS: dict[str, Embedder] = {}
"""By spec_hash: what no child has to load."""

SETTLED_ROUNDS = 3


def prepare(folder: Path) -> list[str]:
    """Make the models and load them, MiniLM too; returns the values of EMBEDDING_MODEL: two small ones of one width, then MiniLM."""
    locations = [random_model(folder / "models" / name, seed=seed) for seed, name in enumerate(("one", "two"))] + [MINILM]
    for location in locations:
        model = open_embedder(location, batch_size=32)
        model.embed_query("warm")
        MODELS[model.spec.spec_hash] = model
    models_at_hand.open_embedder = lambda location, *, batch_size: MODELS[embedding_spec(location).spec_hash]
    postgres.LOCK_TIMEOUT_MS, installation.WRITER_WAIT_S = 1_500, 3  # so that whoever waits for one that is held by a test waits little
    workers.subprocess = SimpleNamespace(Popen=ForkedParser, PIPE=None, TimeoutExpired=subprocess.TimeoutExpired)
    wanted_fingerprints(Settings())
    return locations


class ForkedParser:
    """The parser's process, forked as its caller was: a new interpreter for every run would be most of what a seed costs."""

    def __init__(self, arguments: Sequence[str], **_: object) -> None:
        (jobs, given), (answered, answers) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(jobs, 0)
            os.dup2(answers, 1)
            os.closerange(3, 1024)
            sys.argv = list(arguments[2:])
            with suppress(BaseException):
                worker.main()
            os._exit(0)
        os.close(jobs)
        os.close(answers)
        self.stdin, self.stdout = os.fdopen(given, "wb"), os.fdopen(answered, "rb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout: float = 60) -> int:
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("the parser", timeout)
            time.sleep(0.002)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class LivingProcesses:
    """An orchestrator whose runs are processes: a run id begins with its pid."""

    def unfinished_batches(self, batch_ids):
        return set()

    def ended_runs(self, batch_ids):
        return {}

    def cancelled_batches(self, batch_ids):
        return set()

    def ending(self, run_id: str):
        """A child that is gone was killed by the test: that says nothing of its documents."""
        pid = int(run_id.partition("-")[0])
        gone = not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        return "unavailable" if gone else None

    def report_failed(self, run_id: str, message: str) -> None:
        pass


def ingest(settings: Settings, failing: Path | None, quiet_looks: int) -> None:
    """Look and work, as sensors and runs do, until so many looks in a row found nothing to request."""
    failpoints._folder = failing
    _ingest(Installation(settings), quiet_looks)


def type_command(settings: Settings, failing: Path | None, words: tuple[str, ...]) -> None:
    """`stemma` with these words, as a person types it."""
    failpoints._folder = failing
    for name, value in settings.model_dump(exclude_unset=True).items():
        os.environ[f"STEMMA_{name.upper()}"] = str(value)
    os.chdir(settings.library)
    sys.argv = ["stemma", *words]
    app(list(words))


def settle(settings: Settings, finish: bool, damaged: bool, target: Path) -> None:
    """Bring everything to rest as an operator would, then audit; what the audit found is written to the target, as JSON.

    Args:
        finish: whether an index that is being built is finished and switched to; else it is given up.
        damaged: whether stores were damaged: only then is anything repaired.
    """
    here = Installation(settings)
    found = None
    for _ in range(SETTLED_ROUNDS):
        _ingest(here, 2)
        now = datetime.now(UTC)
        prune_and_delete(here.pool, here.settings(), here.remove_sparse, confirm=True, now=now)
        with autocommitted(here.pool) as connection:
            retry_documents(
                connection, Chosen(), here.settings(), wanted_fingerprints(here.settings()), of=("failed", "cancelled"), now=now
            )
        if not finish:
            abandon_reembed(here)
        elif unmet_wish(here):
            reembed(here)
        collect_garbage(here.pool, here.lake, here.settings(), now=now)  # as the sensor does: a `gc` that was killed leaves orphans
        if damaged:
            repair(here, audit(here, now=datetime.now(UTC)), now=datetime.now(UTC))
        _ingest(here, 1)
        found = audit(here, deep=True, now=datetime.now(UTC))
        if found.is_empty():
            break
    assert found is not None
    target.write_text(json.dumps(found.to_dicts()))


def _ingest(here: Installation, quiet_looks: int) -> None:
    corpus = Corpus(here.base, here, runs=LivingProcesses())
    lock = BatchLock(postgres_url(here.base))
    quiet = 0
    for _ in range(30):
        for sentence in tend_keyword_index(here, budget_s=10):
            print(sentence, flush=True)
        look = corpus.look()
        print(look.message, flush=True)
        quiet = 0 if look.batches else quiet + 1
        if quiet >= quiet_looks:
            break
        for batch in look.batches:
            run = corpus.open(batch.batch_id, f"{os.getpid()}-{uuid4().hex}")
            lock.hold(run.run_id)
            corpus.work(run)
            lock.release()


def embed_needle(text: str, locations: list[str], target: Path) -> None:
    """Write the vectors of a query, by each of the models, to a file."""
    np.savez(
        target,
        **{embedding_spec(location).spec_hash: MODELS[embedding_spec(location).spec_hash].embed_query(text) for location in locations},
    )
