"""The chunks that golden sets count by: cut from the corpus files alone, with no store and no settings."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import polars as pl

from evals.golden_set import PINNED
from stemma.chunking.chunk import chunk_document
from stemma.chunking.tokenizer import minilm_tokenizer
from stemma.library.paths import document_id
from stemma.parsing.draft import ParsingOptions
from stemma.parsing.formats import HEAD_BYTES, require_format
from stemma.parsing.parse import parse_file


def pinned_chunks(library: Path) -> Callable[[str], pl.DataFrame | None]:
    """A function of a path within the library: its chunks under `PINNED`, with their chunk_id; None where there is no such file.

    It raises DocumentError for a file that no parser can read.
    """
    tokenizer = minilm_tokenizer()

    def chunks_of(rel_source: str) -> pl.DataFrame | None:
        path = library / rel_source
        if not path.is_file():
            return None
        bytes_ = path.read_bytes()
        format = require_format(bytes_[:HEAD_BYTES], path.suffix.removeprefix("."), source_path=rel_source)
        document = parse_file(path, source_path=rel_source, format=format, options=ParsingOptions())
        chunks = chunk_document(document, **PINNED, tokenizer=tokenizer)
        doc_id = document_id(rel_source, sha256(bytes_).hexdigest())
        return chunks.with_columns(chunk_id=pl.format("{}::{}", pl.lit(doc_id), pl.col("chunk_index")))

    return chunks_of
