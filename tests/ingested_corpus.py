"""A whole corpus in a temporary home: a library, a real database, the lake, the keyword index and the real model."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

from stemma.embedding.models import embedding_spec
from stemma.lexical.index import Scope
from stemma.library.reconcile import Look, reconcile
from stemma.library.wishes import request_ingest
from stemma.settings import Settings
from stemma.stages.bm25_index import index_chunks
from stemma.stages.chunks import chunk_documents
from stemma.stages.contextualized_chunks import contextualize_chunks
from stemma.stages.corpus import publish_documents
from stemma.stages.documents import parse_documents, spool_files
from stemma.stages.embeddings import embed_chunks
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.stages.run import Run, StageOutcome, open_run
from stemma.store.forgotten_results import sweep_forgotten
from stemma.store.sparse_indexes import active_sparse_index


class NoRuns:
    """An orchestrator in which nothing runs."""

    def __init__(self) -> None:
        self.ended: set[str] = set()
        self.endings: dict[str, str] = {}
        self.cancelled: set[UUID] = set()
        self.reported: list[str] = []

    def unfinished_batches(self, batch_ids):
        return set()

    def ended_runs(self, batch_ids):
        return {}

    def cancelled_batches(self, batch_ids):
        return self.cancelled & set(batch_ids)

    def ending(self, run_id: str):
        return self.endings.get(run_id, "interrupted" if run_id in self.ended else None)

    def report_failed(self, run_id: str, message: str) -> None:
        self.reported.append(run_id)


@dataclass
class Corpus:
    """The library and what Stemma made of it; `ingest` does what the sensor and its runs do, in this process."""

    settings: Settings
    installation: Installation
    runs: NoRuns = field(default_factory=NoRuns)
    _clock: int = 0

    def write(self, path: str, content: str | bytes) -> Path:
        """A file whose mtime lies in the past and differs from that of every file written before."""
        target = self.settings.library / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        self._clock += 1
        mtime_ns = time.time_ns() - 3_600_000_000_000 + self._clock * 1_000_000_000
        os.utime(target, ns=(mtime_ns, mtime_ns))
        return target

    def look(self) -> Look:
        """One look of the reconciler, now, and what its sensor does besides."""
        here = self.installation
        settings = here.settings()
        self.request()
        look = reconcile(
            here.pool, settings, wanted_fingerprints(settings), self.runs, remove_sparse=here.remove_sparse, now=datetime.now(UTC)
        )
        sweep_forgotten(here.pool, here.lake)
        return look

    def request(self) -> None:
        with self.installation.pool.connection() as connection:
            request_ingest(connection, paths=None, force=False, now=datetime.now(UTC))

    def open(self, batch_id, run_id: str | None = None) -> Run:
        """A run that has bound the batch."""
        here = self.installation
        settings = here.settings()
        return open_run(
            here.pool, here.lake, run_id or uuid4().hex, settings=settings, wanted=wanted_fingerprints(settings),
            batch_id=batch_id, partitions=(),
        )  # fmt: skip

    def work(self, run: Run, *, publish: bool = True) -> dict[str, StageOutcome]:
        """Every stage of a run; returns the outcomes by asset."""
        outcomes = {
            "documents": parse_documents(run, spool_files(run, run.sources())),
            "chunks": chunk_documents(run, run.sources(), embedder_of=self.installation.embedder_of),
            "contextualized_chunks": contextualize_chunks(run, run.sources()),
            "embeddings": embed_chunks(
                run, run.sources(), wanted=embedding_spec(run.settings.embedding_model), embedder_of=self.installation.embedder_of
            ),
            "bm25_index": index_chunks(run, run.sources(), index_of=self.installation.index_of),
        }
        if publish:
            outcomes["corpus"] = publish_documents(run, run.sources())
        return outcomes

    def ingest(self) -> list[dict[str, StageOutcome]]:
        """Look and work until nothing is left; returns the outcomes of every run."""
        done = []
        while batches := self.look().batches:
            for batch in batches:
                run = self.open(batch.batch_id)
                done.append(self.work(run))
                self.runs.ended.add(run.run_id)
        return done

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple]:
        """The rows of a query against the corpus database."""
        with self.installation.pool.connection() as connection:
            return connection.execute(query, parameters or None).fetchall()

    def value(self, query: str, parameters: Sequence[object] = ()) -> object:
        """The first value of a query."""
        return self.rows(query, parameters)[0][0]

    def rows_affected(self, statement: str, parameters: Sequence[object] = ()) -> int:
        """Run a statement that changes rows; returns how many."""
        with self.installation.pool.connection() as connection:
            return connection.execute(statement, parameters or None).rowcount

    def keyword_hits(self, query: str) -> list[tuple[str, int]]:
        """(chunk_id, publication_id) of what the active keyword index finds."""
        with self.installation.pool.connection() as connection:
            index = active_sparse_index(connection)
        hits = self.installation.index_of(index).search(query, k=100, scope=Scope())
        return list(hits.select("chunk_id", "publication_id").iter_rows())
