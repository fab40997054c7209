-- name: selected
-- The beginning of every query over some documents of the library; a part that is NULL restricts nothing. `named`: by a path other than the
-- library itself.
WITH selected AS (
    SELECT s.source_id,
           EXISTS (SELECT FROM unnest(%(paths)s::text[]) AS p (path)
                    WHERE path <> '' AND (s.source_path = path OR starts_with(s.source_path, path || '/'))) AS named
      FROM sources AS s
     WHERE (%(workspace)s::text IS NULL OR s.workspace_id = (SELECT w.workspace_id FROM workspaces AS w WHERE w.key = %(workspace)s))
       AND (%(paths)s::text[] IS NULL
            OR EXISTS (SELECT FROM unnest(%(paths)s::text[]) AS p (path)
                        WHERE s.source_path = path OR starts_with(s.source_path, path || '/') OR path = ''))
       AND (NOT %(by_recipe)s
            OR s.source_id IN (SELECT m.source_id FROM document_provenance AS m
                                WHERE (%(parser)s::text IS NULL OR m.parser = %(parser)s)
                                  AND (%(parser_version)s::text IS NULL OR m.parser_version = %(parser_version)s)
                                  AND (%(chunker)s::text IS NULL OR m.chunker = %(chunker)s)
                                  AND (%(embedding_model)s::text IS NULL OR m.embedding_model = %(embedding_model)s)))
)

-- name: wish_excluded
-- What was taken out of the corpus with its file kept is wanted again where a path names it or a folder above it, and in no other way.
UPDATE sources AS s SET wanted_stage = 'documents', wished_at = %(now)s, retry_at = NULL, updated_at = %(now)s
  FROM selected
 WHERE s.source_id = selected.source_id AND selected.named AND s.excluded_hash IS NOT NULL AND s.wanted_stage IS NULL
   AND s.deletion_intent IS NULL AND s.presence = 'present';

-- name: wish_stage
-- These are to be made again from this stage on, now: a wait after a failure ends. What was taken out of the corpus stays out.
UPDATE sources AS s SET wanted_stage = %(stage)s, wished_at = %(now)s, wished_version = NULL, retry_at = NULL, updated_at = %(now)s
  FROM selected
 WHERE s.source_id = selected.source_id AND s.excluded_hash IS NULL AND s.deletion_intent IS NULL AND s.presence = 'present';
