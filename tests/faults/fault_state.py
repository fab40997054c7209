"""The whole state of a corpus, in a form that two corpora of the same library and settings share, whatever happened on the way."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from psycopg import sql

from stemma.lexical.tantivy_index import TantivyIndex
from stemma.store.embedding_indexes import active_embedding_index, open_embedding_indexes
from stemma.store.postgres import Connection
from stemma.store.sparse_indexes import open_sparse_indexes

_CHUNK_COLUMNS = (
    "chunk_index, content, context, contextualized_content, char_start, char_end, start_line, end_line, page_start, page_end, section_path, "
    "chunk_type, n_tokens, text_hash, input_hash"
)


@dataclass
class State:
    """What is in every store, by the path that each source has now."""

    sources: dict[str, tuple] = field(default_factory=dict)
    """(status, error_code, warning_code, content_hash where there is a document)"""
    documents: dict[str, tuple] = field(default_factory=dict)
    """(doc_id, title, text, fingerprints, output hashes, n_chunks, n_pages, parser, chunker)"""
    chunks: dict[str, list[tuple]] = field(default_factory=dict)
    vectors: dict[str, np.ndarray] = field(default_factory=dict)
    """Of the active index, shape (n_chunks, dimension)."""
    broken: list[str] = field(default_factory=list)
    """Promises that this state alone breaks."""

    def without(self, paths: set[str]) -> "State":
        """The same without any document of these sources."""
        left = [{path: value for path, value in part.items() if path not in paths} for part in (self.documents, self.chunks, self.vectors)]
        sources = {path: (*row[:3], None) if path in paths else row for path, row in self.sources.items()}
        return State(sources, *left, self.broken)


def read_state(connection: Connection, home: Path) -> State:
    """Read everything. The corpus is at rest: nothing runs, nothing is due."""
    state = State()
    for path, status, error, warning, content_hash in connection.execute(
        """
        SELECT s.source_path, s.status, s.error_code, s.warning_code, d.content_hash
          FROM sources AS s LEFT JOIN documents AS d USING (source_id) ORDER BY s.source_path
        """
    ):
        state.sources[path] = (status, error, warning, content_hash)
    for path, *values in connection.execute(
        """
        SELECT s.source_path, d.doc_id, d.title, d.text, d.parsing_fingerprint, d.chunking_fingerprint, d.contextualizing_fingerprint,
               d.document_output_hash, d.output_hash, d.n_chunks, d.n_pages, d.parser, d.chunker, d.warning_code
          FROM documents AS d JOIN sources AS s USING (source_id) ORDER BY s.source_path
        """
    ):
        state.documents[path] = tuple(values)
    for path, *values in connection.execute(
        f"SELECT s.source_path, {_CHUNK_COLUMNS.replace('chunk_index', 'c.chunk_index', 1)} "
        "FROM documents AS d JOIN sources AS s USING (source_id) JOIN chunks AS c USING (publication_id) ORDER BY s.source_path, c.chunk_index"
    ):
        state.chunks.setdefault(path, []).append(tuple(values))
    _read_vectors(connection, state)
    _judge_rows(connection, state)
    _judge_keywords(connection, home, state)
    _judge_leftovers(home, state)
    return state


def _read_vectors(connection: Connection, state: State) -> None:
    active = active_embedding_index(connection)
    if active is None:
        return
    vectors: dict[str, list[np.ndarray]] = {}
    for path, vector, cached in connection.execute(
        sql.SQL(
            """
            SELECT s.source_path, v.embedding, e.embedding
              FROM documents AS d
              JOIN sources AS s USING (source_id)
              JOIN chunks AS c USING (publication_id)
              JOIN {} AS v USING (publication_id, chunk_index)
              LEFT JOIN embedding_cache AS e ON e.spec_hash = %s AND e.input_hash = c.input_hash
             ORDER BY s.source_path, c.chunk_index
            """
        ).format(sql.Identifier(active.vector_table)),
        [active.spec.spec_hash],
    ):
        vectors.setdefault(path, []).append(np.array(vector.to_numpy(), np.float32))
        if cached is not None and cached.to_numpy().tobytes() != vector.to_numpy().tobytes():
            state.broken.append(f"{path}: a vector is not that of the cache, to the bit")
    state.vectors = {path: np.stack(rows) for path, rows in vectors.items()}


_BROKEN = {
    "a chunk is not its span of the text": """
        SELECT c.chunk_id FROM chunks AS c JOIN documents AS d USING (publication_id)
         WHERE c.content <> substr(d.text, c.char_start + 1, c.char_end - c.char_start)""",
    "a document has another number of chunks than it says": """
        SELECT d.doc_id FROM documents AS d
         WHERE d.n_chunks <> (SELECT count(*) FROM chunks AS c WHERE c.publication_id = d.publication_id)""",
    "a document is not the live publication of its source": """
        SELECT d.doc_id FROM documents AS d LEFT JOIN publications AS p USING (publication_id)
         WHERE p.state IS DISTINCT FROM 'live' OR p.source_id <> d.source_id OR p.doc_id <> d.doc_id""",
    "a live publication has no document": """
        SELECT p.publication_id::text FROM publications AS p LEFT JOIN documents AS d USING (publication_id)
         WHERE p.state = 'live' AND d.publication_id IS NULL""",
    "a doc_id is not that of path and bytes": """
        SELECT d.doc_id FROM documents AS d JOIN sources AS s USING (source_id)
         WHERE s.status = 'ready' AND (d.source_path <> s.source_path OR d.content_hash <> s.content_hash)
            OR d.doc_id <> left(encode(sha256(convert_to(d.source_path || ':' || d.content_hash, 'UTF8')), 'hex'), 16)""",
    "a chunk_id or original_index is not the one of its document and publication": """
        SELECT c.chunk_id FROM chunks AS c JOIN documents AS d USING (publication_id) JOIN publications AS p USING (publication_id)
         WHERE c.chunk_id <> d.doc_id || '::' || c.chunk_index OR c.original_index <> p.first_original_index + c.chunk_index
            OR c.doc_id <> d.doc_id""",
    "two publications share original indexes": """
        SELECT a.publication_id::text FROM publications AS a JOIN publications AS b ON a.publication_id < b.publication_id
         WHERE a.n_chunks > 0 AND b.n_chunks > 0 AND a.first_original_index < b.first_original_index + b.n_chunks
           AND b.first_original_index < a.first_original_index + a.n_chunks""",
    "an attempt is open": "SELECT attempt_id::text FROM attempts WHERE finished_at IS NULL",
    "a publication is pending, or its entries wait to be removed": """
        SELECT publication_id::text || ' ' || state FROM publications WHERE state IN ('pending', 'superseded', 'abandoned')""",
    "a deletion is not finished": "SELECT source_path FROM sources WHERE deletion_intent IS NOT NULL",
    "the lake holds what a deleted document was made into": "SELECT key FROM stage_results WHERE starts_with(key, 'forgotten:')",
    "a source is being worked on": "SELECT source_path FROM sources WHERE status IN ('pending', 'processing')",
    "coverage names another number of entries than there are chunks": """
        SELECT d.doc_id FROM documents AS d CROSS JOIN corpus_state AS s
          LEFT JOIN sparse_coverage AS c ON c.publication_id = d.publication_id AND c.sparse_index_id = s.active_sparse_index
         WHERE d.n_chunks > 0 AND c.n_entries IS DISTINCT FROM d.n_chunks""",
}


def _judge_rows(connection: Connection, state: State) -> None:
    for promise, query in _BROKEN.items():
        if rows := connection.execute(query).fetchall():
            state.broken.append(f"{promise}: {', '.join(str(row[0]) for row in rows[:5])}")
    for index in open_embedding_indexes(connection):
        missing = connection.execute(
            sql.SQL(
                "SELECT c.chunk_id FROM chunks AS c LEFT JOIN {} AS v USING (publication_id, chunk_index) WHERE v.embedding IS NULL"
            ).format(sql.Identifier(index.vector_table))
        ).fetchall()
        if missing:
            state.broken.append(f"{len(missing)} chunks have no vector in {index.vector_table} ({index.state})")


def _judge_keywords(connection: Connection, home: Path, state: State) -> None:
    live = dict(connection.execute("SELECT publication_id, n_chunks FROM documents WHERE n_chunks > 0").fetchall())
    for index in open_sparse_indexes(connection):
        engine = TantivyIndex(index.folder(home), exclusive=_refuse_writing)
        try:
            held = engine.publications()
        finally:
            engine.close()
        if held != live:
            extra, lost = sorted(held.items() - live.items()), sorted(live.items() - held.items())
            state.broken.append(f"the keyword index {index.name} ({index.state}) holds {extra} too much and lacks {lost}")


def _refuse_writing():
    raise AssertionError("whoever reads the state writes nothing")


def _judge_leftovers(home: Path, state: State) -> None:
    state.broken += [f"a spool was left: {path.name}" for path in (home / "spool").glob("*")] if (home / "spool").is_dir() else []


def differences(found: State, wanted: State) -> list[str]:
    """What differs, a sentence each; vectors may differ by 1e-5 in cosine. A file that fails keeps the version that was live before."""
    said = []
    failed = {path for path, (status, *_) in wanted.sources.items() if status == "failed"}
    found = found.without(failed)
    for name in ("sources", "documents", "chunks"):
        one, other = getattr(found, name), getattr(wanted, name)
        for path in sorted(one.keys() | other.keys()):
            if one.get(path) != other.get(path):
                said.append(f"{name} of {path}: {str(one.get(path))[:600]} instead of {str(other.get(path))[:600]}")
    for path in sorted(found.vectors.keys() | wanted.vectors.keys()):
        one, other = found.vectors.get(path), wanted.vectors.get(path)
        if one is None or other is None or one.shape != other.shape:
            said.append(f"vectors of {path}: {None if one is None else one.shape} instead of {None if other is None else other.shape}")
        elif (distance := float(np.max(1 - np.sum(one * other, axis=1)))) > 1e-5:
            said.append(f"vectors of {path} differ by {distance:g} in cosine")
    return said


def sha256(content: bytes) -> str:
    """sha256 (hex)."""
    return hashlib.sha256(content).hexdigest()
