"""Corpus: what readers see. Each document goes live whole, in one transaction, or not at all."""

from collections import Counter
from collections.abc import Mapping

import polars as pl
import structlog

from stemma.errors import DocumentError, EmbeddingMissing
from stemma.failpoints import reach
from stemma.library import claims
from stemma.library.claims import OpenSource, open_source_rows
from stemma.library.paths import absolute_source, document_id
from stemma.parsing.document import ParsedDocument
from stemma.stages.run import PUBLISHED_ANEW, Fact, Run, StageOutcome, Version, now, partition_of, redo_without_input
from stemma.stages.situated import Situated, situated_chunks
from stemma.store.embedding_indexes import EmbeddingIndex, open_embedding_indexes
from stemma.store.lake import MissingObject
from stemma.store.postgres import StoreBusy, explained
from stemma.store.publications import FinishedDocument, Recipe, publish_document
from stemma.store.stage_results import read_results

log = structlog.get_logger()


def publish_documents(run: Run, sources: pl.DataFrame) -> StageOutcome:
    """Publish every document of the batch that is still wanted, each in a transaction of its own."""
    situated = situated_chunks(run, sources)
    try:
        documents = _documents(run, situated)
    except MissingObject:
        with run.pool.connection() as connection:
            redo_without_input(run, connection, list(situated.documents), "documents")
        return StageOutcome({}, {})
    recipe = Recipe(run.run_id, run.epoch, run.settings, run.wanted)
    with run.pool.connection() as connection:
        indexes = open_embedding_indexes(connection)
    versions: dict[str, Version] = {}
    failures: dict[str, DocumentError] = {}
    decisions: Counter[str] = Counter()
    partitions = partition_of(sources)
    for source in open_source_rows(sources.filter(pl.col("source_id").is_in(list(documents)))):
        source_id = source.source_id
        finished = _finished(run, source, situated, documents[source_id])
        try:
            decision = _publish(run, finished, recipe, indexes)
        except EmbeddingMissing as error:
            failures[source_id] = error
            continue
        decisions[decision] += 1
        log.info("document decided", source_path=source.source_path, partition=source.partition_key, run_id=run.run_id, decision=decision, chunks=finished.chunks.height)  # fmt: skip
        if decision != "abandoned":
            versions[partitions[source_id]] = Version(finished.output_hash, _describe(finished, decision))
    with run.pool.connection() as connection:
        claims.fail_attempts(connection, run.run_id, "publishing", failures, run.settings, now=now())
    reach("run.published")
    log.info("documents published", run_id=run.run_id, failed=len(failures), **decisions)
    return StageOutcome(versions, {partitions[source_id]: error for source_id, error in failures.items()})


def _publish(run: Run, finished: FinishedDocument, recipe: Recipe, indexes: list[EmbeddingIndex]) -> str:
    """Try twice when another transaction holds the document: what blocks is a delete or a publication, and both are short."""
    for last_try in (False, True):
        try:
            with explained(), run.pool.connection() as connection:
                return publish_document(connection, finished, recipe, indexes, now=now())
        except StoreBusy:
            if last_try:
                raise
    raise AssertionError("unreachable")


def _documents(run: Run, situated: Situated) -> dict[str, ParsedDocument]:
    if not situated.documents:
        return {}
    rows = read_results(run.lake, {result.key: result for result in situated.documents.values()}.values(), ["document"])
    text_of = dict(rows.unique("key").select("key", "document").iter_rows())
    if lost := [result.object for result in situated.documents.values() if result.key not in text_of]:
        raise MissingObject(lost[0])
    return {i: ParsedDocument.from_json(text_of[result.key]) for i, result in situated.documents.items()}


def _finished(run: Run, source: OpenSource, situated: Situated, document: ParsedDocument) -> FinishedDocument:
    content_hash = source.content_hash or ""
    return FinishedDocument(
        publication_id=source.publication_id,
        source_id=source.source_id,
        source_path=source.source_path,
        file_type=source.file_type,
        source=absolute_source(run.settings.library, source.disk_path or b"", source.source_path),
        doc_id=document_id(source.source_path, content_hash),
        content_hash=content_hash,
        document=document,
        chunks=situated.frames[source.source_id],
        first_original_index=source.first_original_index,
        document_output_hash=situated.documents[source.source_id].output_hash,
        output_hash=situated.output_hash(source),
        file_created_at=source.file_created_at,
        file_modified_at=source.file_modified_at,
        anew=source.wanted_stage in PUBLISHED_ANEW,
    )


def _describe(finished: FinishedDocument, decision: str) -> Mapping[str, Fact]:
    return {
        "decision": decision,
        "doc_id": finished.doc_id,
        "chunks": finished.chunks.height,
        "characters": len(finished.document.text),
        "pages": len(finished.document.pages),
        "title": finished.title,
    } | ({"warning": finished.document.warning} if finished.document.warning else {})
