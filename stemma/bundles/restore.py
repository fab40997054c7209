"""Restoring: the corpus becomes what a bundle holds. Everything is proved first; one transaction is the moment at which readers see it.

What is written before that moment (keyword entries, cached vectors, pictures) is seen by nobody; killed there, the old corpus stays, and the
next look sweeps it. No file is parsed and no model is asked.
"""

import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import IO, Any
from uuid import uuid4

import psycopg
import structlog
from psycopg import sql

from sql import load_queries
from stemma.bundles.archive import Archive
from stemma.bundles.contents import Bundled, Contents, Verified, verify_contents
from stemma.bundles.errors import BundleInvalid, BundlesBusy, BundlesUnavailable, CorpusNotEmpty
from stemma.bundles.locking import unlocked
from stemma.bundles.manifest import HISTORY_PARTS, VARAGITY, Manifest
from stemma.bundles.shelf import LOCKED_SUFFIX, Shelf, exports_of
from stemma.bundles.stack import Difference, drift, require_compatible, stack_of
from stemma.bundles.staging import CHUNKS_AT_ONCE, TEXT_AT_ONCE, Staging
from stemma.embedding.embedder import EmbeddingSpec
from stemma.embedding.models import portable_location
from stemma.errors import DocumentError, MovedWhileReading
from stemma.failpoints import reach
from stemma.library.files import create_source, is_racy
from stemma.library.folders import folder_ids, workspace_ids
from stemma.library.paths import folder_names
from stemma.library.spool import hash_source
from stemma.settings import fingerprint
from stemma.stages.installation import Installation
from stemma.stages.keyword_entries import count_entries, entries_frame
from stemma.stages.keyword_rebuild import CHUNKS_PER_COMMIT, replace_lost_indexes
from stemma.stages.run import now
from stemma.store.embedded import postgres_url
from stemma.store.embedding_indexes import make_building_index
from stemma.store.hnsw import create_hnsw, hnsw_of
from stemma.store.index_lock import IndexesBusy, alone
from stemma.store.locks import EMBEDDING_INDEX_LOCK, RESTORE_LOCK, SPARSE_INDEX_LOCK, WALK_LOCK
from stemma.store.made_outside_runs import note_made_outside_runs, note_restored
from stemma.store.postgres import Connection, StoreBusy
from stemma.store.publications import RESTORED_BY, abandon_restores
from stemma.store.sparse_coverage import record_coverage
from stemma.store.sparse_indexes import Recipe, ensure_sparse_index, open_sparse_indexes

LOCK_WAIT_S = 60
"""Longest wait for a walk, a re-embedding or publications under way; nobody waits for the restore longer than its last transaction."""
TRIES = 3

log = structlog.get_logger()

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many documents are through, and how many there are."""


@dataclass(frozen=True)
class Restored:
    """What a restore did, or would do."""

    name: str
    dry_run: bool
    n_documents: int
    n_chunks: int
    n_superseded: int
    """Documents that were published and are not in the bundle: their sources stay, and are stale."""
    stale: bool
    """Whether something is not what the settings here give; `stemma stale` says what."""
    drift: tuple[Difference, ...]
    missing: tuple[str, ...]
    """Paths of documents whose file is not in this library: kept from the bundle until a walk finds the file."""
    changed: tuple[str, ...]
    """Paths whose file has other bytes than the bundle: the next run reads them."""
    epoch: int | None
    """Of the corpus from now on; None: nothing was restored."""


def verify_bundle(here: Installation, name: str, *, shelf: Shelf | None = None, passphrase: str | None = None) -> Verified:
    """Everything that a restore proves, without restoring. Raises BundleInvalid, BundleIncompatible, BundleLocked or UnknownBundle."""
    with _opened(here, name, shelf, passphrase) as contents:
        return verify_contents(contents)


def restore_bundle(
    here: Installation, name: str, *, shelf: Shelf | None = None, passphrase: str | None = None, into_empty: bool = False,
    with_conversations: bool = False, dry_run: bool = False, progress: Progress = lambda _what, _done, _whole: None,
) -> Restored:  # fmt: skip
    """Replace the corpus by the bundle's: what is not in it is superseded, nothing is merged. Other tables stay as they are.

    Args:
        with_conversations: bring back the bundle's conversations beside those that are here; one that is here stays as it is.
    Raises:
        BundleInvalid, BundleIncompatible, BundleLocked, UnknownBundle, CorpusNotEmpty: nothing was changed.
        BundlesBusy, StoreBusy: walks or publications held it up; nothing was changed.
    """
    with _opened(here, name, shelf, passphrase) as contents, _undisturbed(here) as connection:
        if into_empty and not _is_empty(connection):
            raise CorpusNotEmpty("the corpus holds documents")
        restore = _Restore(here, connection, contents, progress)
        with _refused_by_store():
            restore.stage()
        if not dry_run:
            restore.bring_files()
        facts = restore.look_around()
        if dry_run:
            return Restored(name, True, **facts, epoch=None)
        try:
            restore.write_unseen()
            with _refused_by_store():
                epoch = restore.go_live(into_empty=into_empty, with_conversations=with_conversations)
        except BaseException:
            if not connection.closed:
                abandon_restores(connection, now=now())
            raise
        reach("restore.committed")
        connection.execute("ANALYZE documents, chunks, sources, stage_state")
    log.info("corpus restored", bundle=name, epoch=epoch, **{key: value for key, value in facts.items() if isinstance(value, int)})
    return Restored(name, False, **facts, epoch=epoch)


@contextlib.contextmanager
def _opened(here: Installation, name: str, shelf: Shelf | None, passphrase: str | None) -> Generator[Contents]:
    """The bundle's contents, once its manifest suits this installation; one of the older format is rewritten first."""
    shelf = shelf or exports_of(here.settings())
    stack = stack_of(here)
    with contextlib.ExitStack() as opened:
        file: IO[bytes] = opened.enter_context(shelf.open(name))
        if name.endswith(LOCKED_SUFFIX):
            file = opened.enter_context(unlocked(file, passphrase, here.base.home))
        archive = Archive(file)
        require_compatible(archive.manifest, stack)
        if archive.manifest.format == VARAGITY:
            from stemma.bundles.varagity import rewritten

            archive = Archive(opened.enter_context(rewritten(archive, here.base.home)))
        yield Contents(archive)


@contextlib.contextmanager
def _undisturbed(here: Installation) -> Generator[Connection]:
    """A connection that keeps walks, other restores and work on the indexes away. Raises BundlesBusy."""
    try:
        with alone(postgres_url(here.base), RESTORE_LOCK) as connection:
            connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{LOCK_WAIT_S}s"])
            for lock in (EMBEDDING_INDEX_LOCK, SPARSE_INDEX_LOCK, WALK_LOCK):
                connection.execute("SELECT pg_advisory_lock(%s)", [lock])
            yield connection
    except (IndexesBusy, psycopg.errors.LockNotAvailable) as error:
        raise BundlesBusy("a restore, a walk or work on the indexes goes on") from error


@contextlib.contextmanager
def _refused_by_store() -> Generator[None]:
    """What PostgreSQL cannot hold was no corpus: the bundle is at fault."""
    try:
        yield
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        raise BundleInvalid("rows", f"PostgreSQL refuses them ({str(error).splitlines()[0]})") from error


def _is_empty(connection: Connection) -> bool:
    return connection.execute("SELECT EXISTS (SELECT FROM documents)").fetchone() == (False,)


class _Restore:
    """One restore: its steps, in their order."""

    def __init__(self, here: Installation, connection: Connection, contents: Contents, progress: Progress) -> None:
        self._here, self._connection, self._contents, self._progress = here, connection, contents, progress
        self._queries = load_queries("restoring")
        self._settings = here.settings()
        self._stack = stack_of(here)
        self._manifest: Manifest = contents.manifest
        self._run_id = f"{RESTORED_BY}{uuid4()}"

    def stage(self) -> None:
        """Prove every row and byte of the bundle, and put the rows aside. Raises BundleInvalid."""
        staging = Staging(self._connection, self._settings.library)
        staging.fill_catalogue(self._contents)
        for documents in _batches(self._contents.documents()):
            staging.add(documents)
            self._progress("Checking documents", documents[-1][0] + 1, self._manifest.counts.documents)
        for _ in self._contents.pictures():
            pass
        staging.add_history(self._contents)
        for _, _, pieces in self._contents.files():
            for _ in pieces:
                pass
        staging.index()
        reach("restore.staged")

    def bring_files(self) -> None:
        """Write the files that were taken along and that the library lacks; what is there under their name stays. Raises BundlesUnavailable."""
        for source_id, _, pieces in self._contents.files():
            rows = self._connection.execute(self._queries["file_to_bring"], {"source_id": source_id}).fetchall()
            for disk_path, modified_at in rows:
                try:
                    create_source(self._settings.library, disk_path, pieces, modified_at=modified_at)
                except OSError as error:
                    raise BundlesUnavailable(f"{self._settings.library}: {error.strerror or error}") from error

    def look_around(self) -> dict[str, Any]:
        """Which files of the library are those of the bundle, and which sources are known here: the fields of `Restored`."""
        missing, changed = self._look_at_files()
        for name in ("match_by_path", "match_by_id", "match_new"):
            self._connection.execute(self._queries[name])
        (n_superseded,) = self._connection.execute(self._queries["superseded_by_restore"]).fetchall()[0]
        counts, differences = self._manifest.counts, tuple(drift(self._manifest, self._stack))
        return {
            "n_documents": counts.documents,
            "n_chunks": counts.chunks,
            "n_superseded": n_superseded,
            "stale": self._manifest.stale or bool(differences) or bool(changed) or n_superseded > 0,
            "drift": differences,
            "missing": tuple(missing),
            "changed": tuple(changed),
        }

    def write_unseen(self) -> None:
        """Everything outside of the transaction, none of it visible: folders, pictures, cached vectors, keyword entries."""
        self._place_sources()
        for sha256, data in self._contents.pictures():
            self._here.lake.keep_picture(sha256, data)
        abandon_restores(self._connection, now=now())
        self._connection.execute(self._queries["begin_restored_publications"], {"run_id": self._run_id, "now": now()})
        reach("restore.begun")
        spec = self._stack.spec
        self._connection.execute(
            self._queries["cache_restored_vectors"], {"spec_hash": spec.spec_hash, "prefix": spec.passage_prefix, "now": now()}
        )
        self._write_entries()
        reach("restore.entries_written")

    def go_live(self, *, into_empty: bool, with_conversations: bool) -> int:
        """The transaction after which readers see the bundle's corpus and before which they see the old one. Returns the new epoch."""
        for attempt in range(TRIES):
            try:
                return self._exchange(into_empty=into_empty, with_conversations=with_conversations)
            except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
                if attempt == TRIES - 1:
                    raise StoreBusy(str(error).strip()) from error
        raise AssertionError("the last try returns or raises")

    def _exchange(self, *, into_empty: bool, with_conversations: bool) -> int:
        connection, moment = self._connection, now()
        with connection.transaction():
            connection.execute(load_queries("corpus_indexes")["lock_corpus_alone"])
            reach("restore.locked")
            if into_empty and not _is_empty(connection):
                raise CorpusNotEmpty("documents were published meanwhile")
            self._require_same_catalogue()
            (epoch,) = connection.execute(self._queries["raise_epoch"]).fetchall()[0]
            given: dict[str, Any] = {"now": moment, "run_id": self._run_id}
            for name in ("close_all_attempts", "end_publications", "delete_all_documents", "insert_restored_sources", "revive_restored_partitions",
                         "settle_other_sources", "settle_restored_sources", "insert_restored_runs", "insert_restored_figures", "forget_other_corpus"):  # fmt: skip
                connection.execute(self._queries[name], given)
            index_id = self._insert_corpus(self._stack.spec, given)
            connection.execute(self._queries["insert_restored_stages"], {"embedding_index_id": index_id})
            connection.execute(self._queries["restored_go_live"], given)
            connection.execute(self._queries["raise_original_index"])
            for part in HISTORY_PARTS if with_conversations else ():
                connection.execute(self._queries[f"insert_restored_{part}"])
            note_made_outside_runs(connection, now=moment)
            note_restored(connection, now=moment)
            reach("restore.before_commit")
        return epoch

    def _insert_corpus(self, spec: EmbeddingSpec, given: dict[str, Any]) -> int:
        """Documents, chunks and vectors; an index that is new gets its search structure from all of them at once."""
        connection, queries = self._connection, load_queries("corpus_indexes")
        for name in ("insert_restored_documents", "insert_restored_assets", "insert_restored_chunks"):
            connection.execute(self._queries[name])
        index = make_building_index(connection, spec, location=portable_location(self._settings.embedding_model))
        vectors = sql.Identifier(index.vector_table)
        connection.execute(sql.SQL(self._queries["insert_restored_vectors"]).format(vectors=vectors))
        if hnsw_of(connection, index.vector_table) is None:
            connection.execute("SET LOCAL maintenance_work_mem = '256MB'")
            create_hnsw(connection, index.vector_table)
        if index.state != "active":
            given = given | {"embedding_index_id": index.embedding_index_id}
            connection.execute(queries["retire_open_embedding_indexes"], given)
            connection.execute(queries["activate_embedding_index"], given)
        return index.embedding_index_id

    def _require_same_catalogue(self) -> None:
        """What is here may have been deleted or added since it was matched. Raises StoreBusy."""
        (n_other,) = self._connection.execute(self._queries["matches_changed"]).fetchall()[0]
        if n_other:
            raise StoreBusy(f"{n_other} sources came or went while the bundle was read")

    def _look_at_files(self) -> tuple[list[str], list[str]]:
        """The paths whose file is not there, and those whose file has other bytes."""
        missing: list[str] = []
        changed: list[str] = []
        rows = self._connection.execute(self._queries["files_to_look_at"]).fetchall()
        found: list[tuple[Any, ...]] = []
        for at, (source_id, source_path, disk_path, content_hash) in enumerate(rows, start=1):
            try:
                here, stat = hash_source(self._settings.library, disk_path, source_path)
            except (DocumentError, OSError) as error:
                if isinstance(error, DocumentError) and not isinstance(error, MovedWhileReading):
                    log.warning("file not compared", source_path=source_path, code=error.code)
                missing.append(source_path)
                continue
            same = here == content_hash
            if not same:
                changed.append(source_path)
            found.append((source_id, "same" if same else "changed", *stat, is_racy(stat.mtime_ns, time.time_ns())))
            self._progress("Comparing files", at, len(rows))
        columns = ("source_ids", "found", "sizes", "mtimes", "inodes", "devices", "racy")
        given = {name: [row[at] for row in found] for at, name in enumerate(columns)}
        self._connection.execute(self._queries["note_found"], given)
        return missing, changed

    def _place_sources(self) -> None:
        connection, moment = self._connection, now()
        connection.execute(self._queries["insert_restored_workspaces"])
        rows = connection.execute(self._queries["sources_to_place"]).fetchall()
        workspaces = workspace_ids(connection, {workspace for _, _, _, workspace, _ in rows}, now=moment)
        chains = [
            (workspaces[workspace], () if disk_path is None or contained else folder_names(source_path, disk_path))
            for _, source_path, disk_path, workspace, contained in rows
        ]
        given = {
            "source_ids": [row[0] for row in rows],
            "workspace_ids": [workspace_id for workspace_id, _ in chains],
            "folder_ids": folder_ids(connection, chains, now=moment),
        }
        connection.execute(self._queries["place_sources"], given)

    def _write_entries(self) -> None:
        """To every keyword index that takes part, as publications do."""
        connection = self._connection
        settings = self._settings
        recipe = Recipe(backend=settings.bm25_backend, fingerprint=fingerprint(settings, "bm25"), language=settings.bm25_language)
        replace_lost_indexes(connection, self._here.index_of, recipe)
        ensure_sparse_index(connection, **recipe)
        indexes = open_sparse_indexes(connection)
        rows = connection.execute(self._queries["restored_publications"]).fetchall()
        done = 0
        for publication_ids in _portions(rows):
            entries = entries_frame(connection.execute(self._queries["restored_entries"], {"publication_ids": publication_ids}).fetchall())
            for index in indexes:
                with contextlib.closing(self._here.index_of(index)) as engine:
                    engine.add(entries)
                record_coverage(connection, index, count_entries(entries), now=now())
            done += len(publication_ids)
            self._progress("Indexing documents", done, len(rows))


def _batches(documents: Iterator[Bundled]) -> Iterator[list[tuple[int, Bundled]]]:
    held: list[tuple[int, Bundled]] = []
    n_chunks = n_chars = 0
    for position, bundled in enumerate(documents):
        held.append((position, bundled))
        n_chunks, n_chars = n_chunks + len(bundled.chunks), n_chars + bundled.document.n_chars
        if n_chunks >= CHUNKS_AT_ONCE or n_chars >= TEXT_AT_ONCE:
            yield held
            held, n_chunks, n_chars = [], 0, 0
    if held:
        yield held


def _portions(publications: list[tuple[int, int]]) -> Iterator[list[int]]:
    """publication_ids whose chunks go into one commit of the engine."""
    held: list[int] = []
    n_entries = 0
    for publication_id, n_chunks in publications:
        held.append(publication_id)
        n_entries += n_chunks
        if n_entries >= CHUNKS_PER_COMMIT:
            yield held
            held, n_entries = [], 0
    if held:
        yield held
