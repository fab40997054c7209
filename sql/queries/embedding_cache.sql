-- name: present_inputs
-- Which of the hashes have a vector of this spec; marks them as used. Rows that another transaction is marking are left to it: nobody
-- waits here, and so nobody can deadlock.
WITH present AS (
    SELECT input_hash FROM embedding_cache WHERE spec_hash = %(spec_hash)s AND input_hash = ANY (%(input_hashes)s)
), free AS (
    SELECT input_hash FROM embedding_cache
     WHERE spec_hash = %(spec_hash)s AND input_hash = ANY (%(input_hashes)s)
     ORDER BY input_hash
       FOR NO KEY UPDATE SKIP LOCKED
), used AS (
    UPDATE embedding_cache AS c SET last_used_at = now()
      FROM free WHERE c.spec_hash = %(spec_hash)s AND c.input_hash = free.input_hash
)
SELECT input_hash FROM present;

-- name: new_vectors
-- Where the vectors of one call arrive.
CREATE TEMPORARY TABLE new_vectors (input_hash text NOT NULL, embedding vector NOT NULL) ON COMMIT DROP;

-- name: keep_new_vectors
-- In one order for everybody, so that two transactions with common hashes wait for each other and never in a circle.
INSERT INTO embedding_cache (spec_hash, input_hash, embedding)
SELECT %(spec_hash)s, input_hash, embedding FROM new_vectors ORDER BY input_hash
    ON CONFLICT DO NOTHING;

-- name: replace_vectors
-- The same for vectors that were asked for anew.
INSERT INTO embedding_cache AS c (spec_hash, input_hash, embedding)
SELECT %(spec_hash)s, input_hash, embedding FROM new_vectors ORDER BY input_hash
    ON CONFLICT (spec_hash, input_hash) DO UPDATE SET embedding = excluded.embedding, created_at = now(), last_used_at = now();

-- name: read_vectors
-- The vectors of these hashes, where there are any.
SELECT input_hash, embedding FROM embedding_cache WHERE spec_hash = %(spec_hash)s AND input_hash = ANY (%(input_hashes)s);
