"""Export: the whole corpus as one file that survives the loss of every store."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import structlog

from stemma.bundles.archive import PIECE_BYTES, BundleWriter, gathered
from stemma.bundles.errors import BundlesBusy, CorpusIncomplete
from stemma.bundles.listing import list_bundles
from stemma.bundles.locking import locked_with
from stemma.bundles.manifest import (
    CHUNKS,
    DOCUMENTS,
    FIGURES,
    FILES,
    HISTORY,
    HISTORY_PARTS,
    PICTURES,
    RUNS,
    SOURCES,
    STEMMA,
    VECTORS,
    VERSION,
    WORKSPACES,
)
from stemma.bundles.shelf import Shelf, exports_of, require_room
from stemma.bundles.snapshot import Order, Snapshot, snapshot_of
from stemma.bundles.stack import ingest_settings
from stemma.embedding.models import embedding_spec
from stemma.errors import DocumentError
from stemma.failpoints import reach
from stemma.library.files import open_source
from stemma.settings import Settings
from stemma.stages.installation import Installation, wanted_fingerprints
from stemma.store.embedded import postgres_url
from stemma.store.lake import MissingObject
from stemma.store.locks import EXPORT_LOCK, try_session_lock
from stemma.store.postgres import connect

log = structlog.get_logger()

Progress = Callable[[int, int], None]
"""Called with the bytes that are written, unpacked, and about how many there will be. May raise, to cancel."""


@dataclass(frozen=True)
class Exported:
    """What an export did."""

    name: str
    """Of the new bundle; where nothing is new, of the one that holds it all."""
    place: str
    new: bool
    n_documents: int
    n_chunks: int
    size_bytes: int
    data_version: str
    """The same for the same corpus."""
    left_out: tuple[str, ...] = ()
    """Files that were to be taken along and cannot be read, or are no longer those that were published."""


def export_corpus(
    here: Installation, *, label: str | None = None, shelf: Shelf | None = None, passphrase: str | None = None, with_files: bool = False,
    with_conversations: bool = False,
    force: bool = False, progress: Progress = lambda _done, _whole: None,
) -> Exported:  # fmt: skip
    """Write a bundle of what is published now, unless the latest one here holds exactly that.

    Nobody waits for it: all rows come from one snapshot. Whatever ends it before the end, nothing is left under the bundle's name.

    Args:
        label: a part of the bundle's name; such a bundle is made always, and kept by the retention.
        shelf: where to; None: the reserved folder of the library.
        passphrase: encrypt it.
        with_files: take along the files of the library that documents were made of.
        with_conversations: take along the conversations; a restore brings them back only when asked to.
        force: also when nothing is new.
    Raises:
        BundlesBusy, BundlesUnavailable, CorpusIncomplete, InvalidBundleName.
    """
    settings = here.settings()
    shelf = shelf or exports_of(settings)
    with shelf.writing(), connect(postgres_url(here.base)) as connection:
        connection.autocommit = True
        if not try_session_lock(connection, EXPORT_LOCK):
            raise BundlesBusy("another process is exporting")
        with snapshot_of(connection) as snapshot:
            facts = _facts(snapshot, settings, with_files=with_files, with_conversations=with_conversations)
            if not (force or label) and (held := _same(shelf, facts["data_version"], locked=passphrase is not None)):
                log.info("nothing new to export", bundle=held)
                return Exported(held, str(shelf), False, snapshot.n_documents, snapshot.n_chunks, shelf.size(held), facts["data_version"])
            name = shelf.free_name("rag", snapshot.taken_at, label, locked=passphrase is not None)
            room = snapshot.n_table_bytes + _matrix_bytes(snapshot)
            shelf.require_room(room)
            if passphrase is not None:
                require_room(here.base.home, room)
            with (
                shelf.creating(name) as file,
                locked_with(passphrase, file, here.base.home, data_version=facts["data_version"]) as target,
                BundleWriter(target) as writer,
            ):
                left_out = _write(
                    here, snapshot, facts, writer, lambda done: progress(done, max(room, done)),
                    with_files=with_files, with_conversations=with_conversations,
                )  # fmt: skip
    size_bytes = shelf.size(name)
    log.info("corpus exported", bundle=name, documents=snapshot.n_documents, chunks=snapshot.n_chunks, bytes=size_bytes)
    return Exported(name, str(shelf), True, snapshot.n_documents, snapshot.n_chunks, size_bytes, facts["data_version"], tuple(left_out))


def _facts(snapshot: Snapshot, settings: Settings, *, with_files: bool, with_conversations: bool) -> dict[str, Any]:
    wanted = wanted_fingerprints(settings)
    spec = snapshot.index.spec if snapshot.index else embedding_spec(settings.embedding_model)
    data_version = (
        snapshot.data_version() + (f"+{snapshot.history_version()}" if with_conversations else "") + ("+files" if with_files else "")
    )
    return {
        "format": STEMMA,
        "version": VERSION,
        "corpus": "rag",
        "created_at": snapshot.taken_at.isoformat(),
        "embedding_model": spec.model,
        "embedding_dim": spec.dimension,
        "embedding_spec": asdict(spec),
        "ingest_settings": ingest_settings(settings),
        "fingerprints": asdict(wanted),
        "stale": snapshot.stale(settings, wanted),
        "engine": None,
        "data_version": data_version,
        "schema": snapshot.schema,
        "written_by": f"stemma {version('stemma')}",
    }


def _matrix_bytes(snapshot: Snapshot) -> int:
    return snapshot.n_chunks * snapshot.index.spec.dimension * 4 if snapshot.index else 0


def _same(shelf: Shelf, data_version: str, *, locked: bool) -> str | None:
    """The latest bundle here, if it holds exactly this state of the corpus; names begin with corpus and minute."""
    listed = [bundle for bundle in list_bundles(shelf) if bundle.name.startswith("stemma-rag-") and bundle.locked == locked]
    sound = [bundle for bundle in listed if bundle.verdict in ("ok", "bundle_locked")]
    latest = max(sound, key=lambda bundle: bundle.name, default=None)
    return latest.name if latest and latest.data_version == data_version else None


def _write(
    here: Installation, snapshot: Snapshot, facts: dict[str, Any], writer: BundleWriter, report: Callable[[int], None], *,
    with_files: bool, with_conversations: bool,
) -> list[str]:  # fmt: skip
    """Every member, then the manifest; returns the paths of files that were left out."""

    def reported(pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            report(writer.n_bytes)
            yield piece

    in_chunks, in_vectors, n_sources = Order(), Order(), 0

    def sources() -> Iterator[bytes]:
        nonlocal n_sources
        for line in snapshot.lines("sources"):
            n_sources += 1
            yield line

    writer.member(WORKSPACES, gathered(snapshot.lines("workspaces")))
    writer.member(SOURCES, gathered(sources()))
    writer.member(RUNS, gathered(snapshot.lines("runs")))
    pictures = set(_write_pictures(here, snapshot, writer))
    writer.member(FIGURES, gathered(line for line, sha256 in snapshot.figures() if sha256 is None or sha256 in pictures))
    writer.member(DOCUMENTS, reported(gathered(snapshot.documents())))
    writer.member(CHUNKS, reported(gathered(snapshot.chunks(in_chunks))))
    reach("export.before_vectors")
    writer.member(VECTORS, reported(snapshot.vectors(in_vectors)), packed=False)
    if snapshot.index is None and in_chunks.n_chunks:
        raise CorpusIncomplete("there are chunks and no index of vectors")
    assert in_vectors.digest == in_chunks.digest, "one snapshot gives one order"
    if with_conversations:
        for part in HISTORY_PARTS:
            writer.member(f"{HISTORY}{part}.jsonl", gathered(snapshot.lines(part)))
    left_out = list(_write_files(here, snapshot, writer)) if with_files else []
    counts = {"documents": snapshot.n_documents, "chunks": snapshot.n_chunks, "sources": n_sources}
    members = [member.model_dump() for member in writer.members]
    reach("export.before_manifest")
    writer.finish(json.dumps(facts | {"counts": counts, "members": members}, ensure_ascii=False).encode())
    return left_out


def _write_pictures(here: Installation, snapshot: Snapshot, writer: BundleWriter) -> Iterator[str]:
    """Write the figures' pictures and yield their hashes; those that the lake lost are taken again from the files after a restore."""
    for sha256 in sorted({sha256 for _, sha256 in snapshot.figures() if sha256 is not None}):
        try:
            picture = here.lake.picture(sha256)
        except MissingObject:
            continue
        writer.member(f"{PICTURES}{sha256}", iter([picture]), packed=False)
        yield sha256


def _write_files(here: Installation, snapshot: Snapshot, writer: BundleWriter) -> Iterator[str]:
    """Write the files of the library; yields the paths of those that are not what was published."""
    for file in snapshot.files():
        try:
            with open_source(here.base.library, file.disk_path, file.source_path) as descriptor:
                written = writer.member(f"{FILES}{file.source_id}", iter(lambda d=descriptor: os.read(d, PIECE_BYTES), b""))
        except DocumentError:
            yield file.source_path
            continue
        if written.sha256 != file.content_hash:
            yield file.source_path
