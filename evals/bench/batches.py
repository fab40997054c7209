"""What a document costs beside its model: ticks and runs of the real definitions in this process, events and stores included."""

import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import numpy as np
from dagster._core.definitions.automation_tick_evaluation_context import build_run_requests_with_backfill_policies
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.definitions.partitions.context import partition_loading_context

from evals.bench.generated_library import document_path, write_documents
from evals.bench.home import server_seconds
from pipelines import sensors
from pipelines.definitions import defs
from resources.corpus import CorpusResource, installation
from resources.recorder import CHAIN
from stemma.embedding.embedder import EmbeddingSpec, Vectors
from stemma.library.looks import request_look

JOB = "ingest_batch"


class StubEmbedder:
    """Vectors without a model, for measuring what is not the model. Only here: they mean nothing."""

    def __init__(self, spec: EmbeddingSpec) -> None:
        self.spec = spec
        self._draw = np.random.default_rng(0)

    def embed_passages(self, passages: Sequence[str]) -> Vectors:
        """Random directions."""
        vectors = self._draw.standard_normal((len(passages), self.spec.dimension)).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def embed_query(self, query: str) -> Vectors:
        """A random direction."""
        return self.embed_passages([query])[0]


def measure_stub(instance: dg.DagsterInstance, n_documents: int) -> dict[str, Any]:
    """First ingest of `n_documents` with the stub in the model's place."""
    here = installation()
    real, here.embedder_of = here.embedder_of, StubEmbedder  # type: ignore[assignment]
    try:
        write_documents(here.base.library, range(n_documents))
        measured = ingest(instance)
    finally:
        here.embedder_of = real
    assert measured["documents"] == n_documents, measured
    return measured


def measure_every_third(instance: dg.DagsterInstance, n_documents: int) -> dict[str, Any]:
    """Every third of the first `n_documents` edited: how many runs it takes, and in how many Dagster's own backfill would cut it."""
    here = installation()
    real, here.embedder_of = here.embedder_of, StubEmbedder  # type: ignore[assignment]
    try:
        write_documents(here.base.library, range(0, n_documents, 3), says="wades")
        measured = ingest(instance)
    finally:
        here.embedder_of = real
    return measured | {
        "runs_of_dagsters_own_backfill": _dagster_runs(instance, [document_path(number) for number in range(0, n_documents, 3)])
    }


def _dagster_runs(instance: dg.DagsterInstance, keys: Sequence[str]) -> int:
    graph = defs.resolve_asset_graph()
    scattered = {AssetKeyPartitionKey(dg.AssetKey(asset), key) for asset in CHAIN for key in keys}
    with partition_loading_context(dynamic_partitions_store=instance):
        return len(build_run_requests_with_backfill_policies(scattered, graph, instance))


def measure_real(instance: dg.DagsterInstance, numbers: Sequence[int], *, n_paragraphs: int) -> dict[str, Any]:
    """Ingest beside the bare model on the same strings, in turns with one warm model: one half bare first, the other ingested first."""
    here = installation()
    bare_s = ingest_s = 0.0
    n_texts = 0
    for turn, half in enumerate((numbers[::2], numbers[1::2])):
        write_documents(here.base.library, half, n_paragraphs=n_paragraphs)
        ingested = ingest(instance)
        ingest_s += ingested["wall_s"]
        with here.pool.connection() as connection:
            query = "SELECT contextualized_content FROM chunks JOIN documents USING (publication_id) WHERE source_path = ANY(%s)"
            texts = [text for (text,) in connection.execute(query, [[document_path(number) for number in half]])]
        embedder = here.embedder_of.of_setting(here.settings())
        if not turn:
            embedder.embed_passages(texts[:1])
        began = time.perf_counter()
        embedder.embed_passages(texts)
        bare_s += time.perf_counter() - began
        n_texts += len(texts)
    return {
        "documents": len(numbers), "chunks": n_texts, "ingest_s": ingest_s, "bare_model_s": bare_s, "throughput_ratio": bare_s / ingest_s,
    }  # fmt: skip


def ingest(instance: dg.DagsterInstance) -> dict[str, Any]:
    """Tick and run until nothing is left: seconds by step, of ticks and in all."""
    here = installation()
    with here.pool.connection() as connection:
        request_look(connection, now=datetime.now(UTC))
    began, cpu, server = time.perf_counter(), time.process_time(), server_seconds(here.base.home)
    seconds: dict[str, float] = defaultdict(float)
    runs: dict[str, int] = {}
    while requests := _tick(instance, seconds):
        for request in requests:
            started = time.perf_counter()
            done = defs.resolve_job_def(JOB).execute_in_process(
                instance=instance, run_config=request.run_config, partition_key=request.partition_key, tags=dict(request.tags)
            )
            seconds["runs"] += time.perf_counter() - started
            runs[done.run_id] = len(request.run_config["resources"]["batch"]["config"]["partitions"])
    wall_s, cpu_s, n_documents = time.perf_counter() - began, time.process_time() - cpu, sum(runs.values())
    for run_id in runs:
        for step in instance.get_run_step_stats(run_id):
            seconds[step.step_key] += (step.end_time or 0.0) - (step.start_time or 0.0)
    per_document = 1_000 / n_documents if n_documents else 0.0
    return {
        "documents": n_documents, "runs": len(runs), "largest_run": max(runs.values(), default=0), "wall_s": wall_s,
        "wall_ms_per_document": wall_s * per_document, "cpu_ms_per_document": cpu_s * per_document,
        "postgres_cpu_ms_per_document": (server_seconds(here.base.home) - server) * per_document, "seconds": dict(seconds),
    }  # fmt: skip


def _tick(instance: dg.DagsterInstance, seconds: dict[str, float]) -> list[dg.RunRequest]:
    """The requests of the next tick that has any, or nothing when all is done; the tick that finds nothing counts too."""
    for _ in range(2):  # a look that ends a walk may come one tick before the one that claims
        began = time.perf_counter()
        with dg.build_sensor_context(instance=instance, resources={"corpus": CorpusResource()}) as context:
            answer = sensors.reconcile(context)
        seconds["ticks"] += time.perf_counter() - began
        if isinstance(answer, dg.SensorResult):
            return list(answer.run_requests or ())
    return []
