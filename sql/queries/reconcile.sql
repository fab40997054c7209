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
