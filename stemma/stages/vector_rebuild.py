"""The search structure over the active vectors, made again from the vectors themselves: no model is asked."""

from dataclasses import replace

from stemma.stages.installation import Installation
from stemma.store.embedded import postgres_url
from stemma.store.embedding_indexes import active_embedding_index
from stemma.store.hnsw import Hnsw, build_hnsw, hnsw_of
from stemma.store.index_lock import alone
from stemma.store.locks import EMBEDDING_INDEX_LOCK
from stemma.store.postgres import explained


def rebuild_search_structure(here: Installation, *, m: int | None = None, ef_construction: int | None = None) -> Hnsw | None:
    """Build it beside the one in use, then exchange the two; searches go on. Returns how it is built, None before the first ingest.

    Args:
        m, ef_construction: None keeps what is in use.
    Raises:
        InvalidHnsw: pgvector does not build with these; nothing was done.
        IndexesBusy: another process is at work on the vectors.
        StoreBusy: searches kept the old one for more than ten seconds; the new one is kept, and taken by the next call.
    """
    with alone(postgres_url(here.base), EMBEDDING_INDEX_LOCK) as connection, explained():
        index = active_embedding_index(connection)
        if index is None:
            return None
        built = hnsw_of(connection, index.vector_table)
        hnsw = built.hnsw if built else Hnsw()
        wanted = replace(hnsw, m=m or hnsw.m, ef_construction=ef_construction or hnsw.ef_construction)
        build_hnsw(connection, index.vector_table, wanted, again=True)
        return wanted
