-- name: reserve_original_indexes
-- Take a block of numbers that no chunk has had or will have; returns its first. Autocommitted, so that a block is never given twice.
UPDATE original_index_counter SET next = next + %(n)s RETURNING next - %(n)s;

-- name: lock_corpus_state
-- Publications share this row; a switch or a restore takes it alone.
SELECT epoch, active_embedding_index, active_sparse_index FROM corpus_state FOR SHARE;

-- name: publication_facts
-- Everything that the conditions of publishing ask, read under the locks.
SELECT a.attempt_id IS NOT NULL AS attempt_open,
       s.deletion_intent IS NULL AND s.presence <> 'missing' AS claimable,
       s.source_path, s.last_publication_id,
       live.publication_id AS live_publication_id, d.doc_id AS live_doc_id, d.output_hash AS live_output_hash,
       EXISTS (SELECT FROM documents AS other WHERE other.doc_id = %(doc_id)s AND other.source_id <> s.source_id) AS doc_id_taken,
       EXISTS (SELECT FROM sparse_coverage AS c
                WHERE c.publication_id = %(publication_id)s AND c.sparse_index_id = %(active_sparse_index)s) AS sparse_covered,
       coalesce(e.result_key, '') AS embedded_for
  FROM sources AS s
  LEFT JOIN attempts AS a ON a.source_id = s.source_id AND a.run_id = %(run_id)s AND a.finished_at IS NULL
                         AND a.publication_id = %(publication_id)s
  LEFT JOIN publications AS live ON live.source_id = s.source_id AND live.state = 'live'
  LEFT JOIN documents AS d ON d.publication_id = live.publication_id
  LEFT JOIN stage_state AS e ON e.source_id = s.source_id AND e.stage = 'embeddings'
 WHERE s.source_id = %(source_id)s;

-- name: update_recipe
-- The output is the live one: only what is known of how it was made changes.
UPDATE documents
   SET parser = %(parser)s, parser_version = %(parser_version)s, chunker = %(chunker)s, parsing_fingerprint = %(parsing)s,
       chunking_fingerprint = %(chunking)s, contextualizing_fingerprint = %(contextualizing)s, run_id = %(run_id)s,
       language = %(language)s
 WHERE publication_id = %(live_publication_id)s;

-- name: insert_document
INSERT INTO documents (
    publication_id, doc_id, source_id, workspace_id, source_path, source, file_name, file_type, document_type, content_hash, title, text,
    blocks, pages, document_metadata, parser, parser_version, chunker, extraction, used_ocr, ocr_pages, warning_code, n_chars, n_pages,
    n_chunks, parsing_fingerprint, chunking_fingerprint, contextualizing_fingerprint, document_output_hash, output_hash, run_id,
    file_created_at, file_modified_at, ingested_at, language)
SELECT %(publication_id)s, %(doc_id)s, s.source_id, s.workspace_id, s.source_path, %(source)s, %(file_name)s, s.file_type, 'FILE',
       %(content_hash)s, %(title)s, %(text)s, %(blocks)s, %(pages)s, %(metadata)s, %(parser)s, %(parser_version)s, %(chunker)s,
       %(extraction)s, %(used_ocr)s, %(ocr_pages)s, %(warning_code)s, %(n_chars)s, %(n_pages)s, %(n_chunks)s, %(parsing)s, %(chunking)s,
       %(contextualizing)s, %(document_output_hash)s, %(output_hash)s, %(run_id)s, s.file_created_at, s.file_modified_at, %(now)s, %(language)s
  FROM sources AS s WHERE s.source_id = %(source_id)s;

-- name: insert_asset
INSERT INTO document_assets (publication_id, asset_index, kind, page, char_start, char_end, caption, picture)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s);

-- name: supersede
-- The version that was live goes in the same transaction, with its chunks and vectors; its keyword entries are retired later.
WITH superseded AS (
    UPDATE publications SET state = 'superseded', superseded_at = %(now)s
     WHERE source_id = %(source_id)s AND state = 'live' AND publication_id <> %(publication_id)s
    RETURNING publication_id
)
DELETE FROM documents AS d USING superseded AS s WHERE d.publication_id = s.publication_id;

-- name: go_live
UPDATE publications
   SET state = 'live', doc_id = %(doc_id)s, content_hash = %(content_hash)s, output_hash = %(output_hash)s, n_chunks = %(n_chunks)s,
       published_at = %(now)s
 WHERE publication_id = %(publication_id)s AND state = 'pending';

-- name: settle_source
-- The source shows the outcome; its highest decided publication rises even when nothing had to be written.
-- A wish that came after the run had begun stays: the run may have passed the stage that it names.
UPDATE sources AS s
   SET status = 'ready', stage = NULL, error_code = NULL, error_message = NULL, warning_code = %(warning_code)s,
       wanted_stage = CASE WHEN s.wished_at > a.started_at THEN s.wanted_stage END,
       wished_version = CASE WHEN s.wished_at > a.started_at THEN s.wished_version END,
       failed_version = NULL, n_failures = 0, retry_at = NULL, excluded_hash = NULL,
       last_publication_id = greatest(s.last_publication_id, %(publication_id)s), updated_at = %(now)s
  FROM attempts AS a
 WHERE s.source_id = %(source_id)s AND a.source_id = s.source_id AND a.publication_id = %(publication_id)s;

-- name: close_attempt
UPDATE attempts SET state = 'succeeded', stage = 'publishing', progress = 1, finished_at = %(now)s
 WHERE source_id = %(source_id)s AND run_id = %(run_id)s AND finished_at IS NULL;

-- name: record_corpus
INSERT INTO stage_state (source_id, stage, input_version, fingerprint, output_hash, result_key, run_id, updated_at)
VALUES (%(source_id)s, 'corpus', %(output_hash)s, '', %(output_hash)s, %(doc_id)s, %(run_id)s, %(now)s)
ON CONFLICT (source_id, stage) DO UPDATE
   SET input_version = excluded.input_version, output_hash = excluded.output_hash, result_key = excluded.result_key,
       run_id = excluded.run_id, updated_at = excluded.updated_at;

-- name: abandon_publication
UPDATE publications SET state = 'abandoned', superseded_at = %(now)s WHERE publication_id = %(publication_id)s AND state = 'pending';

-- name: add_vectors
-- A vector from the cache for every chunk whose string has one.
INSERT INTO {vectors} (publication_id, chunk_index, embedding)
SELECT c.publication_id, c.chunk_index, e.embedding
  FROM chunks AS c
  JOIN embedding_cache AS e
    ON e.spec_hash = %(spec_hash)s AND e.input_hash = encode(sha256(convert_to(%(prefix)s || c.contextualized_content, 'UTF8')), 'hex')
 WHERE c.publication_id = %(publication_id)s
    ON CONFLICT (publication_id, chunk_index) DO UPDATE SET embedding = excluded.embedding;

-- name: live_publications
-- What is live of the sources.
SELECT source_id::text, publication_id, output_hash, first_original_index
  FROM publications WHERE state = 'live' AND source_id = ANY(%(source_ids)s::uuid[]);

-- name: keep_original_indexes
-- The blocks of numbers that were reserved for publications which are being made.
UPDATE publications AS p SET first_original_index = t.first
  FROM unnest(%(publication_ids)s::bigint[], %(firsts)s::bigint[]) AS t (publication_id, first)
 WHERE p.publication_id = t.publication_id AND p.state = 'pending';
