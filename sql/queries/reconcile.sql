-- name: wish_excluded
-- Files under the paths that were taken out of the corpus are wanted again.
UPDATE sources SET wanted_stage = 'documents', retry_at = NULL, updated_at = %(now)s
 WHERE excluded_hash IS NOT NULL AND deletion_intent IS NULL AND presence = 'present' AND wanted_stage IS NULL
   AND EXISTS (SELECT FROM unnest(%(paths)s::text[]) AS p (path) WHERE source_path = path OR starts_with(source_path, path || '/'));

-- name: wish_documents
-- Sources under the paths (NULL: all) are to be parsed again, now: a wait after a failure ends. What was taken out of the corpus stays out.
UPDATE sources SET wanted_stage = 'documents', retry_at = NULL, updated_at = %(now)s
 WHERE deletion_intent IS NULL AND presence = 'present' AND excluded_hash IS NULL
   AND (%(paths)s::text[] IS NULL
        OR EXISTS (SELECT FROM unnest(%(paths)s::text[]) AS p (path)
                    WHERE source_path = path OR starts_with(source_path, path || '/') OR path = ''));

-- name: forgettable_partitions
-- Partition keys that belonged to no source for long enough; a thousand at a time.
SELECT partition_key FROM retired_partitions WHERE retired_at < %(retired_before)s ORDER BY partition_key LIMIT 1000;

-- name: walks_since
-- Of the walks that began since then: whether one is complete, and what they met.
SELECT count(*) FILTER (WHERE state = 'complete') > 0, coalesce(max(n_seen) FILTER (WHERE state = 'complete'), 0),
       coalesce(sum(n_new), 0), coalesce(sum(n_changed), 0), coalesce(sum(n_vanished), 0)
  FROM scans WHERE started_at >= %(since)s;

-- name: attempts_since
-- The attempts that are open or ended since then, by outcome, their runs, and the calls that no cache answered.
SELECT count(*) FILTER (WHERE finished_at IS NULL), count(*) FILTER (WHERE state = 'succeeded'),
       count(*) FILTER (WHERE state IN ('failed', 'launch_failed')), count(DISTINCT run_id),
       coalesce(sum(n_parsed), 0), coalesce(sum(n_contexts), 0), coalesce(sum(n_embedded), 0)
  FROM attempts WHERE finished_at IS NULL OR finished_at >= %(since)s;
