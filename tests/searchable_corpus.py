"""A corpus for tests of reading: published rows, vectors and keyword entries, written as the last step of ingestion leaves them."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import numpy as np
import polars as pl
import psycopg
from psycopg import sql

from stemma.embedding.embedder import Embedder, EmbeddingSpec, Vectors
from stemma.lexical.index import ENTRY_SCHEMA
from stemma.lexical.tantivy_index import TantivyIndex
from stemma.settings import Settings
from stemma.store.postgres import Connection

WORDS = 32  # dimension of the vectors below


class WordCounts:
    """An embedder that needs no model: a text's vector counts its words into WORDS buckets, so texts sharing words are near."""

    spec = EmbeddingSpec(model="word-counts", revision="1" * 64, dimension=WORDS, max_tokens=1_000_000)

    def embed_passages(self, passages: Sequence[str]) -> Vectors:
        return np.stack([self.embed_query(passage) for passage in passages])

    def embed_query(self, query: str) -> Vectors:
        vector = np.full(WORDS, 0.01, dtype=np.float32)
        for word in query.lower().split():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % WORDS] += 1
        return vector / np.linalg.norm(vector)


@dataclass(frozen=True)
class Published:
    """What a published document is called."""

    source_id: str
    doc_id: str
    publication_id: int
    chunk_ids: list[str] = field(default_factory=list)


@dataclass
class SearchableCorpus:
    """Writes to one database and the keyword index in one home."""

    connection: Connection
    settings: Settings
    embedder: Embedder = field(default_factory=WordCounts)

    def __post_init__(self) -> None:
        from stemma.store.embedding_indexes import ensure_embedding_index
        from stemma.store.sparse_indexes import ensure_sparse_index

        self.embedding_index = ensure_embedding_index(self.connection, self.embedder.spec)
        self.sparse_index = ensure_sparse_index(self.connection, backend="tantivy", fingerprint="f" * 64)
        self.connection.commit()
        self.keywords = TantivyIndex(self.settings.home / "bm25" / self.sparse_index.name, exclusive=nullcontext)

    def publish(self, source_path: str, *passages: str, source_id: str | None = None, **options: object) -> Published:
        """Make these passages the live version of a document: keyword entries first, then one transaction."""
        published = self.prepare(source_path, *passages, source_id=source_id, **options)
        return published()

    def prepare(
        self,
        source_path: str,
        *passages: str,
        source_id: str | None = None,
        page: int | None = None,
        file_type: str | None = None,
        context: str | None = None,
        document_type: str = "FILE",
        language: str = "",
        modified_at: datetime | None = None,
        ingested_at: datetime | None = None,
        sections: Sequence[Sequence[str]] | None = None,
        pages: Sequence[int] | None = None,
    ) -> Callable[[], Published]:
        """Everything up to the publishing transaction, which the returned function runs.

        Args:
            sections: a trail of headings per passage.
            pages: a page per passage; `page` is that of all.
        """
        text = "\n\n".join(passages)
        content_hash = hashlib.sha256(text.encode()).hexdigest()
        doc_id = hashlib.sha256(f"{source_path}:{content_hash}".encode()).hexdigest()[:16]
        workspace = source_path.split("/", maxsplit=1)[0] if "/" in source_path else "default"
        file_type = file_type if file_type is not None else source_path.rpartition(".")[2]
        source = UUID(source_id) if source_id else uuid4()
        with self.connection.transaction():
            self.connection.execute("INSERT INTO workspaces (key, name) VALUES (%s, %s) ON CONFLICT DO NOTHING", [workspace, workspace])
            self.connection.execute(
                """
                INSERT INTO sources (source_id, workspace_id, source_path, partition_key, disk_path, file_type, content_hash)
                SELECT %s, workspace_id, %s, %s, %s, %s, %s FROM workspaces WHERE key = %s
                ON CONFLICT (source_id) DO UPDATE SET source_path = excluded.source_path, content_hash = excluded.content_hash
                """,
                [source, source_path, source_path, source_path.encode(), file_type, content_hash, workspace],
            )
            publication_id, first = self.connection.execute(
                """
                WITH reserved AS (UPDATE original_index_counter SET next = next + %s RETURNING next - %s AS first)
                INSERT INTO publications (source_id, doc_id, source_path, run_id, content_hash, n_chunks, first_original_index)
                SELECT %s, %s, %s, 'test', %s, %s, first FROM reserved RETURNING publication_id, first_original_index
                """,
                [len(passages), len(passages), source, doc_id, source_path, content_hash, len(passages)],
            ).fetchone()
        starts = [sum(len(passage) + 2 for passage in passages[:index]) for index in range(len(passages))]
        rows = [
            {
                "chunk_id": f"{doc_id}::{index}",
                "chunk_index": index,
                "publication_id": publication_id,
                "doc_id": doc_id,
                "original_index": first + index,
                "content": passage,
                "context": context,
                "contextualized_content": f"{context}\n\n{passage}" if context else passage,
                "char_start": starts[index],
                "char_end": starts[index] + len(passage),
                "start_line": text[: starts[index]].count("\n") + 1,
                "end_line": text[: starts[index] + len(passage)].count("\n") + 1,
                "page_start": pages[index] if pages else page,
                "page_end": pages[index] if pages else page,
                "section_path": list(sections[index]) if sections else ["Top", f"Part {index}"],
                "chunk_type": "prose",
                "n_tokens": len(passage.split()),
                "text_hash": hashlib.sha256(passage.encode()).hexdigest(),
                "input_hash": hashlib.sha256(passage.encode()).hexdigest(),
                "metadata": psycopg.types.json.Jsonb({"extraction": "text"}),
            }
            for index, passage in enumerate(passages)
        ]
        clocks = {"file_modified_at": modified_at, "ingested_at": ingested_at or datetime.now(UTC)}
        document = {"document_type": document_type, "language": language, "file_type": file_type, **clocks}
        self._add_entries(rows, source_id=str(source), source_path=source_path, workspace=workspace, **document)
        published = Published(str(source), doc_id, publication_id, [row["chunk_id"] for row in rows])

        def go_live() -> Published:
            with self.connection.transaction():
                self._insert_document(
                    published,
                    source_path=source_path,
                    text=text,
                    content_hash=content_hash,
                    workspace=workspace,
                    rows=rows,
                    **document,
                )
            return published

        return go_live

    def _add_entries(self, rows, *, source_path, **shared) -> None:
        parts = source_path.split("/")[:-1]
        shared |= {"folders": ["/".join(parts[: depth + 1]) for depth in range(len(parts))]}
        entries = [row | shared | {"sections": row["section_path"]} for row in rows]
        self.keywords.add(pl.DataFrame([{name: entry[name] for name in ENTRY_SCHEMA} for entry in entries], schema=ENTRY_SCHEMA))

    def _insert_document(self, published, *, source_path, text, content_hash, workspace, rows, **document) -> None:
        from stemma.store.publications import compressed

        execute, source_id = self.connection.execute, published.source_id
        execute("DELETE FROM documents WHERE source_id = %s", [source_id])
        execute("UPDATE publications SET state = 'superseded', superseded_at = now() WHERE source_id = %s AND state = 'live'", [source_id])
        execute("UPDATE publications SET state = 'live', published_at = now() WHERE publication_id = %s", [published.publication_id])
        execute(
            """
            INSERT INTO documents (publication_id, doc_id, source_id, workspace_id, source_path, source, file_name, file_type, document_type,
                                   content_hash, title, text, blocks, pages, parser, parser_version, chunker, extraction, used_ocr, n_chars,
                                   n_pages, n_chunks, parsing_fingerprint, chunking_fingerprint, contextualizing_fingerprint,
                                   document_output_hash, output_hash, run_id, language, file_modified_at, ingested_at)
            SELECT %(publication_id)s, %(doc_id)s, %(source_id)s, workspace_id, %(source_path)s, %(source_path)s, %(file_name)s,
                   %(file_type)s, %(document_type)s, %(content_hash)s, %(file_name)s, %(text)s, %(nothing)s, %(nothing)s, 'test', '1', 'test', 'text', false,
                   char_length(%(text)s), 0, %(n_chunks)s, 'p', 'c', 'x', 'd', 'o', 'test', %(language)s, %(file_modified_at)s, %(ingested_at)s
              FROM workspaces WHERE key = %(workspace)s
            """,
            {
                "publication_id": published.publication_id, "doc_id": published.doc_id, "source_id": source_id, "source_path": source_path,
                "file_name": source_path.rpartition("/")[2], "content_hash": content_hash, "text": text, "n_chunks": len(rows),
                "workspace": workspace, "nothing": compressed([]), **document,
            },
        )  # fmt: skip
        execute("UPDATE sources SET status = 'ready', last_publication_id = %s WHERE source_id = %s", [published.publication_id, source_id])
        if not rows:
            return
        columns = sql.SQL(", ").join(map(sql.Identifier, rows[0]))
        values = sql.SQL(", ").join(sql.Placeholder(name) for name in rows[0])
        with self.connection.cursor() as cursor:
            cursor.executemany(sql.SQL("INSERT INTO chunks ({}) VALUES ({})").format(columns, values), rows)
            cursor.executemany(
                sql.SQL("INSERT INTO {} (publication_id, chunk_index, embedding) VALUES (%s, %s, %s)").format(
                    sql.Identifier(self.embedding_index.vector_table)
                ),
                [
                    (row["publication_id"], row["chunk_index"], vector)
                    for row, vector in zip(rows, self.embedder.embed_passages([row["contextualized_content"] for row in rows]), strict=True)
                ],
            )


def open_corpus(database_url: str, home: Path, *, embedder: Embedder | None = None) -> Iterator[SearchableCorpus]:
    """A corpus in a database of the test's own; for fixtures."""
    from stemma.store.postgres import connect

    with connect(database_url) as connection:
        yield SearchableCorpus(connection, Settings(home=home, postgres_url=database_url), embedder or WordCounts())
