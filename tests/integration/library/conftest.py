"""A library and its catalog, without runs: what a run writes is written by hand."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import pytest

from stemma.library.catalog import WalkOutcome, walk_library
from stemma.library.paths import document_id
from stemma.settings import Settings, load_settings
from stemma.store.postgres import Pool, open_pool


@dataclass
class Catalog:
    pool: Pool
    settings: Settings
    now: datetime = datetime(2025, 1, 1, tzinfo=UTC)

    @property
    def library(self) -> Path:
        return self.settings.library

    def write(self, path: str, content: str = "") -> Path:
        target = self.library / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content or f"needle of {path}")
        return target

    def walk(self, *, budget_s: float = 60.0) -> WalkOutcome:
        """One call, a minute after the one before."""
        self.now += timedelta(minutes=1)
        return walk_library(self.pool, self.settings, budget_s=budget_s, now=self.now)

    def rows(self, query: str, parameters: list[object] | None = None) -> list[tuple]:
        with self.pool.connection() as connection:
            return connection.execute(query, parameters).fetchall()

    def run(self, query: str, parameters: list[object] | None = None) -> None:
        with self.pool.connection() as connection:
            connection.execute(query, parameters)

    def source_id(self, path: str) -> UUID:
        [(source_id,)] = self.rows("SELECT source_id FROM sources WHERE source_path = %s", [path])
        return source_id

    def paths(self, condition: str = "true") -> list[str]:
        return [path for (path,) in self.rows(f"SELECT source_path FROM sources WHERE {condition} ORDER BY source_path")]

    def publish(self, path: str) -> int:
        """Hash and publish the file as one chunk, as a run does; returns the publication_id."""
        content = (self.library / path).read_bytes()
        content_hash, source_id = sha256(content).hexdigest(), self.source_id(path)
        doc_id = document_id(path, content_hash)
        self.run(
            "UPDATE sources SET content_hash = %s, hashed_size = seen_size, hashed_mtime_ns = seen_mtime_ns, hashed_inode = seen_inode,"
            " hashed_device = seen_device, hashed_at = %s, status = 'ready' WHERE source_id = %s",
            [content_hash, self.now, source_id],
        )
        self.run(
            "UPDATE publications SET state = 'superseded', superseded_at = %s WHERE source_id = %s AND state = 'live'",
            [self.now, source_id],
        )
        self.run("DELETE FROM documents WHERE source_id = %s", [source_id])
        [(publication_id,)] = self.rows(
            "INSERT INTO publications (source_id, doc_id, source_path, run_id, content_hash, n_chunks, state, published_at)"
            " VALUES (%s, %s, %s, 'run', %s, 1, 'live', %s) RETURNING publication_id",
            [source_id, doc_id, path, content_hash, self.now],
        )
        self.run(
            "INSERT INTO documents (publication_id, doc_id, source_id, workspace_id, source_path, source, file_name, file_type, document_type,"
            " content_hash, title, text, blocks, pages, parser, parser_version, chunker, extraction, used_ocr, n_chars, n_pages, n_chunks,"
            " parsing_fingerprint, chunking_fingerprint, contextualizing_fingerprint, document_output_hash, output_hash, run_id)"
            " SELECT %s, %s, source_id, workspace_id, source_path, '', '', file_type, 'FILE', content_hash, 'Title of ' || source_path, %s, '', '',"
            " 'text', '1', 'c', 'text', false, %s, 1, 1, '', '', '', '', '', 'run' FROM sources WHERE source_id = %s",
            [publication_id, doc_id, content.decode(), len(content), source_id],
        )
        self.run(
            "INSERT INTO chunks (publication_id, chunk_index, chunk_id, doc_id, original_index, content, contextualized_content, char_start,"
            " char_end, start_line, end_line, chunk_type, n_tokens, text_hash, input_hash, metadata)"
            " VALUES (%s, 0, %s, %s, %s, %s, %s, 0, %s, 1, 1, 'prose', 1, '', '', '{}')",
            [publication_id, f"{doc_id}::0", doc_id, publication_id, content.decode(), content.decode(), len(content.decode())],
        )
        self.run("INSERT INTO stage_state VALUES (%s, 'corpus', '', '', '', '', 'run') ON CONFLICT DO NOTHING", [source_id])
        return publication_id


@pytest.fixture
def catalog(database_url: str, tmp_path: Path) -> Iterator[Catalog]:
    (tmp_path / "library").mkdir()
    settings = load_settings(home=tmp_path / "home", library=tmp_path / "library", postgres_url=database_url, prune_grace_s=60)
    with open_pool(database_url) as pool:
        yield Catalog(pool, settings)
