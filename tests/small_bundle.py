"""A small bundle made without any store: what the tests of damaged and hostile ones begin from."""

import io
import json
import zipfile
from collections.abc import Callable
from hashlib import sha256
from uuid import UUID

import numpy as np

from stemma.bundles.archive import BundleWriter
from stemma.library.paths import document_id

MOMENT = "2026-11-08T13:12:00.000001+00:00"
DIMENSION = 8
Rows = dict[str, list[dict]]


def small_rows(n_documents: int = 3) -> tuple[Rows, np.ndarray]:
    """The rows of every member, and the matrix of vectors of length 1."""
    rows: Rows = {
        "workspaces": [{"key": "plans", "name": "Plans", "created_at": MOMENT}],
        "sources": [],
        "runs": [],
        "figures": [],
        "documents": [],
        "chunks": [],
    }
    for number in range(n_documents):
        path = f"plans/pier {number}.md"
        contents = [f"The pier {number} opens in May.", "Two cranes stand on it.\nThey are blue."]
        text, content_hash = "\n\n".join(contents), sha256(path.encode()).hexdigest()
        doc_id, source_id = document_id(path, content_hash), str(UUID(int=number + 1))
        rows["sources"].append({
            "source_id": source_id, "kind": "file", "source_path": path, "disk_path": path.encode().hex(), "file_type": "md", "hashed_at": MOMENT,
            "hashed_size": 10, "content_hash": content_hash, "excluded_hash": None, "status": "ready", "warning_code": None, "dedup_key": None,
            "file_created_at": None, "file_modified_at": MOMENT, "created_at": MOMENT, "updated_at": MOMENT,
        })  # fmt: skip
        rows["documents"].append({
            "doc_id": doc_id, "source_id": source_id, "source_path": path, "disk_path": path.encode().hex(), "source": f"/a/{path}",
            "file_name": f"pier {number}.md", "file_type": "md", "document_type": "FILE", "content_hash": content_hash, "title": "Pier",
            "document_metadata": {}, "parser": "markdown", "parser_version": "1", "chunker": "sentence", "extraction": "text", "used_ocr": False,
            "ocr_pages": [], "warning_code": None, "n_chars": len(text), "n_pages": 0, "n_chunks": 2, "parsing_fingerprint": "p",
            "chunking_fingerprint": "c", "contextualizing_fingerprint": "x", "document_output_hash": "d", "output_hash": "o", "run_id": "r",
            "file_created_at": None, "file_modified_at": MOMENT, "ingested_at": MOMENT, "published_at": MOMENT, "stages": [], "assets": [],
            "text": text, "blocks": [], "pages": [],
        })  # fmt: skip
        start = 0
        for index, content in enumerate(contents):
            columns = {
                "chunk_id": f"{doc_id}::{index}", "doc_id": doc_id, "original_index": 10 * number + index, "chunk_index": index, "content": content,
                "context": None, "contextualized_content": content, "char_start": start, "char_end": start + len(content), "start_line": 1,
                "end_line": 1, "page_start": None, "page_end": None, "section_path": [], "chunk_type": "prose", "n_tokens": 7,
                "text_hash": sha256(content.encode()).hexdigest(), "created_at": MOMENT,
            }  # fmt: skip
            record = columns | {
                "source": f"/a/{path}", "source_path": path, "file_name": f"pier {number}.md", "file_type": "md", "page": None, "heading_path": None,
                "chunk_size": 800, "chunk_overlap": 0, "chunking_strategy": "sentence", "embedding_model": "minilm", "token_counter": "minilm",
                "content_hash": content_hash, "extraction": "text", "file_created_at": None, "file_modified_at": MOMENT,
            }  # fmt: skip
            rows["chunks"].append(columns | {"input_hash": sha256(content.encode()).hexdigest(), "metadata": record})
            start += len(content) + 2
    matrix = np.random.default_rng(7).normal(size=(2 * n_documents, DIMENSION)).astype("<f4")
    return rows, matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def packed(rows: Rows, matrix: np.ndarray, edit: Callable[[dict], object] = lambda _manifest: None) -> bytes:
    """The bundle of these rows; `edit` changes its manifest, which otherwise agrees with them."""
    target = io.BytesIO()
    writer = BundleWriter(target)
    for name in ("workspaces", "sources", "runs", "figures", "documents", "chunks"):
        writer.member(f"{name}.jsonl", iter([b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows[name])]))
    writer.member("embeddings.f32", iter([matrix.astype("<f4").tobytes()]), packed=False)
    manifest = {
        "format": "stemma-backup", "version": 1, "corpus": "rag", "created_at": MOMENT, "embedding_model": "minilm", "embedding_dim": DIMENSION,
        "embedding_spec": {"normalized": True}, "stale": False, "engine": None, "ingest_settings": {}, "fingerprints": {}, "data_version": "v",
        "schema": "008_contained_documents.sql", "written_by": "stemma 0.1.0",
        "counts": {"documents": len(rows["documents"]), "chunks": len(rows["chunks"]), "sources": len(rows["sources"])},
        "members": [member.model_dump() for member in writer.members],
    }  # fmt: skip
    edit(manifest)
    writer.finish(json.dumps(manifest, ensure_ascii=False).encode())
    return target.getvalue()


def rezipped(bundle: bytes, change: Callable[[dict[str, bytes]], dict[str, bytes] | None]) -> bytes:
    """The bundle with other bytes in its members, or other members, and the manifest as it was."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members = change(members) or members
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()
