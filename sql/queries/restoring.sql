-- name: create_staging
-- Where a bundle lands before it meets the corpus; it goes with the connection.
CREATE TEMPORARY TABLE restored_workspaces (key text PRIMARY KEY, name text NOT NULL, created_at timestamptz NOT NULL);
CREATE TEMPORARY TABLE restored_sources (
    source_id uuid PRIMARY KEY, kind text, source_path text UNIQUE, partition_key text, workspace text, workspace_id bigint, folder_id bigint,
    disk_path bytea, file_type text, hashed_at timestamptz, content_hash text, excluded_hash text, warning_code text, dedup_key text,
    file_created_at timestamptz, file_modified_at timestamptz, created_at timestamptz, updated_at timestamptz, container_id uuid, file_id uuid,
    member_path text, media_type text, member_hash text, listed_output text,
    found text NOT NULL DEFAULT 'none', size bigint, mtime_ns bigint, inode numeric, device numeric, racy boolean,
    here_id uuid, is_new boolean NOT NULL DEFAULT false
);
CREATE TEMPORARY TABLE restored_runs (run_id text, settings jsonb, fingerprints jsonb, epoch bigint, created_at timestamptz);
CREATE TEMPORARY TABLE restored_figures (LIKE figures INCLUDING DEFAULTS);
CREATE TEMPORARY TABLE restored_documents (LIKE documents INCLUDING DEFAULTS);
ALTER TABLE restored_documents RENAME COLUMN publication_id TO position;
ALTER TABLE restored_documents ALTER COLUMN workspace_id DROP NOT NULL, ADD PRIMARY KEY (position), ADD COLUMN published_at timestamptz,
    ADD COLUMN first_original_index bigint, ADD COLUMN publication_id bigint;
CREATE TEMPORARY TABLE restored_stages (
    source_id uuid, stage text, input_version text, fingerprint text, output_hash text, result_key text, run_id text, updated_at timestamptz
);
CREATE TEMPORARY TABLE restored_assets (LIKE document_assets INCLUDING DEFAULTS);
ALTER TABLE restored_assets RENAME COLUMN publication_id TO position;
CREATE TEMPORARY TABLE restored_chunks (LIKE chunks INCLUDING DEFAULTS);
ALTER TABLE restored_chunks RENAME COLUMN publication_id TO position;
ALTER TABLE restored_chunks DROP COLUMN content_tsv;
CREATE TEMPORARY TABLE restored_history (member text NOT NULL, line jsonb NOT NULL);
CREATE TEMPORARY TABLE restored_vectors (position bigint, chunk_index integer, embedding vector);

-- name: index_staging
-- Once everything is staged.
CREATE INDEX ON restored_chunks (position, chunk_index);
ANALYZE restored_sources, restored_documents, restored_stages, restored_chunks, restored_vectors;

-- name: files_to_look_at
-- Files whose bytes may lie in the library.
SELECT source_id, source_path, disk_path, content_hash FROM restored_sources
 WHERE kind = 'file' AND disk_path IS NOT NULL AND content_hash IS NOT NULL ORDER BY source_path;

-- name: file_to_bring
SELECT disk_path, file_modified_at FROM restored_sources WHERE source_id = %(source_id)s AND kind = 'file' AND disk_path IS NOT NULL;

-- name: note_found
-- What lies in the library: the bytes that were published, other bytes, or nothing.
UPDATE restored_sources AS r SET found = f.found, size = f.size, mtime_ns = f.mtime_ns, inode = f.inode, device = f.device, racy = f.racy
  FROM unnest(%(source_ids)s::uuid[], %(found)s::text[], %(sizes)s::bigint[], %(mtimes)s::bigint[], %(inodes)s::numeric[],
              %(devices)s::numeric[], %(racy)s::boolean[]) AS f (source_id, found, size, mtime_ns, inode, device, racy)
 WHERE r.source_id = f.source_id;

-- name: insert_restored_workspaces
INSERT INTO workspaces (key, name, created_at) SELECT key, name, created_at FROM restored_workspaces ORDER BY key ON CONFLICT (key) DO NOTHING;

-- name: sources_to_place
SELECT source_id, source_path, disk_path, workspace, file_id IS NOT NULL FROM restored_sources ORDER BY source_path COLLATE "C";

-- name: place_sources
-- Workspace and folder of every source, which exist by now.
UPDATE restored_sources AS r SET workspace_id = p.workspace_id, folder_id = p.folder_id
  FROM unnest(%(source_ids)s::uuid[], %(workspace_ids)s::bigint[], %(folder_ids)s::bigint[]) AS p (source_id, workspace_id, folder_id)
 WHERE r.source_id = p.source_id;

-- name: match_by_path
-- A source of this path that is here already stays the one: links and conversations know it by its id.
UPDATE restored_sources AS r SET here_id = s.source_id, is_new = false
  FROM sources AS s WHERE s.source_path = r.source_path AND s.kind = r.kind;

-- name: match_by_id
-- Else the source of this id, which was renamed since.
UPDATE restored_sources AS r SET here_id = s.source_id, is_new = false
  FROM sources AS s
 WHERE r.here_id IS NULL AND s.source_id = r.source_id AND s.kind = r.kind
   AND NOT EXISTS (SELECT FROM restored_sources AS other WHERE other.here_id = s.source_id);

-- name: match_new
-- The others come into the catalogue under their own id, unless it is taken.
UPDATE restored_sources AS r
   SET is_new = true,
       here_id = CASE WHEN EXISTS (SELECT FROM sources AS s WHERE s.source_id = r.source_id) THEN gen_random_uuid() ELSE r.source_id END
 WHERE r.here_id IS NULL;

-- name: superseded_by_restore
-- How many published documents the bundle does not hold.
SELECT count(*) FROM documents AS d
 WHERE NOT EXISTS (SELECT FROM restored_documents AS r JOIN restored_sources AS m ON m.source_id = r.source_id WHERE m.here_id = d.source_id);

-- name: begin_restored_publications
-- A pending publication per document; higher than every one that was begun before.
WITH begun AS (
    INSERT INTO publications (source_id, source_path, run_id, created_at)
    SELECT m.here_id, r.source_path, %(run_id)s, %(now)s
      FROM restored_documents AS r JOIN restored_sources AS m ON m.source_id = r.source_id
     ORDER BY r.position
    RETURNING publication_id, source_id
)
UPDATE restored_documents AS r SET publication_id = begun.publication_id
  FROM begun JOIN restored_sources AS m ON m.here_id = begun.source_id
 WHERE r.source_id = m.source_id;

-- name: restored_publications
-- Publications with their chunks, for their keyword entries.
SELECT publication_id, n_chunks FROM restored_documents ORDER BY position;

-- name: restored_entries
-- The keyword entries of staged documents: every field is a copy of a row.
SELECT c.chunk_id, d.publication_id, m.here_id::text AS source_id, c.doc_id, c.original_index, m.workspace, d.source_path, d.file_type,
       d.document_type, d.language, d.file_modified_at, d.ingested_at, c.page_start, c.page_end, c.section_path AS sections, c.content,
       c.contextualized_content
  FROM restored_documents AS d
  JOIN restored_chunks AS c ON c.position = d.position
  JOIN restored_sources AS m ON m.source_id = d.source_id
 WHERE d.publication_id = ANY(%(publication_ids)s)
 ORDER BY d.publication_id, c.chunk_index;

-- name: raise_epoch
-- Runs under way find another epoch when they come to publish, and abandon their work.
UPDATE corpus_state SET epoch = epoch + 1 RETURNING epoch;

-- name: close_all_attempts
-- Nobody works on anything any more; what a run still writes finds no open attempt.
UPDATE attempts SET state = 'abandoned', finished_at = %(now)s WHERE finished_at IS NULL;

-- name: end_publications
-- What was visible is superseded, what was being made is abandoned; keyword entries go as those of any old version.
UPDATE publications SET state = CASE state WHEN 'live' THEN 'superseded' ELSE 'abandoned' END, superseded_at = %(now)s
 WHERE state IN ('live', 'pending') AND run_id <> %(run_id)s;

-- name: delete_all_documents
-- With their chunks, assets and vectors.
DELETE FROM documents;

-- name: insert_restored_sources
INSERT INTO sources (source_id, workspace_id, folder_id, kind, source_path, partition_key, disk_path, file_type, content_hash, hashed_at,
                     excluded_hash, presence, status, warning_code, dedup_key, file_created_at, file_modified_at, created_at, updated_at,
                     container_id, file_id, member_path, media_type, member_hash, listed_output)
SELECT r.here_id, r.workspace_id, r.folder_id, r.kind, r.source_path, r.partition_key, r.disk_path, r.file_type, r.content_hash,
       coalesce(r.hashed_at, %(now)s), r.excluded_hash, 'detached', 'pending', r.warning_code, r.dedup_key, r.file_created_at,
       r.file_modified_at, r.created_at, r.updated_at, c.here_id, f.here_id, r.member_path, r.media_type, r.member_hash, r.listed_output
  FROM restored_sources AS r
  LEFT JOIN restored_sources AS c ON c.source_id = r.container_id
  LEFT JOIN restored_sources AS f ON f.source_id = r.file_id
 WHERE r.is_new;

-- name: revive_restored_partitions
DELETE FROM retired_partitions WHERE partition_key IN (SELECT partition_key FROM restored_sources);

-- name: settle_other_sources
-- What the bundle does not hold is published no more: stale, and taken again from its file.
UPDATE sources AS s SET status = CASE WHEN s.status IN ('ready', 'processing') THEN 'pending' ELSE s.status END,
                        stage = CASE WHEN s.status IN ('ready', 'processing') THEN NULL ELSE s.stage END, updated_at = %(now)s
 WHERE NOT EXISTS (SELECT FROM restored_sources AS r WHERE r.here_id = s.source_id)
   AND (s.status IN ('ready', 'processing') OR EXISTS (SELECT FROM stage_state AS m WHERE m.source_id = s.source_id AND m.stage = 'corpus'));

-- name: settle_restored_sources
-- The catalogue says what the bundle says. A file that has the published bytes is as it was hashed now; any other is looked at by the next
-- run. What was never seen here is detached, and what lies in a file is where that file is.
UPDATE sources AS s
   SET content_hash = r.content_hash, hashed_at = CASE WHEN r.found = 'same' THEN %(now)s ELSE coalesce(r.hashed_at, s.hashed_at, %(now)s) END,
       warning_code = r.warning_code,
       excluded_hash = r.excluded_hash, deletion_intent = NULL, deletion_step = NULL, stage = NULL, error_code = NULL, error_message = NULL,
       failed_version = NULL, n_failures = 0, retry_at = NULL, wanted_stage = NULL, wished_at = NULL, wished_version = NULL, rename_hash = NULL,
       status = CASE WHEN d.source_id IS NOT NULL THEN 'ready' WHEN r.excluded_hash IS NOT NULL THEN 'cancelled' ELSE 'pending' END,
       file_created_at = r.file_created_at, file_modified_at = r.file_modified_at, created_at = r.created_at, updated_at = r.updated_at,
       media_type = r.media_type, member_hash = r.member_hash, listed_output = r.listed_output,
       last_publication_id = greatest(s.last_publication_id, coalesce(d.publication_id, 0)),
       presence = CASE WHEN r.found IN ('same', 'changed') OR f.found IN ('same', 'changed') THEN 'present' ELSE s.presence END,
       missing_since = CASE WHEN r.found IN ('same', 'changed') THEN NULL ELSE s.missing_since END,
       missing_scans = CASE WHEN r.found IN ('same', 'changed') THEN 0 ELSE s.missing_scans END,
       seen_size = CASE WHEN r.found IN ('same', 'changed') THEN r.size ELSE s.seen_size END,
       seen_mtime_ns = CASE WHEN r.found IN ('same', 'changed') THEN r.mtime_ns ELSE s.seen_mtime_ns END,
       seen_inode = CASE WHEN r.found IN ('same', 'changed') THEN r.inode ELSE s.seen_inode END,
       seen_device = CASE WHEN r.found IN ('same', 'changed') THEN r.device ELSE s.seen_device END,
       hashed_size = CASE WHEN r.found = 'same' AND NOT r.racy THEN r.size END,
       hashed_mtime_ns = CASE WHEN r.found = 'same' AND NOT r.racy THEN r.mtime_ns END,
       hashed_inode = CASE WHEN r.found = 'same' AND NOT r.racy THEN r.inode END,
       hashed_device = CASE WHEN r.found = 'same' AND NOT r.racy THEN r.device END
  FROM restored_sources AS r
  LEFT JOIN restored_documents AS d ON d.source_id = r.source_id
  LEFT JOIN restored_sources AS f ON f.source_id = r.file_id
 WHERE s.source_id = r.here_id;

-- name: insert_restored_runs
INSERT INTO run_settings (run_id, settings, fingerprints, epoch, created_at)
SELECT run_id, settings, fingerprints, epoch, created_at FROM restored_runs ON CONFLICT DO NOTHING;

-- name: insert_restored_figures
INSERT INTO figures SELECT * FROM restored_figures ON CONFLICT DO NOTHING;

-- name: forget_other_corpus
DELETE FROM stage_state AS m
 WHERE m.stage = 'corpus' OR EXISTS (SELECT FROM restored_sources AS r WHERE r.here_id = m.source_id);

-- name: insert_restored_stages
-- Embeddings and keyword entries are those of the indexes here.
INSERT INTO stage_state (source_id, stage, input_version, fingerprint, output_hash, result_key, run_id, updated_at)
SELECT r.here_id, m.stage, m.input_version,
       CASE WHEN m.stage = 'bm25_index' AND m.fingerprint <> '' THEN (SELECT fingerprint FROM sparse_indexes WHERE state = 'active') ELSE m.fingerprint END,
       m.output_hash, CASE m.stage WHEN 'embeddings' THEN %(embedding_index_id)s::text ELSE m.result_key END, m.run_id, m.updated_at
  FROM restored_stages AS m JOIN restored_sources AS r ON r.source_id = m.source_id;

-- name: insert_restored_documents
INSERT INTO documents (publication_id, doc_id, source_id, workspace_id, source_path, source, file_name, file_type, document_type, content_hash,
                       title, text, blocks, pages, document_metadata, parser, parser_version, chunker, extraction, used_ocr, ocr_pages,
                       warning_code, n_chars, n_pages, n_chunks, parsing_fingerprint, chunking_fingerprint, contextualizing_fingerprint,
                       document_output_hash, output_hash, run_id, file_created_at, file_modified_at, ingested_at, language)
SELECT d.publication_id, d.doc_id, s.source_id, s.workspace_id, d.source_path, d.source, d.file_name, d.file_type, d.document_type,
       d.content_hash, d.title, d.text, d.blocks, d.pages, d.document_metadata, d.parser, d.parser_version, d.chunker, d.extraction, d.used_ocr,
       d.ocr_pages, d.warning_code, d.n_chars, d.n_pages, d.n_chunks, d.parsing_fingerprint, d.chunking_fingerprint,
       d.contextualizing_fingerprint, d.document_output_hash, d.output_hash, d.run_id, d.file_created_at, d.file_modified_at, d.ingested_at,
       d.language
  FROM restored_documents AS d
  JOIN restored_sources AS r ON r.source_id = d.source_id
  JOIN sources AS s ON s.source_id = r.here_id;

-- name: insert_restored_assets
INSERT INTO document_assets (publication_id, asset_index, kind, page, char_start, char_end, caption, picture)
SELECT d.publication_id, a.asset_index, a.kind, a.page, a.char_start, a.char_end, a.caption, a.picture
  FROM restored_assets AS a JOIN restored_documents AS d USING (position);

-- name: insert_restored_chunks
INSERT INTO chunks (publication_id, chunk_index, chunk_id, doc_id, original_index, content, context, contextualized_content, char_start, char_end,
                    start_line, end_line, page_start, page_end, section_path, chunk_type, n_tokens, text_hash, input_hash, metadata, created_at)
SELECT d.publication_id, c.chunk_index, c.chunk_id, c.doc_id, c.original_index, c.content, c.context, c.contextualized_content, c.char_start,
       c.char_end, c.start_line, c.end_line, c.page_start, c.page_end, c.section_path, c.chunk_type, c.n_tokens, c.text_hash, c.input_hash,
       c.metadata, c.created_at
  FROM restored_chunks AS c JOIN restored_documents AS d USING (position)
 ORDER BY c.position, c.chunk_index;

-- name: insert_restored_vectors
INSERT INTO {vectors} (publication_id, chunk_index, embedding)
SELECT d.publication_id, v.chunk_index, v.embedding
  FROM restored_vectors AS v JOIN restored_documents AS d USING (position)
 ORDER BY v.position, v.chunk_index;

-- name: cache_restored_vectors
-- A later rename, copy or revert asks the cache.
INSERT INTO embedding_cache (spec_hash, input_hash, embedding, created_at, last_used_at)
SELECT %(spec_hash)s, encode(sha256(convert_to(%(prefix)s || c.contextualized_content, 'UTF8')), 'hex') AS input_hash, v.embedding, %(now)s, %(now)s
  FROM restored_vectors AS v JOIN restored_chunks AS c USING (position, chunk_index)
 ORDER BY input_hash
    ON CONFLICT DO NOTHING;

-- name: restored_go_live
UPDATE publications AS p
   SET state = 'live', doc_id = d.doc_id, content_hash = d.content_hash, output_hash = d.output_hash, n_chunks = d.n_chunks,
       first_original_index = d.first_original_index, published_at = coalesce(d.published_at, %(now)s)
  FROM restored_documents AS d
 WHERE p.publication_id = d.publication_id AND p.state = 'pending';

-- name: raise_original_index
UPDATE original_index_counter SET next = greatest(next, (SELECT coalesce(max(original_index) + 1, 0) FROM restored_chunks));

-- name: abandon_restores
-- What a restore that was ended left pending is abandoned, and its keyword entries are swept.
UPDATE publications SET state = 'abandoned', superseded_at = %(now)s WHERE state = 'pending' AND starts_with(run_id, %(prefix)s);

-- name: matches_changed
-- Sources that were here when the bundle met the catalogue and are gone, or that took a path or an id since.
SELECT count(*) FROM restored_sources AS r
 WHERE r.is_new = EXISTS (SELECT FROM sources AS s WHERE s.source_id = r.here_id)
    OR r.is_new AND EXISTS (SELECT FROM sources AS s WHERE s.source_path = r.source_path OR s.partition_key = r.partition_key);

-- name: insert_restored_groups
-- What is here stays as it is: a conversation goes on after a bundle was made.
INSERT INTO conversation_groups (group_id, name, created_at)
SELECT g.group_id, g.name, g.created_at
  FROM restored_history AS h, jsonb_populate_record(NULL::conversation_groups, h.line) AS g WHERE h.member = 'groups'
    ON CONFLICT DO NOTHING;

-- name: insert_restored_conversations
INSERT INTO conversations (conversation_id, workspace_id, group_id, title, source_scope, document_ids, deleted_document_ids, cloud_id,
                           agent_session_id, history_start_message_id, history_start_turn_index, created_at, updated_at)
SELECT c.conversation_id, w.workspace_id, c.group_id, c.title, c.source_scope,
       ARRAY(SELECT coalesce(r.here_id, named.source_id) FROM unnest(c.document_ids) WITH ORDINALITY AS named (source_id, position)
               LEFT JOIN restored_sources AS r USING (source_id) ORDER BY named.position),
       ARRAY(SELECT coalesce(r.here_id, named.source_id) FROM unnest(c.deleted_document_ids) WITH ORDINALITY AS named (source_id, position)
               LEFT JOIN restored_sources AS r USING (source_id) ORDER BY named.position),
       c.cloud_id, c.agent_session_id, c.history_start_message_id, c.history_start_turn_index, c.created_at, c.updated_at
  FROM restored_history AS h
 CROSS JOIN jsonb_populate_record(NULL::conversations, h.line) AS c
  JOIN workspaces AS w ON w.key = h.line ->> 'workspace'
 WHERE h.member = 'conversations'
    ON CONFLICT DO NOTHING;

-- name: insert_restored_messages
INSERT INTO messages (message_id, conversation_id, turn_index, role, content, content_parts, created_at, completed_at, retrieval_method, latency_ms,
                      reasoning, condensed_query, chat_engine, target_corpus, graph_evidence, model, degraded, n_quotes_dropped)
SELECT m.message_id, m.conversation_id, m.turn_index, m.role, m.content, m.content_parts, m.created_at, m.completed_at, m.retrieval_method,
       m.latency_ms, m.reasoning, m.condensed_query, m.chat_engine, m.target_corpus, m.graph_evidence, m.model, m.degraded, m.n_quotes_dropped
  FROM restored_history AS h, jsonb_populate_record(NULL::messages, h.line) AS m WHERE h.member = 'messages'
    ON CONFLICT DO NOTHING;

-- name: insert_restored_evidence
-- Only of messages that are there: one that was here with another text keeps its own.
INSERT INTO message_sources (message_id, rank, chunk_id, source_id, source_deleted_at, trace)
SELECT e.message_id, e.rank, e.chunk_id, coalesce(r.here_id, e.source_id), e.source_deleted_at, e.trace
  FROM restored_history AS h
 CROSS JOIN jsonb_populate_record(NULL::message_sources, h.line) AS e
  JOIN messages AS m ON m.message_id = e.message_id
  LEFT JOIN restored_sources AS r ON r.source_id = e.source_id
 WHERE h.member = 'evidence'
    ON CONFLICT DO NOTHING;

-- name: insert_restored_citations
INSERT INTO citations (message_id, position, marker, chunk_id, doc_id, source_id, source_deleted_at, source_path, title, page_start, page_end,
                       section_path, quote, quote_char_start, quote_char_end)
SELECT c.message_id, c.position, c.marker, c.chunk_id, c.doc_id, coalesce(r.here_id, c.source_id), c.source_deleted_at, c.source_path, c.title,
       c.page_start, c.page_end, c.section_path, c.quote, c.quote_char_start, c.quote_char_end
  FROM restored_history AS h
 CROSS JOIN jsonb_populate_record(NULL::citations, h.line) AS c
  JOIN messages AS m ON m.message_id = c.message_id
  LEFT JOIN restored_sources AS r ON r.source_id = c.source_id
 WHERE h.member = 'citations'
    ON CONFLICT DO NOTHING;
