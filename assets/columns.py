"""The columns of the tables that assets make, with their meaning and what each is made from."""

import dagster as dg

COLUMN_SCHEMA, COLUMN_LINEAGE = "dagster/column_schema", "dagster/column_lineage"

_SPAN = {
    "chunk_index": ("uint32", "Place in the document, dense, from 0."),
    "char_start": ("int64", "First code point in the document's text."),
    "char_end": ("int64", "One past the last."),
    "start_line": ("int64", "Line of the first character, from 1."),
    "end_line": ("int64", "Line of the last character."),
    "page_start": ("int64", "First page; null for formats without pages."),
    "page_end": ("int64", "Last page."),
    "section_path": ("list[string]", "Trail of headings, outermost first."),
    "chunk_type": ("string", "prose, table, code or formula."),
    "table_header": ("string", "Names of the columns of the table that the chunk begins in, below its head."),
    "content": ("string", "The text between char_start and char_end."),
    "n_tokens": ("uint32", "Tokens of the content, by CHUNK_TOKENIZER."),
    "text_hash": ("string", "sha256 of the content."),
    "extraction": ("string", "text, ocr or ocr_fallback."),
}
_DOCUMENT = {
    "text": ("string", "The canonical text; every offset counts its code points."),
    "title": ("string", "The title that the content states."),
    "blocks": ("list[struct]", "Headings, paragraphs, tables, code, each a span of the text."),
    "pages": ("list[struct]", "Pages, slides or sheets, each a span of the text."),
    "assets": ("list[struct]", "Tables and figures with their captions."),
    "warning": ("string", "What a person should know of how the text was read."),
}
_CONTEXT = {
    "chunk_index": ("uint32", "The chunk."),
    "context": ("string", "What is put before the chunk for search; null: nothing."),
    "contextualized_content": ("string", "Context, a blank line and the content: what is embedded and indexed."),
}
_VECTOR = {
    "chunk_index": ("uint32", "The chunk."),
    "input_hash": ("string", "sha256 of the exact string that was embedded."),
    "embedding": ("vector", "One vector of length 1."),
}
_ENTRY = {
    "chunk_id": ("string", "doc_id, `::` and the chunk's index."),
    "publication_id": ("int64", "The version: entries of a live one are never overwritten."),
    "content": ("string", "Analysed for keywords."),
    "contextualized_content": ("string", "Analysed for keywords."),
}
_CORPUS = {
    "doc_id": ("string", "Made of the path and the bytes."),
    "chunk_id": ("string", "doc_id, `::` and the chunk's index."),
    "text": ("string", "The document's text."),
    "content": ("string", "The text between the chunk's offsets."),
    "context": ("string", "What search reads before it."),
    "char_start": ("int64", "First code point."),
    "char_end": ("int64", "One past the last."),
    "section_path": ("list[string]", "Trail of headings."),
    "embedding": ("vector", "In the table of the index that searches read."),
}

_TABLES = {
    "documents": _DOCUMENT,
    "chunks": _SPAN,
    "contextualized_chunks": _CONTEXT,
    "embeddings": _VECTOR,
    "bm25_index": _ENTRY,
    "corpus": _CORPUS,
}

_MADE_FROM: dict[str, dict[str, list[tuple[str, str]]]] = {
    "documents": {},
    "chunks": {
        **{column: [("documents", "text"), ("documents", "blocks")] for column in ("char_start", "char_end", "content", "chunk_index")},
        **{column: [("documents", "text")] for column in ("start_line", "end_line", "n_tokens", "text_hash")},
        **{column: [("documents", "pages")] for column in ("page_start", "page_end", "extraction")},
        **{column: [("documents", "blocks")] for column in ("section_path", "chunk_type", "table_header")},
    },
    "contextualized_chunks": {
        "chunk_index": [("chunks", "chunk_index")],
        "context": [("documents", "title"), ("chunks", "section_path"), ("chunks", "table_header")],
        "contextualized_content": [("documents", "title"), ("chunks", "section_path"), ("chunks", "table_header"), ("chunks", "content")],
    },
    "embeddings": {
        "chunk_index": [("contextualized_chunks", "chunk_index")],
        "input_hash": [("contextualized_chunks", "contextualized_content")],
        "embedding": [("contextualized_chunks", "contextualized_content")],
    },
    "bm25_index": {
        "content": [("chunks", "content")],
        "contextualized_content": [("contextualized_chunks", "contextualized_content")],
    },
    "corpus": {
        "text": [("documents", "text")],
        **{column: [("chunks", column)] for column in ("content", "char_start", "char_end", "section_path")},
        "context": [("contextualized_chunks", "context")],
        "embedding": [("embeddings", "embedding")],
    },
}


def columns_of(asset: str) -> dict[str, object]:
    """The metadata by which Dagster shows an asset's columns, and from which columns above each is made."""
    schema = dg.TableSchema([dg.TableColumn(name, type, description) for name, (type, description) in _TABLES[asset].items()])
    made_from = {
        column: [dg.TableColumnDep(dg.AssetKey(above), of) for above, of in sources] for column, sources in _MADE_FROM[asset].items()
    }
    lineage = {COLUMN_LINEAGE: dg.TableColumnLineage(made_from)} if made_from else {}
    return {COLUMN_SCHEMA: schema, **lineage}
