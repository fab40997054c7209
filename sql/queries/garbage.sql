-- name: evictable_before
-- What was used since then may be in use: the claim of the oldest open attempt, or an hour ago.
SELECT least(%(now)s - interval '1 hour', (SELECT min(queued_at) FROM attempts WHERE finished_at IS NULL));

-- name: evictable_objects
-- Objects of the lake none of whose results any source stands on, the least recently used first.
SELECT r.object
  FROM stage_results AS r
 GROUP BY r.object
HAVING max(r.last_used_at) < %(before)s
   AND NOT bool_or(EXISTS (SELECT FROM stage_state AS s WHERE s.stage = r.stage AND s.result_key = r.key))
 ORDER BY max(r.last_used_at), r.object;

-- name: forget_objects
-- The results of these objects, as long as nobody uses them again: first the rows, then the bytes.
DELETE FROM stage_results AS r
 WHERE r.object = ANY(%(objects)s) AND r.last_used_at < %(before)s
   AND NOT EXISTS (SELECT FROM stage_state AS s WHERE s.stage = r.stage AND s.result_key = r.key);

-- name: objects_with_results
-- Those of the objects that a result lies in.
SELECT DISTINCT object FROM stage_results WHERE object = ANY(%(objects)s);

-- name: cached_vectors
-- How many vectors the cache holds of each spec, and whether an index of it exists; specs without an index first.
SELECT c.spec_hash, count(*) AS n_vectors, max(vector_dims(c.embedding)) AS dimension, i.spec ->> 'passage_prefix' AS prefix
  FROM embedding_cache AS c LEFT JOIN embedding_indexes AS i USING (spec_hash)
 GROUP BY c.spec_hash, i.spec
 ORDER BY i.spec IS NOT NULL, c.spec_hash;

-- name: evict_vectors
-- The least recently used vectors of a spec that no published chunk has.
DELETE FROM embedding_cache AS c
 USING (SELECT e.input_hash
          FROM embedding_cache AS e
         WHERE e.spec_hash = %(spec_hash)s AND e.last_used_at < %(before)s
           AND (%(prefix)s::text IS NULL OR NOT EXISTS (
               SELECT FROM chunks AS k
                WHERE encode(sha256(convert_to(%(prefix)s || k.contextualized_content, 'UTF8')), 'hex') = e.input_hash))
         ORDER BY e.last_used_at, e.input_hash
         LIMIT %(limit)s
           FOR UPDATE SKIP LOCKED) AS unused
 WHERE c.spec_hash = %(spec_hash)s AND c.input_hash = unused.input_hash;
