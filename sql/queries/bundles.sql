-- name: bundled_documents
-- Every published document that is not being deleted, in the order of its chunks' numbers: its row with what was made of it and its assets
-- as one line of JSON, and its blocks and pages as they are stored.
SELECT (SELECT to_json(line)::text
          FROM (SELECT d.doc_id, d.source_id, d.source_path, encode(coalesce(f.disk_path, s.disk_path), 'hex') AS disk_path, d.source, d.file_name, d.file_type, d.document_type, d.content_hash, d.title,
                       d.document_metadata, d.parser, d.parser_version, d.chunker, d.extraction, d.used_ocr, d.ocr_pages, d.warning_code,
                       d.n_chars, d.n_pages, d.n_chunks, d.parsing_fingerprint, d.chunking_fingerprint, d.contextualizing_fingerprint,
                       d.document_output_hash, d.output_hash, d.run_id, d.file_created_at, d.file_modified_at, d.ingested_at, d.language, p.published_at,
                       (SELECT coalesce(jsonb_agg(to_jsonb(made) ORDER BY made.stage), '[]')
                          FROM (SELECT m.stage, m.input_version, m.fingerprint, m.output_hash, m.result_key, m.run_id, m.updated_at
                                  FROM stage_state AS m WHERE m.source_id = d.source_id) AS made) AS stages,
                       (SELECT coalesce(jsonb_agg(to_jsonb(asset) ORDER BY asset.asset_index), '[]')
                          FROM (SELECT a.asset_index, a.kind, a.page, a.char_start, a.char_end, a.caption, a.picture
                                  FROM document_assets AS a WHERE a.publication_id = d.publication_id) AS asset) AS assets,
                       d.text) AS line),
       d.blocks, d.pages
  FROM documents AS d
  JOIN publications AS p USING (publication_id)
  JOIN sources AS s ON s.source_id = d.source_id
  LEFT JOIN sources AS f ON f.source_id = s.file_id
 WHERE s.deletion_intent IS NULL
 ORDER BY coalesce(p.first_original_index, 0), d.n_chunks > 0, d.publication_id;

-- name: bundled_chunks
-- Every chunk of these documents as one line of JSON, without its vector and what PostgreSQL derives; by its number.
SELECT (SELECT to_json(line)::text
          FROM (SELECT c.chunk_id, c.doc_id, c.original_index, c.chunk_index, c.content, c.context, c.contextualized_content, c.char_start,
                       c.char_end, c.start_line, c.end_line, c.page_start, c.page_end, c.section_path, c.chunk_type, c.n_tokens, c.text_hash,
                       c.input_hash, c.metadata, c.created_at) AS line),
       c.chunk_id
  FROM chunks AS c
  JOIN documents AS d USING (publication_id)
  JOIN sources AS s USING (source_id)
 WHERE s.deletion_intent IS NULL
 ORDER BY c.original_index;

-- name: bundled_vectors
-- The vectors of the same chunks in the same order; none for a chunk that lacks one.
SELECT c.chunk_id, v.embedding
  FROM chunks AS c
  JOIN documents AS d USING (publication_id)
  JOIN sources AS s USING (source_id)
  LEFT JOIN {vectors} AS v ON v.publication_id = c.publication_id AND v.chunk_index = c.chunk_index
 WHERE s.deletion_intent IS NULL
 ORDER BY c.original_index;

-- name: bundled_workspaces
SELECT to_json(line)::text
  FROM (SELECT w.key, w.name, w.created_at FROM workspaces AS w
         WHERE EXISTS (SELECT FROM sources AS s WHERE s.workspace_id = w.workspace_id)
            OR EXISTS (SELECT FROM conversations AS c WHERE c.workspace_id = w.workspace_id) ORDER BY w.key) AS line;

-- name: bundled_sources
-- The catalogue of what is published, of what holds it, and of what was taken out of the corpus on purpose; a container before its contents.
WITH RECURSIVE wanted AS (
    SELECT s.source_id, s.container_id FROM sources AS s
     WHERE s.deletion_intent IS NULL
       AND (s.excluded_hash IS NOT NULL OR EXISTS (SELECT FROM documents AS d WHERE d.source_id = s.source_id))
    UNION
    SELECT c.source_id, c.container_id FROM wanted AS w JOIN sources AS c ON c.source_id = w.container_id
)
SELECT to_json(line)::text
  FROM (SELECT s.source_id, s.kind, s.source_path, encode(s.disk_path, 'hex') AS disk_path, s.file_type, s.hashed_at, s.hashed_size,
               s.content_hash, s.excluded_hash, s.status, s.warning_code, s.dedup_key, s.file_created_at, s.file_modified_at, s.created_at,
               s.updated_at, s.container_id, s.file_id, s.member_path, s.media_type, s.member_hash, s.listed_output
          FROM wanted JOIN sources AS s USING (source_id)
         ORDER BY s.source_path COLLATE "C") AS line;

-- name: bundled_runs
-- The settings of every run that made something of what is published.
SELECT to_json(line)::text
  FROM (SELECT r.run_id, r.settings, r.fingerprints, r.epoch, r.created_at FROM run_settings AS r
         WHERE r.run_id IN (SELECT run_id FROM documents UNION SELECT m.run_id FROM stage_state AS m JOIN documents AS d USING (source_id))
         ORDER BY r.created_at, r.run_id) AS line;

-- name: bundled_figures
-- Pictures of the published documents' figures, as they were taken.
SELECT to_json(line)::text, line.sha256
  FROM (SELECT f.content_hash, f.picture, f.revision, f.sha256, f.mime_type, f.width, f.height, f.made_at FROM figures AS f
         WHERE EXISTS (SELECT FROM documents AS d JOIN sources AS s USING (source_id)
                        WHERE d.content_hash = f.content_hash AND s.deletion_intent IS NULL)
         ORDER BY f.content_hash, f.picture) AS line;

-- name: bundled_files
-- Files whose bytes are those of the published document.
SELECT s.source_id::text, s.source_path, s.disk_path, s.content_hash
  FROM sources AS s JOIN documents AS d USING (source_id)
 WHERE s.kind = 'file' AND s.deletion_intent IS NULL AND s.presence = 'present' AND s.disk_path IS NOT NULL
   AND s.content_hash = d.content_hash
 ORDER BY s.source_path;

-- name: bundle_versions
-- What tells one state of the corpus from another, a line per document and per source that was taken out.
SELECT concat_ws(' ', s.source_id, s.source_path, d.doc_id, d.output_hash, d.parsing_fingerprint, d.chunking_fingerprint,
                 d.contextualizing_fingerprint, d.parser, d.parser_version, s.excluded_hash,
                 (SELECT string_agg(m.stage || '=' || m.fingerprint || '/' || m.output_hash, ' ' ORDER BY m.stage)
                    FROM stage_state AS m WHERE m.source_id = s.source_id))
  FROM sources AS s LEFT JOIN documents AS d USING (source_id)
 WHERE s.deletion_intent IS NULL AND (d.doc_id IS NOT NULL OR s.excluded_hash IS NOT NULL)
 ORDER BY s.source_id;

-- name: bundle_counts
SELECT (SELECT count(*) FROM documents AS d JOIN sources AS s USING (source_id) WHERE s.deletion_intent IS NULL) AS documents,
       (SELECT coalesce(sum(d.n_chunks), 0)::bigint FROM documents AS d JOIN sources AS s USING (source_id) WHERE s.deletion_intent IS NULL) AS chunks,
       pg_table_size('documents') + pg_table_size('chunks') AS n_bytes;

-- name: bundled_groups
SELECT to_json(line)::text FROM (SELECT g.group_id, g.name, g.created_at FROM conversation_groups AS g ORDER BY g.group_id) AS line;

-- name: bundled_conversations
SELECT to_json(line)::text
  FROM (SELECT w.key AS workspace, c.conversation_id, c.group_id, c.title, c.source_scope, c.document_ids, c.deleted_document_ids, c.cloud_id,
               c.agent_session_id, c.history_start_message_id, c.history_start_turn_index, c.created_at, c.updated_at
          FROM conversations AS c JOIN workspaces AS w USING (workspace_id) ORDER BY c.conversation_id) AS line;

-- name: bundled_messages
SELECT to_json(line)::text
  FROM (SELECT m.message_id, m.conversation_id, m.turn_index, m.role, m.content, m.content_parts, m.created_at, m.completed_at,
               m.retrieval_method, m.latency_ms, m.reasoning, m.condensed_query, m.chat_engine, m.target_corpus, m.graph_evidence, m.model,
               m.degraded, m.n_quotes_dropped
          FROM messages AS m ORDER BY m.conversation_id, m.turn_index) AS line;

-- name: bundled_evidence
SELECT to_json(line)::text
  FROM (SELECT e.message_id, e.rank, e.chunk_id, e.source_id, e.source_deleted_at, e.trace FROM message_sources AS e ORDER BY e.message_id, e.rank) AS line;

-- name: bundled_citations
SELECT to_json(line)::text
  FROM (SELECT c.message_id, c.position, c.marker, c.chunk_id, c.doc_id, c.source_id, c.source_deleted_at, c.source_path, c.title, c.page_start,
               c.page_end, c.section_path, c.quote, c.quote_char_start, c.quote_char_end
          FROM citations AS c ORDER BY c.message_id, c.position) AS line;

-- name: conversation_versions
SELECT concat_ws(' ', c.conversation_id, c.updated_at, (SELECT count(*) FROM messages AS m WHERE m.conversation_id = c.conversation_id))
  FROM conversations AS c ORDER BY c.conversation_id;
