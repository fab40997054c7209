"""Which constant and weights fuse best: `python -m evals.fusion FOLDER SET...` over labelled sets (docs/decisions/008-fusion.md)."""

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Literal

import numpy as np
import polars as pl

from evals.bench.report import machine_facts, markdown_rows, save
from evals.labelled_sets import LabelledSet, Passage, read_labelled_set
from evals.metrics import ndcg_at_k, reciprocal_rank_at_k, span_recall_at_k
from stemma.embedding.embedder import Embedder, Vectors
from stemma.embedding.models import open_embedder
from stemma.lexical.index import ENTRY_SCHEMA
from stemma.lexical.tantivy_index import TantivyIndex
from stemma.retrieval.fusion import RANKING_SCHEMA, reciprocal_rank_fusion
from stemma.retrieval.scope import EVERYWHERE
from stemma.settings import load_settings

METHOD = """
Texts are cut and contextualized by the default settings and searched as the product searches: the embedder of EMBEDDING_MODEL by exact
cosine, the tantivy index by BM25. The first DEPTH passages of each arm are fused by the product's own reciprocal-rank fusion with every
pair of constant and weight. Span recall@k is the share of the gold characters in the first k passages; nDCG@10 takes as gain the share of the gold
characters in a passage; MRR@10 looks for the first passage with any.
"""
DEPTH = 50
CONSTANTS = (0, 2, 10, 60)
WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7)
"""Of the semantic arm; the keyword arm has the rest."""
MEASURES = ("span_recall@5", "span_recall@10", "ndcg@10", "mrr@10")

Ranking = list[str]


@dataclass(frozen=True)
class Arms:
    """What each arm found for each question of a set, best first."""

    semantic: list[Ranking]
    bm25: list[Ranking]


def search_arms(labelled: LabelledSet, *, embedder: Embedder, cache: Path | None = None) -> Arms:
    """The first DEPTH passages of both arms. `cache`: a folder that keeps vectors from one measuring to the next."""
    vectors = _vectors(embedder, "passage", [passage.contextualized_content for passage in labelled.passages], cache)
    queries = [question.query for question in labelled.questions]
    asked = _vectors(embedder, "query", queries, cache)
    best = np.argsort(-(asked @ vectors.T), axis=1, kind="stable")[:, :DEPTH]
    semantic = [[labelled.passages[place].chunk_id for place in places] for places in best]
    with tempfile.TemporaryDirectory() as folder:
        index = TantivyIndex(Path(folder) / "index", exclusive=nullcontext)
        index.add(_entries(labelled.passages))
        bm25 = [index.search(query, k=DEPTH, scope=EVERYWHERE)["chunk_id"].to_list() for query in queries]
    return Arms(semantic, bm25)


def measure(labelled: LabelledSet, rankings: Sequence[Ranking]) -> dict[str, float]:
    """MEASURES of one ranking per question, as means over the set."""
    spans = {passage.chunk_id: passage.span for passage in labelled.passages}
    judged = [
        {
            "span_recall@5": span_recall_at_k(question.gold, [spans[chunk_id] for chunk_id in ranking], 5),
            "span_recall@10": span_recall_at_k(question.gold, [spans[chunk_id] for chunk_id in ranking], 10),
            "ndcg@10": ndcg_at_k(gains, ranking, 10),
            "mrr@10": reciprocal_rank_at_k(gains.keys(), ranking, 10),
        }
        for question, gains, ranking in zip(labelled.questions, labelled.gains(), rankings, strict=True)
    ]
    return {name: mean(one[name] for one in judged) for name in MEASURES}


def measure_fusion(labelled: LabelledSet, arms: Arms) -> dict[str, dict[str, float]]:
    """`semantic`, `bm25` and each `K/weight of the semantic arm` -> measures."""
    measured = {"semantic": measure(labelled, arms.semantic), "bm25": measure(labelled, arms.bm25)}
    for constant in CONSTANTS:
        for weight in WEIGHTS:
            fused = [
                reciprocal_rank_fusion(
                    {"semantic": _ranks(semantic), "bm25": _ranks(bm25)}, {"semantic": weight, "bm25": 1 - weight}, k=constant
                )["chunk_id"].to_list()
                for semantic, bm25 in zip(arms.semantic, arms.bm25, strict=True)
            ]
            measured[f"{constant}/{weight:g}"] = measure(labelled, fused)
    return measured


def table(measured: Mapping[str, Mapping[str, Mapping[str, float]]], name: str) -> str:
    """One measure as Markdown: a row per constant and weight, a column per set, and the mean over the sets."""
    sets = list(measured)
    rows = [
        [recipe, *(f"{measured[one][recipe][name]:.3f}" for one in sets), f"{mean(measured[one][recipe][name] for one in sets):.4f}"]
        for recipe in measured[sets[0]]
    ]
    return markdown_rows(["constant/semantic weight", *sets, "mean"], rows)


def _ranks(ranking: Ranking) -> pl.DataFrame:
    return pl.DataFrame({"chunk_id": ranking, "rank": range(1, len(ranking) + 1)}, schema=RANKING_SCHEMA)


def _entries(passages: Sequence[Passage]) -> pl.DataFrame:
    now = datetime.now(UTC)
    rows = [
        {
            "chunk_id": passage.chunk_id, "publication_id": 1, "source_id": passage.span[0], "doc_id": passage.span[0], "original_index": place,
            "workspace": "w", "folders": [], "file_type": "txt", "language": "", "file_modified_at": now, "ingested_at": now,
            "content": passage.content, "contextualized_content": passage.contextualized_content,
        }
        for place, passage in enumerate(passages)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=ENTRY_SCHEMA)


def _vectors(embedder: Embedder, role: Literal["passage", "query"], texts: Sequence[str], cache: Path | None) -> Vectors:
    """Shape (len(texts), dimension)."""
    recipe = hashlib.sha256("\0".join([embedder.spec.spec_hash, role, *texts]).encode()).hexdigest()
    file = cache / f"{recipe}.npy" if cache else None
    if file and file.exists():
        return np.load(file)
    vectors = embedder.embed_passages(texts) if role == "passage" else np.stack([embedder.embed_query(text) for text in texts])
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, vectors)
    return vectors


def main() -> None:
    """Measure the sets and print a table per measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="Where NAME.docs.jsonl and NAME.queries.jsonl lie.")
    parser.add_argument("sets", nargs="+", help="Names of sets.")
    parser.add_argument("--cache", type=Path, help="Folder that keeps vectors from one measuring to the next.")
    parser.add_argument("--only-embed", action="store_true", help="Fill the cache and stop.")
    given = parser.parse_args()
    settings = load_settings()
    machine = machine_facts("sentence-transformers", "tantivy", "torch")
    embedder = open_embedder(settings.embedding_model, batch_size=settings.embedding_batch_size)
    measured: dict[str, dict[str, dict[str, float]]] = {}
    for name in given.sets:
        labelled = read_labelled_set(given.folder, name, settings)
        sys.stdout.write(f"{name}: {len(labelled.passages)} passages, {len(labelled.questions)} questions\n")
        arms = search_arms(labelled, embedder=embedder, cache=given.cache)
        if not given.only_embed:
            measured[name] = measure_fusion(labelled, arms)
    if measured:
        path = save("fusion", method=METHOD, machine=machine, measured=measured)
        tables = [f"\n## {name}\n\n{table(measured, name)}" for name in MEASURES]
        sys.stdout.write(f"{METHOD}{''.join(tables)}\n{path}\n")


if __name__ == "__main__":
    main()
