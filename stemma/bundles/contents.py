"""What a bundle holds, proved row by row: nothing that comes out of here contradicts the manifest, its own rows or their hashes."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

import numpy as np

from stemma.bundles.archive import Archive
from stemma.bundles.errors import BundleInvalid
from stemma.bundles.manifest import CHUNKS, DOCUMENTS, FIGURES, FILES, HISTORY, HISTORY_PARTS, PICTURES, RUNS, SOURCES, VECTORS, WORKSPACES
from stemma.bundles.records import (
    MIRRORED,
    BundledChunk,
    BundledDocument,
    BundledFigure,
    BundledRun,
    BundledSource,
    BundledWorkspace,
    HistoryRow,
    parse,
)
from stemma.library.paths import document_id
from stemma.store.chunk_record import chunk_id

NORM_TOLERANCE = 1e-3
"""How far from 1 the length of a normalised vector may be; the audit allows the same."""


@dataclass(frozen=True)
class Bundled:
    """A document, its chunks in order, and their vectors: little-endian float32, a row per chunk."""

    document: BundledDocument
    chunks: list[BundledChunk]
    vectors: bytes


class Contents:
    """The rows of an archive of Stemma's own format, each member to be read once and to its end, sources before documents.

    Every method raises BundleInvalid at the first row that cannot be, and at a member's end if its bytes are not those recorded.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.manifest = archive.manifest
        self._source_ids: set[UUID] = set()
        self._excluded: set[UUID] = set()

    def workspaces(self) -> Iterator[BundledWorkspace]:
        """By key."""
        for where, line in self._numbered(WORKSPACES):
            yield parse(BundledWorkspace, line, where)

    def sources(self) -> Iterator[BundledSource]:
        """A container comes before what it holds."""
        paths: set[str] = set()
        for where, line in self._numbered(SOURCES):
            source = parse(BundledSource, line, where)
            if problem := source.problem():
                raise BundleInvalid(f"{where}, source_path", problem)
            if source.source_path in paths or source.source_id in self._source_ids:
                raise BundleInvalid(where, "a source is listed twice")
            if not {source.container_id, source.file_id} - {None} <= self._source_ids:
                raise BundleInvalid(f"{where}, container_id", "what holds it is not listed before it")
            paths.add(source.source_path)
            self._source_ids.add(source.source_id)
            yield source
        if len(self._source_ids) != self.manifest.counts.sources:
            raise BundleInvalid(SOURCES, f"{len(self._source_ids)} rows, {self.manifest.counts.sources} are recorded")

    def runs(self) -> Iterator[BundledRun]:
        """The settings of the runs that made something of it."""
        for where, line in self._numbered(RUNS):
            yield parse(BundledRun, line, where)

    def figures(self) -> Iterator[BundledFigure]:
        """Every picture that one names is a member."""
        pictures = {member.name for member in self.manifest.members if member.name.startswith(PICTURES)}
        for where, line in self._numbered(FIGURES):
            figure = parse(BundledFigure, line, where)
            if figure.sha256 is not None and f"{PICTURES}{figure.sha256}" not in pictures:
                raise BundleInvalid(where, "its picture is not in the bundle")
            yield figure

    def documents(self) -> Iterator[Bundled]:
        """Every document, whole."""
        chunk_lines, vectors = self._numbered(CHUNKS), self._archive.rows(VECTORS, self.manifest.embedding_dim * 4)
        doc_ids: set[str] = set()
        seen: set[UUID] = set()
        n_chunks, last_index = 0, -1
        for where, line in self._numbered(DOCUMENTS):
            document = parse(BundledDocument, line, where)
            _check_document(document, where)
            if document.source_id not in self._source_ids:
                raise BundleInvalid(f"{where}, source_id", "no source has it")
            if document.doc_id in doc_ids or document.source_id in seen:
                raise BundleInvalid(where, "the document is there twice")
            doc_ids.add(document.doc_id)
            seen.add(document.source_id)
            chunks: list[BundledChunk] = []
            for at, chunk_line in islice(chunk_lines, document.n_chunks):
                chunk = parse(BundledChunk, chunk_line, at)
                _check_chunk(document, chunk, len(chunks), last_index, at)
                last_index = chunk.original_index
                chunks.append(chunk)
            if len(chunks) < document.n_chunks:
                raise BundleInvalid(CHUNKS, f"{document.n_chunks - len(chunks)} chunks of {document.source_path} are missing")
            n_chunks += len(chunks)
            yield Bundled(document, chunks, self._matrix(list(islice(vectors, len(chunks))), len(chunks), where))
        if surplus := next(chunk_lines, None):
            raise BundleInvalid(surplus[0], "the chunk belongs to no document")
        if next(vectors, None) is not None:
            raise BundleInvalid(VECTORS, "a vector belongs to no chunk")
        counts = self.manifest.counts
        if (len(doc_ids), n_chunks) != (counts.documents, counts.chunks):
            raise BundleInvalid(
                "counts", f"{counts.documents} documents and {counts.chunks} chunks are recorded, {len(doc_ids)} and {n_chunks} are there"
            )

    def pictures(self) -> Iterator[tuple[str, bytes]]:
        """sha256 -> bytes, one after the other."""
        for member in self.manifest.members:
            if member.name.startswith(PICTURES):
                if member.name.removeprefix(PICTURES) != member.sha256:
                    raise BundleInvalid(member.name, "it is not named after its bytes")
                yield member.sha256, b"".join(self._archive.pieces(member.name))

    def history(self) -> Iterator[tuple[str, str]]:
        """(part, line) of the conversations that were taken along; what stands in a line is judged by the tables that it is for."""
        names = {member.name for member in self.manifest.members}
        for part in HISTORY_PARTS:
            if (name := f"{HISTORY}{part}.jsonl") in names:
                for where, line in self._numbered(name):
                    parse(HistoryRow, line, where)
                    yield part, line.decode()

    def files(self) -> Iterator[tuple[UUID, str, Iterator[bytes]]]:
        """source_id, sha256 and the pieces of each file of the library that was taken along; each to be read to its end."""
        for member in self.manifest.members:
            if member.name.startswith(FILES):
                source_id = UUID(member.name.removeprefix(FILES))
                if source_id not in self._source_ids:
                    raise BundleInvalid(member.name, "no source has it")
                yield source_id, member.sha256, self._archive.pieces(member.name)

    def _numbered(self, name: str) -> Iterator[tuple[str, bytes]]:
        return ((f"{name} line {number}", line) for number, line in enumerate(self._archive.lines(name), start=1))

    def _matrix(self, rows: list[bytes], n_chunks: int, where: str) -> bytes:
        if len(rows) < n_chunks:
            raise BundleInvalid(VECTORS, f"vectors of the document of {where} are missing")
        data = b"".join(rows)
        matrix = np.frombuffer(data, dtype="<f4").reshape(n_chunks, self.manifest.embedding_dim)
        if not np.isfinite(matrix).all():
            raise BundleInvalid(VECTORS, f"a vector of the document of {where} is not finite")
        spec = self.manifest.embedding_spec or {}
        if spec.get("normalized") and (np.abs(np.linalg.norm(matrix, axis=1) - 1) > NORM_TOLERANCE).any():
            raise BundleInvalid(VECTORS, f"a vector of the document of {where} has not the length 1")
        return data


@dataclass(frozen=True)
class Verified:
    """What a bundle was found to hold."""

    n_documents: int
    n_chunks: int
    n_files: int


def verify_contents(contents: Contents) -> Verified:
    """Read and prove every row and every byte; nothing is written anywhere. Raises BundleInvalid."""
    for rows in (contents.workspaces(), contents.sources(), contents.runs(), contents.figures()):
        for _ in rows:
            pass
    n_documents = n_chunks = n_files = 0
    for bundled in contents.documents():
        n_documents += 1
        n_chunks += len(bundled.chunks)
    for _ in contents.pictures():
        pass
    for _ in contents.history():
        pass
    for _, _, pieces in contents.files():
        n_files += 1
        for _ in pieces:
            pass
    return Verified(n_documents, n_chunks, n_files)


def _check_document(document: BundledDocument, where: str) -> None:
    from_outside = document.source_path.startswith("/")  # of a library: what gave it its name is not known here
    if (
        document.document_type == "FILE"
        and not from_outside
        and document.doc_id != document_id(document.source_path, document.content_hash or "")
    ):
        raise BundleInvalid(f"{where}, doc_id", "it is not that of this path and these bytes")
    if (document.n_chars, document.n_pages) != (len(document.text), len(document.pages)):
        raise BundleInvalid(where, "text or pages are not as many as stated")
    spans = (*document.blocks, *document.pages, *document.assets)
    if any(not span.char_start <= span.char_end <= document.n_chars for span in spans):
        raise BundleInvalid(where, "a span lies outside of the text")
    if len({stage.stage for stage in document.stages}) < len(document.stages):
        raise BundleInvalid(f"{where}, stages", "a stage is listed twice")
    if len({asset.asset_index for asset in document.assets}) < len(document.assets):
        raise BundleInvalid(f"{where}, assets", "an asset is listed twice")


def _check_chunk(document: BundledDocument, chunk: BundledChunk, index: int, last_index: int, where: str) -> None:
    if (chunk.doc_id, chunk.chunk_index, chunk.chunk_id) != (document.doc_id, index, chunk_id(document.doc_id, index)):
        raise BundleInvalid(f"{where}, chunk_id", f"chunk {index} of {document.doc_id} is expected here")
    if chunk.original_index <= last_index:
        raise BundleInvalid(f"{where}, original_index", "the numbers do not rise")
    if document.text[chunk.char_start : chunk.char_end] != chunk.content:
        raise BundleInvalid(f"{where}, content", "it is not what stands in the text at its place")
    if chunk.contextualized_content != (chunk.content if chunk.context is None else f"{chunk.context}\n\n{chunk.content}"):
        raise BundleInvalid(f"{where}, contextualized_content", "it is not context and content")
    if chunk.text_hash != hashlib.sha256(chunk.content.encode()).hexdigest():
        raise BundleInvalid(f"{where}, text_hash", "it is not that of the content")
    record = chunk.metadata
    if differing := next((name for name in MIRRORED if getattr(chunk, name) != getattr(record, name)), None):
        raise BundleInvalid(f"{where}, metadata.{differing}", "the record says something else than the column")
    if record.source_path != document.source_path or record.content_hash != document.content_hash:
        raise BundleInvalid(f"{where}, metadata", "the record is that of another document")
