"""Repair: put right what an audit found, from what is still true; what needs work is left to the next run, which asks no model twice."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import polars as pl
from psycopg import sql

from sql import load_queries
from stemma.audit.database import spec_parameters
from stemma.failpoints import reach
from stemma.library.wishes import request_ingest
from stemma.stages.installation import Installation
from stemma.stages.keyword_rebuild import rebuild_keyword_index
from stemma.store.embedding_indexes import open_embedding_indexes
from stemma.store.locks import lock_sources
from stemma.store.postgres import Connection

PUBLISHED_AGAIN = (
    "live_without_document",
    "document_not_live",
    "chunks_not_dense",
    "chunk_hash_differs",
    "offsets_differ",
    "recorded_corpus_differs",
)
LEFT_TO_THE_NEXT_LOOK = ("document_without_file", "file_without_document", "stale")
NOT_REPAIRED = ("vector_width_differs",)
"""A vector table of another width was changed by hand: only a backup or `stemma reembed` helps."""


def repair(here: Installation, found: pl.DataFrame, *, now: datetime) -> list[str]:
    """Put the violations (VIOLATION_SCHEMA) right; returns a sentence for each thing that was done.

    The files are the source of truth for documents, the cache for vectors, PostgreSQL for keyword entries. No model is asked here;
    documents that must be made again are, by the next run, from stage results and cached vectors where these are sound.
    Raises LakeUnavailable, LexicalIndexUnavailable, IndexesBusy or StoreBusy; what was done until then stands, and may be repeated.
    """
    done: list[str] = []
    _small_things(here, found, done, now=now)
    _vectors(here, found, done)
    again = _source_ids(found, *PUBLISHED_AGAIN)
    if again:
        _locked(here, again, ("end_without_document", "drop_documents_not_live", "publish_again"), now=now)
        reach("repair.published_again")
        done.append(f"{len(again)} documents are published again by the next run")
    if not _of(found, "keyword_index_unreadable", "keyword_entries_missing").is_empty():
        rebuilt = rebuild_keyword_index(here)
        done.append(f"the keyword index was made again from the rows: {rebuilt.n_entries} entries of {rebuilt.n_documents} documents")
    elif orphans := [int(subject) for subject in _of(found, "keyword_entries_orphaned")["subject"]]:
        here.remove_sparse(orphans)
        done.append(f"keyword entries of {len(orphans)} publications that are gone were removed")
    reach("repair.before_lake")
    _lake(here, found, done)
    if done or not _of(found, *LEFT_TO_THE_NEXT_LOOK).is_empty():
        with here.pool.connection() as connection:
            request_ingest(connection, paths=None, force=False, now=now)
        done.append("the library is looked at as soon as Stemma runs")
    return done


def _of(found: pl.DataFrame, *checks: str) -> pl.DataFrame:
    return found.filter(pl.col("check").is_in(checks))


def _source_ids(found: pl.DataFrame, *checks: str) -> list[UUID]:
    return [UUID(source_id) for source_id in sorted(set(_of(found, *checks)["source_id"].drop_nulls()))]


def _locked(here: Installation, source_ids: Sequence[UUID], names: Sequence[str], **parameters: Any) -> None:
    """Run the queries of these names for the sources, in the order of locks that publications take."""
    queries = load_queries("audit")
    with here.pool.connection() as connection, connection.transaction():
        connection.execute("SELECT FROM corpus_state FOR SHARE")
        lock_sources(connection, source_ids)
        for name in names:
            connection.execute(queries[name], {"source_ids": list(source_ids), **parameters})


def _small_things(here: Installation, found: pl.DataFrame, done: list[str], *, now: datetime) -> None:
    queries = load_queries("audit")
    if not _of(found, "active_index_differs").is_empty():
        with here.pool.connection() as connection, connection.transaction():
            connection.execute("SELECT FROM corpus_state FOR UPDATE")
            connection.execute(queries["name_active_indexes"])
        done.append("the indexes that corpus_state names are the active ones")
    if not _of(found, "original_index_reused").is_empty():
        with here.pool.connection() as connection:
            connection.execute(queries["raise_original_index"])
        done.append("the counter of original indexes was raised")
    if untrue := _source_ids(found, "status_differs"):
        _locked(here, untrue, ["tell_status"], now=now)
        done.append(f"the status of {len(untrue)} sources was corrected")
    if changed := _source_ids(found, "file_differs"):
        _locked(here, changed, ["read_again"])
        done.append(f"{len(changed)} files are read again by the next run")


def _vectors(here: Installation, found: pl.DataFrame, done: list[str]) -> None:
    concerned = _source_ids(found, "vector_missing", "vector_differs")
    if not concerned and _of(found, "cached_vector_damaged").is_empty():
        return
    queries = load_queries("audit")
    with here.pool.connection() as connection:
        for index in open_embedding_indexes(connection):
            parameters = spec_parameters(index.spec)
            if n_damaged := connection.execute(queries["forget_damaged_vectors"], parameters).rowcount:
                done.append(f"{n_damaged} damaged vectors were removed from the cache")
            _vectors_from_cache(connection, index.vector_table, parameters | {"source_ids": concerned})
    reach("repair.vectors_taken")
    if concerned:
        _locked(here, concerned, ["embed_again"])
        done.append(f"the vectors of {len(concerned)} documents were taken from the cache; the next run embeds what it lacks")


def _vectors_from_cache(connection: Connection, vector_table: str, parameters: dict[str, Any]) -> None:
    query = sql.SQL(load_queries("audit")["vectors_from_cache"]).format(vectors=sql.Identifier(vector_table))
    with connection.transaction():
        connection.execute("SELECT FROM corpus_state FOR SHARE")
        lock_sources(connection, parameters["source_ids"])
        connection.execute(query, parameters)


def _lake(here: Installation, found: pl.DataFrame, done: list[str]) -> None:
    if missing := _of(found, "lake_object_missing")["subject"].to_list():
        with here.pool.connection() as connection:
            connection.execute(load_queries("audit")["forget_missing_objects"], {"objects": missing})
        done.append(f"{len(missing)} objects that the lake lost were forgotten")
    if orphaned := _of(found, "lake_object_orphaned")["subject"].to_list():
        n_bytes = sum(stored.size for stored in here.lake.objects() if stored.name in set(orphaned))
        for name in orphaned:
            here.lake.remove(name)
        done.append(f"{len(orphaned)} objects that nothing records were removed from the lake: {n_bytes} bytes")
