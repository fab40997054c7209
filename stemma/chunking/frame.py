"""The frame that every chunking strategy ends in: one row per chunk, addressed by exact offsets."""

import polars as pl

CHUNK_SCHEMA = pl.Schema(
    {
        "chunk_index": pl.UInt32,  # dense, from 0, in the order of char_start
        "char_start": pl.Int64,  # code points into the document's text; strictly increasing
        "char_end": pl.Int64,  # exclusive
        "start_line": pl.Int64,  # from 1
        "end_line": pl.Int64,  # line of the last character
        "page_start": pl.Int64,  # null for formats without pages
        "page_end": pl.Int64,
        "section_path": pl.List(pl.String),  # trail of headings, outermost first
        "chunk_type": pl.String,  # prose, table, code or formula
        "table_header": pl.String,  # column names of the table that the chunk begins in, below its head; else null
        "content": pl.String,  # == text[char_start:char_end]
        "n_tokens": pl.UInt32,
        "text_hash": pl.String,  # sha256 (hex) of content
        "extraction": pl.String,  # text, ocr or ocr_fallback
    }
)

CONTEXT_SCHEMA = pl.Schema(
    {
        "chunk_index": pl.UInt32,
        "context": pl.String,  # null: none
        "contextualized_content": pl.String,  # context + blank line + content, or content: what is embedded and indexed
    }
)
