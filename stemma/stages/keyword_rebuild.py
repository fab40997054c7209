"""Making a keyword index again from PostgreSQL's rows: when it is lost, when its recipe changed, or on demand. No file, no model."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

import structlog

from stemma.failpoints import reach
from stemma.lexical.errors import ElasticsearchNotConfigured, ElasticsearchRefused, EntriesRefused, LexicalIndexDamaged
from stemma.lexical.index import LexicalIndex
from stemma.settings import Settings, fingerprint
from stemma.stages.installation import Installation
from stemma.stages.keyword_entries import count_entries, live_entries
from stemma.stages.run import now
from stemma.store.embedded import postgres_url
from stemma.store.index_lock import IndexesBusy, alone
from stemma.store.locks import SPARSE_INDEX_LOCK
from stemma.store.postgres import Connection
from stemma.store.publications import abandon_restores
from stemma.store.sparse_coverage import n_uncovered, note_entries, record_coverage, recorded_entries, uncovered_publications
from stemma.store.sparse_indexes import (
    Recipe,
    SparseIndex,
    active_sparse_index,
    begin_second_index,
    drop_sparse_index,
    droppable_sparse_indexes,
    is_of_active_recipe,
    open_sparse_indexes,
    replace_lost_index,
    retire_unwanted,
    switch_sparse_index,
)

CHUNKS_PER_COMMIT = 5_000
"""Entries per commit of the engine: what is repeated at most after a kill."""
PUBLICATIONS_PER_LOOK = 500
MAX_ROUNDS = 20

log = structlog.get_logger()


@dataclass(frozen=True)
class KeywordRebuild:
    """What was done."""

    sparse_index_id: int | None
    """Of the index that searches read now; None: nothing was ever ingested."""
    reason: str | None
    """Why the index before it could not be read any more; None: it could."""
    n_documents: int
    n_entries: int


def damage_of(connection: Connection, index: SparseIndex, index_of: Callable[[SparseIndex], LexicalIndex]) -> str | None:
    """Why the index cannot answer, in a few words; None: it holds every entry that was recorded for what is live.

    Raises LexicalIndexUnavailable when that cannot be said now.
    """
    recorded = recorded_entries(connection, index)  # first: what is recorded is already in the index, and stays a minute after it is live
    if not recorded:
        return None
    try:
        with contextlib.closing(index_of(index)) as engine:
            held = engine.publications()
    except LexicalIndexDamaged as error:
        return error.args[0]
    missing = {item for item in recorded.items() if held.get(item[0]) != item[1]}
    if missing:  # what is being deleted since then was not lost
        missing &= recorded_entries(connection, index).items()
    n_lost = len(missing)
    return f"the entries of {n_lost} documents are gone" if n_lost else None


def replace_lost_indexes(connection: Connection, index_of: Callable[[SparseIndex], LexicalIndex], wanted: Recipe) -> str | None:
    """Put empty indexes in the place of lost ones; returns why the active one was replaced, None where it was not.

    A lost index gets one of its own recipe. One whose server is named no more gets one of the recipe that is wanted now.
    The connection is in autocommit.
    """
    reason: str | None = None
    for index in open_sparse_indexes(connection):
        try:
            damage = damage_of(connection, index, index_of)
            recipe = None
        except ElasticsearchNotConfigured as error:
            damage, recipe = error.args[0], wanted
        if damage is None:
            continue
        log.warning("keyword index lost", index=index.name, state=index.state, reason=damage)
        replace_lost_index(connection, index, recipe=recipe, now=now())
        reason = damage if index.state == "active" else reason
    return reason


def rebuild_keyword_index(here: Installation, *, progress: Callable[[int, int], None] = lambda _done, _whole: None) -> KeywordRebuild:
    """Make the keyword index again, by the recipe that is wanted now, and let searches read it when it is whole.

    A sound index answers until then; while the active one is lost, full-text search in PostgreSQL does. What an earlier call wrote is kept.

    Args:
        progress: called after each commit with how many documents are done, and how many there are to do.
    Raises:
        IndexesBusy: another process does this already.
        LexicalIndexUnavailable: its disk or server does not answer.
    """
    settings = here.settings()
    wanted = fingerprint(settings, "bm25")
    with alone(postgres_url(here.base), SPARSE_INDEX_LOCK) as connection:
        if active_sparse_index(connection) is None:
            return KeywordRebuild(None, None, 0, 0)
        reason = replace_lost_indexes(connection, here.index_of, _recipe_of(settings, wanted))
        retire_unwanted(connection, wanted, now=now())
        active = active_sparse_index(connection)
        assert active is not None
        index = active if active.incomplete else begin_second_index(connection, **_recipe_of(settings, wanted))
        n_documents = n_entries = 0
        for _ in range(MAX_ROUNDS):
            documents, entries = _fill(here, connection, index, progress=progress)
            n_documents, n_entries = n_documents + documents, n_entries + entries
            if switch_sparse_index(connection, index, now=now()) == 0:
                break
        else:
            raise IndexesBusy("documents are published faster than they are indexed")
        note_entries(connection, index, wanted, now=now())
    _show(here, index)
    log.info("keyword index made again", index=index.name, documents=n_documents, entries=n_entries, reason=reason)
    return KeywordRebuild(index.sparse_index_id, reason, n_documents, n_entries)


def tend_keyword_index(here: Installation, *, budget_s: float) -> list[str]:
    """What keeps the keyword index whole without anyone asking; sentences about what was done, none when all is well.

    A lost one is replaced and filled, within the time; the next call goes on. One that is complete and wanted is switched to; what is
    retired for RETIRE_AFTER_S is removed. Raises LexicalIndexUnavailable.
    """
    deadline = monotonic() + budget_s
    settings = here.settings()
    wanted = fingerprint(settings, "bm25")
    said: list[str] = []
    try:
        with alone(postgres_url(here.base), SPARSE_INDEX_LOCK) as connection:
            abandon_restores(connection, now=now())
            if reason := replace_lost_indexes(connection, here.index_of, _recipe_of(settings, wanted)):
                said.append(f"the keyword index was lost ({reason}); it is made again from the rows, full-text search answers meanwhile")
            retire_unwanted(connection, wanted, now=now())
            for index in open_sparse_indexes(connection):
                if index.state == "building" or index.incomplete:
                    said += _go_on(here, connection, index, wanted, deadline=deadline)
            if (active := active_sparse_index(connection)) and not active.incomplete:
                said += _show(here, active)
            for index in droppable_sparse_indexes(connection, before=now() - timedelta(seconds=settings.retire_after_s)):
                if not here.keyword_engines.can_open(index):
                    continue  # its server is named no more; it goes when it is named again
                here.keyword_engines.remove(index)
                drop_sparse_index(connection, index)
                said.append(f"the retired keyword index {index.name} was removed")
    except IndexesBusy:
        said.append("another process is at work on the keyword index")
    return said


def _recipe_of(settings: Settings, wanted: str) -> Recipe:
    return Recipe(backend=settings.bm25_backend, fingerprint=wanted, language=settings.bm25_language)


def _go_on(here: Installation, connection: Connection, index: SparseIndex, wanted: str, *, deadline: float) -> list[str]:
    """Fill an index that is to hold what the active one holds or held, and switch to any that is complete.

    One of another recipe is filled by the runs that its settings make due, or by `rebuild_keyword_index`.
    """
    if index.incomplete or is_of_active_recipe(connection, index):
        _fill(here, connection, index, deadline=deadline)
    if lacking := switch_sparse_index(connection, index, now=now()):
        return [f"the keyword index {index.name} is being built and lacks {lacking} documents"]
    note_entries(connection, index, wanted, now=now())
    return [f"searches read the keyword index {index.name} from now on"]


def _fill(
    here: Installation,
    connection: Connection,
    index: SparseIndex,
    *,
    progress: Callable[[int, int], None] = lambda _done, _whole: None,
    deadline: float | None = None,
) -> tuple[int, int]:
    """One round over what the index lacks, at least one commit: (documents, entries). Raises EntriesRefused after it, for those."""
    n_documents = n_entries = last = 0
    refused: dict[int, str] = {}
    while found := uncovered_publications(connection, index, after=last, limit=PUBLICATIONS_PER_LOOK):
        taken, n_chunks = list[int](), 0
        for publication_id, count in found:
            taken.append(publication_id)
            n_chunks += count
            if n_chunks >= CHUNKS_PER_COMMIT:
                break
        last = taken[-1]
        entries = live_entries(connection, taken)
        try:
            with contextlib.closing(here.index_of(index)) as engine:
                engine.add(entries)
        except EntriesRefused as error:
            refused |= error.reasons
        reach("keyword_rebuild.entries_added")
        counts = {publication_id: n for publication_id, n in count_entries(entries).items() if publication_id not in refused}
        record_coverage(connection, index, counts, now=now())
        reach("keyword_rebuild.covered")
        n_documents, n_entries = n_documents + len(counts), n_entries + entries.height
        progress(n_documents, n_documents + n_uncovered(connection, index))
        if deadline is not None and monotonic() > deadline:
            break
    if refused:
        raise EntriesRefused(refused)
    return n_documents, n_entries


def _show(here: Installation, index: SparseIndex) -> list[str]:
    """Name the index to other programs; nothing of ours depends on that, so a server that does not allow it is only told of."""
    try:
        here.keyword_engines.show(index)
    except ElasticsearchRefused as error:
        log.warning("keyword index not shown", index=index.name, reason=str(error))
        return [str(error)]
    return []
