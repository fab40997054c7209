"""Imported once, by the process that children are forked from: the whole domain library, and the model with its weights."""

import os
from pathlib import Path
from uuid import uuid4

import numpy as np
import psutil
import torch
from ingested_corpus import Corpus

from stemma import failpoints
from stemma.embedding.models import MINILM, embedding_spec, open_embedder
from stemma.settings import Settings
from stemma.stages.batch_lock import BatchLock
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.store.embedded import postgres_url

torch.set_num_threads(1)  # a process with threads cannot be forked
MODEL = open_embedder(MINILM, batch_size=32)
MODEL.embed_query("warm")
SPEC = embedding_spec(MINILM)
wanted_fingerprints(Settings())


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
    """Look and work, as sensor and runs do, until so many looks in a row found nothing to request."""
    failpoints._folder = failing
    installation = Installation(settings)
    installation.embedder_of._embedders[SPEC.spec_hash] = MODEL
    corpus = Corpus(settings, installation, runs=LivingProcesses())
    lock = BatchLock(postgres_url(settings))
    quiet = 0
    for _ in range(30):
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


def embed_needle(text: str, target: Path) -> None:
    """Write the vector of a query to a file."""
    np.save(target, MODEL.embed_query(text))
