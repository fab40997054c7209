-- name: forget_results
-- What only these sources stand on: renamed to a key that no work has, so that nobody finds it and the next sweep takes its bytes away.
WITH forgotten AS (
    SELECT r.stage, r.key
      FROM stage_results AS r JOIN stage_state AS s ON s.stage = r.stage AND s.result_key = r.key
     WHERE s.source_id = ANY(%(source_ids)s::uuid[])
       AND NOT EXISTS (SELECT FROM stage_state AS other
                        WHERE other.stage = r.stage AND other.result_key = r.key AND other.source_id <> ALL(%(source_ids)s::uuid[]))
     ORDER BY r.stage, r.key
       FOR NO KEY UPDATE OF r
)
UPDATE stage_results AS r SET key = 'forgotten:' || r.key || '@' || r.object, last_used_at = %(now)s
  FROM forgotten WHERE r.stage = forgotten.stage AND r.key = forgotten.key;

-- name: objects_to_sweep
-- Objects with results that were forgotten before any run under way was claimed, with the keys of the others and theirs.
SELECT object, coalesce(array_agg(key) FILTER (WHERE NOT starts_with(key, 'forgotten:')), '{}') AS kept,
       array_agg(key) FILTER (WHERE starts_with(key, 'forgotten:')) AS forgotten
  FROM stage_results
 WHERE object IN (SELECT object FROM stage_results
                   WHERE starts_with(key, 'forgotten:')
                     AND last_used_at < coalesce((SELECT min(queued_at) FROM attempts WHERE finished_at IS NULL), 'infinity')
                   ORDER BY object LIMIT %(limit)s)
 GROUP BY object
 ORDER BY object;

-- name: move_results
-- What else lies in the object lies in the new one, and so does what was forgotten since: its turn comes next.
UPDATE stage_results SET object = %(new)s WHERE object = %(object)s AND key <> ALL(%(forgotten)s);

-- name: drop_forgotten
DELETE FROM stage_results WHERE object = %(object)s AND key = ANY(%(forgotten)s);
