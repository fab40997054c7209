-- name: stale_sources
-- Every source whose corpus is not what its file and the wanted recipes give, with the first stage that differs and why; by path.
-- A file modified a moment ago is still settling: its stat could not vouch for what is read now.
-- `version` names what an attempt from here would try: a failure is not repeated until it differs.
WITH stages AS (
    SELECT s.source_id, s.partition_key, s.source_path, s.seen_size, s.content_hash, s.wanted_stage, s.status, s.stage AS failed_stage,
           s.kind, s.presence, s.deletion_intent, s.excluded_hash, s.hashed_at, s.first_seen_scan, s.error_code, s.failed_version, s.retry_at,
           (s.seen_size, s.seen_mtime_ns, s.seen_inode, s.seen_device)
               IS DISTINCT FROM (s.hashed_size, s.hashed_mtime_ns, s.hashed_inode, s.hashed_device) AS stat_differs,
           concat_ws(':', s.seen_size, s.seen_mtime_ns, s.seen_inode) AS stat,
           s.kind = 'file' AND s.seen_mtime_ns BETWEEN %(settled_ns)s AND %(now_ns)s AS settling,
           d.input_version AS documents_input, d.fingerprint AS documents_recipe, d.output_hash AS documents_output,
           c.input_version AS chunks_input, c.fingerprint AS chunks_recipe, c.output_hash AS chunks_output,
           x.input_version AS contexts_input, x.fingerprint AS contexts_recipe, x.output_hash AS contexts_output,
           e.input_version AS embeddings_input, e.fingerprint AS embeddings_recipe,
           b.input_version AS bm25_input, b.fingerprint AS bm25_recipe,
           p.input_version AS corpus_input,
           EXISTS (SELECT FROM publications AS live WHERE live.source_id = s.source_id AND live.state = 'live') AS is_live
      FROM sources AS s
      LEFT JOIN stage_state AS d ON d.source_id = s.source_id AND d.stage = 'documents'
      LEFT JOIN stage_state AS c ON c.source_id = s.source_id AND c.stage = 'chunks'
      LEFT JOIN stage_state AS x ON x.source_id = s.source_id AND x.stage = 'contextualized_chunks'
      LEFT JOIN stage_state AS e ON e.source_id = s.source_id AND e.stage = 'embeddings'
      LEFT JOIN stage_state AS b ON b.source_id = s.source_id AND b.stage = 'bm25_index'
      LEFT JOIN stage_state AS p ON p.source_id = s.source_id AND p.stage = 'corpus'
), judged AS (
    SELECT *,
           CASE
               WHEN hashed_at IS NULL                                                    THEN 'documents: new file'
               WHEN kind = 'file' AND stat_differs                                       THEN 'documents: file changed'
               WHEN kind = 'file' AND hashed_at < %(hash_before)s                        THEN 'documents: periodic full hash'
               WHEN documents_input IS DISTINCT FROM content_hash                        THEN 'documents: file changed'
               WHEN documents_recipe <> %(parsing)s                                      THEN 'documents: parsing recipe changed'
               WHEN chunks_input IS DISTINCT FROM documents_output                       THEN 'chunks: document changed'
               WHEN chunks_recipe <> %(chunking)s                                        THEN 'chunks: chunking recipe changed'
               WHEN contexts_input IS DISTINCT FROM chunks_output                        THEN 'contextualized_chunks: chunks changed'
               WHEN contexts_recipe <> %(contextualizing)s                               THEN 'contextualized_chunks: contextualizing recipe changed'
               WHEN embeddings_input IS DISTINCT FROM contexts_output                    THEN 'embeddings: contextualized chunks changed'
               WHEN embeddings_recipe <> %(embedding)s                                   THEN 'embeddings: embedding recipe changed'
               WHEN bm25_input IS DISTINCT FROM contexts_output                          THEN 'bm25_index: contextualized chunks changed'
               WHEN bm25_recipe <> %(bm25)s                                              THEN 'bm25_index: bm25 recipe changed'
               WHEN corpus_input IS DISTINCT FROM
                    encode(sha256(convert_to(concat_ws(E'\n', source_path, content_hash, documents_output, contexts_output), 'UTF8')), 'hex')
                                                                                         THEN 'corpus: not published'
               WHEN NOT is_live                                                          THEN 'corpus: not published'
               WHEN wanted_stage IS NOT NULL                                             THEN wanted_stage || ': asked for'
           END AS verdict,
           CASE failed_stage
               WHEN 'parsing'         THEN concat_ws('|', stat, %(parsing)s)
               WHEN 'chunking'        THEN concat_ws('|', stat, %(parsing)s, %(chunking)s)
               WHEN 'contextualizing' THEN concat_ws('|', stat, %(parsing)s, %(chunking)s, %(contextualizing)s)
               ELSE concat_ws('|', stat, %(parsing)s, %(chunking)s, %(contextualizing)s, %(embedding)s, %(bm25)s)
           END AS failed_basis,
           concat_ws('|', stat, %(parsing)s, %(chunking)s, %(contextualizing)s, %(embedding)s, %(bm25)s) AS version
      FROM stages
)
SELECT source_id::text, partition_key, source_path, coalesce(seen_size, 0) AS size, split_part(verdict, ': ', 1) AS stage,
       split_part(verdict, ': ', 2) AS reason, version,
       presence = 'present' AND deletion_intent IS NULL AND error_code IS DISTINCT FROM 'path_too_long'
           AND (excluded_hash IS NULL OR stat_differs OR wanted_stage IS NOT NULL)
           AND (kind <> 'file' OR hashed_at IS NOT NULL
                OR first_seen_scan <= (SELECT max(scan_id) FROM scans WHERE state = 'complete'))
           AND CASE WHEN failed_version IS NULL THEN coalesce(retry_at <= %(now)s, true)
                    ELSE wanted_stage IS NOT NULL OR failed_version <> failed_basis OR coalesce(retry_at <= %(now)s, false) END
           AND NOT EXISTS (SELECT FROM attempts AS open WHERE open.source_id = judged.source_id AND open.finished_at IS NULL) AS claimable,
       settling
  FROM judged
 WHERE verdict IS NOT NULL
 ORDER BY source_path;
