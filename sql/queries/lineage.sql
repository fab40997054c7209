-- name: trace_document
-- The live version of a source with its publication, its file, the run that made it and the indexes that searches read.
SELECT d.doc_id, d.source_id::text AS source_id, d.title, d.document_type, d.source_path, d.content_hash, d.n_chars, d.n_chunks,
       d.document_output_hash, d.output_hash, d.ingested_at, d.publication_id, p.published_at, d.run_id, d.parser, d.parser_version,
       d.extraction, d.warning_code, d.chunker, d.parsing_fingerprint, d.chunking_fingerprint, d.contextualizing_fingerprint,
       s.disk_path, s.partition_key, r.settings, r.fingerprints, r.epoch,
       e.embedding_index_id, e.spec, e.spec_hash, k.name AS sparse_index, k.backend, k.fingerprint AS sparse_fingerprint, c.n_entries
  FROM documents AS d
  JOIN publications AS p ON p.publication_id = d.publication_id
  JOIN sources AS s ON s.source_id = d.source_id
 CROSS JOIN corpus_state AS state
  LEFT JOIN run_settings AS r ON r.run_id = d.run_id
  LEFT JOIN embedding_indexes AS e ON e.embedding_index_id = state.active_embedding_index
  LEFT JOIN sparse_indexes AS k ON k.sparse_index_id = state.active_sparse_index
  LEFT JOIN sparse_coverage AS c ON c.publication_id = d.publication_id AND c.sparse_index_id = k.sparse_index_id
 WHERE d.source_id = %(source_id)s;

-- name: trace_chunk
-- One chunk of the live version; its content is cut out of the text here, so that what is shown was compared.
SELECT c.chunk_id, c.chunk_index, c.original_index, c.content, c.context, c.char_start, c.char_end, c.start_line, c.end_line, c.page_start,
       c.page_end, c.section_path, c.chunk_type, c.n_tokens, c.text_hash, c.input_hash, c.created_at,
       substr(d.text, c.char_start + 1, c.char_end - c.char_start) = c.content AS is_exact
  FROM chunks AS c JOIN documents AS d ON d.publication_id = c.publication_id
 WHERE c.publication_id = %(publication_id)s AND c.chunk_id = %(chunk_id)s;
