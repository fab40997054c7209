-- name: chosen_sources
-- The sources under the paths (NULL: all), with this id (NULL: any), of the workspace (NULL: any), of the batch (NULL: any); those being deleted are not chosen.
SELECT source_id, source_path
  FROM sources AS s JOIN workspaces AS w USING (workspace_id)
 WHERE s.deletion_intent IS NULL
   AND (%(paths)s::text[] IS NULL
        OR EXISTS (SELECT FROM unnest(%(paths)s::text[]) AS p (path)
                    WHERE s.source_path = path OR starts_with(s.source_path, path || '/') OR path = ''))
   AND (%(source_id)s::uuid IS NULL OR s.source_id = %(source_id)s)
   AND (%(workspace)s::text IS NULL OR w.key = %(workspace)s)
   AND (%(batch_id)s::uuid IS NULL
        OR s.source_id IN (SELECT source_id FROM attempts WHERE batch_id = %(batch_id)s AND finished_at IS NULL))
 ORDER BY source_id;

-- name: cancel_waiting
-- What would be claimed next is not, until a retry or a change: `version` is what is not tried.
UPDATE sources AS s
   SET status = 'cancelled', stage = NULL, failed_version = w.version, retry_at = NULL, n_failures = 0, wanted_stage = NULL, wished_version = NULL,
       updated_at = %(now)s
  FROM unnest(%(source_ids)s::uuid[], %(versions)s::text[]) AS w (source_id, version)
 WHERE s.source_id = w.source_id AND s.presence = 'present' AND s.status IN ('pending', 'processing', 'ready')
   AND NOT EXISTS (SELECT FROM attempts AS open WHERE open.source_id = s.source_id AND open.finished_at IS NULL)
RETURNING s.source_id;

-- name: retry_sources
-- What failed or was cancelled may be tried again now. Of what is stale nothing more is needed; a failure of what is not was one of a wish,
-- and is wished again. What was deleted and what cannot be taken at all stay as they are.
UPDATE sources AS s
   SET status = CASE WHEN s.source_id = ANY(%(stale)s) OR s.status = 'failed' THEN 'pending' ELSE 'ready' END,
       wanted_stage = CASE WHEN s.source_id = ANY(%(stale)s) OR s.status = 'cancelled' THEN s.wanted_stage
                           ELSE CASE s.stage WHEN 'chunking' THEN 'chunks' WHEN 'contextualizing' THEN 'contextualized_chunks'
                                             WHEN 'embedding' THEN 'embeddings' WHEN 'indexing' THEN 'bm25_index'
                                             WHEN 'publishing' THEN 'corpus' ELSE 'documents' END END,
       stage = NULL, error_code = NULL, error_message = NULL, failed_version = NULL, retry_at = NULL, n_failures = 0, updated_at = %(now)s
 WHERE s.source_id = ANY(%(source_ids)s) AND s.status = ANY(%(statuses)s) AND s.presence = 'present' AND s.deletion_intent IS NULL
   AND s.excluded_hash IS NULL AND s.error_code IS DISTINCT FROM 'path_too_long' AND (s.kind <> 'contained' OR s.member_hash IS NOT NULL)
   AND NOT EXISTS (SELECT FROM attempts AS open WHERE open.source_id = s.source_id AND open.finished_at IS NULL)
RETURNING s.source_id;
