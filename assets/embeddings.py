"""Embeddings: one vector per contextualized chunk and embedding index, made once per exact string."""

from collections.abc import Iterator

import dagster as dg

from assets.checks import expectations_of
from assets.columns import columns_of
from assets.partitions import OWNERS, document_partitions, one_batch_per_run
from assets.pools import EMBEDDER_POOL
from resources.batch import DocumentBatch
from resources.corpus import CorpusResource
from resources.recorder import Recorder
from stemma.embedding.models import embedding_spec
from stemma.settings import CODE_VERSIONS
from stemma.stages.embeddings import embed_chunks
from stemma.stages.run import enter


@dg.multi_asset(
    name="embeddings",
    pool=EMBEDDER_POOL,
    can_subset=True,
    specs=[
        dg.AssetSpec(
            "embeddings",
            deps=["contextualized_chunks", "embedding_settings"],
            partitions_def=document_partitions,
            code_version=CODE_VERSIONS["embedding"],
            group_name="corpus",
            description="Vectors of the document's chunks, in the cache by string and model. `embedded` counts what no cache answered.",
            kinds={"pytorch", "postgres"},
            owners=OWNERS,
            tags={"layer": "embeddings"},
            metadata=columns_of("embeddings"),
        )
    ],
    check_specs=[
        dg.AssetCheckSpec(
            "embedded", asset="embeddings", partitions_def=document_partitions, description="Every chunk has one sound vector."
        ),
        expectations_of("embeddings", "Every published chunk has exactly one vector, finite, of length 1 and of the model's dimension."),
    ],
    backfill_policy=one_batch_per_run,
)
def embeddings(context: dg.AssetExecutionContext, batch: DocumentBatch, corpus: CorpusResource) -> Iterator[dg.MaterializeResult]:
    """Embed the strings that no cache holds."""
    run = corpus.run(context, batch)
    enter(run, "embeddings")
    recorder = Recorder(context, run, corpus.installation, check="embedded")
    wanted = embedding_spec(run.settings.embedding_model)
    outcome = embed_chunks(run, run.sources(), wanted=wanted, embedder_of=corpus.installation.embedder_of)
    recorder.record(outcome)
    yield dg.MaterializeResult(asset_key="embeddings")
