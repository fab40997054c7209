-- name: stale_work
-- Goes on from `stale`: what bringing it up to date touches, and from which stage on.
, work AS (
    SELECT source_id, size, stage FROM stale
     WHERE presence = 'present' AND deletion_intent IS NULL AND (waits_for IS DISTINCT FROM 'wish' OR named) AND (%(stage)s::text IS NULL OR stage = %(stage)s)
)

-- name: forced_work
-- Goes on from `selected`: the same for what is made again from a stage on, stale or not.
, work AS (
    SELECT s.source_id, coalesce(s.seen_size, 0) AS size, %(stage)s::text AS stage
      FROM selected JOIN sources AS s USING (source_id)
     WHERE s.presence = 'present' AND s.deletion_intent IS NULL AND (s.excluded_hash IS NULL OR selected.named)
)

-- name: extent
-- By stage: documents, those of them that are published, their chunks, and the bytes of those that are not.
SELECT work.stage, count(*) AS documents, count(d.publication_id) AS published, coalesce(sum(d.n_chunks), 0)::bigint AS chunks,
       coalesce(sum(work.size) FILTER (WHERE d.publication_id IS NULL), 0)::bigint AS new_bytes
  FROM work LEFT JOIN documents AS d USING (source_id)
 GROUP BY work.stage
 ORDER BY work.stage;

-- name: strings
-- Of documents whose chunks stay as they are: distinct strings, and those of them that have no vector of the model.
SELECT count(*), count(*) FILTER (WHERE NOT EXISTS (
           SELECT FROM embedding_cache AS e WHERE e.spec_hash = %(spec_hash)s AND e.input_hash = strings.input_hash))
  FROM (SELECT DISTINCT encode(sha256(convert_to(%(prefix)s || c.contextualized_content, 'UTF8')), 'hex') AS input_hash
          FROM work JOIN documents AS d USING (source_id) JOIN chunks AS c USING (publication_id)
         WHERE work.stage IN ('embeddings', 'bm25_index', 'corpus')) AS strings;

-- name: pace
-- What the latest runs took, by the stage they began at: documents, seconds from binding to end, runs.
SELECT from_stage, sum(documents)::bigint, sum(seconds)::float8, count(*)
  FROM (SELECT min(from_stage) AS from_stage, count(*) AS documents, extract(epoch FROM max(finished_at) - min(started_at)) AS seconds
          FROM attempts
         WHERE state IN ('succeeded', 'failed') AND started_at IS NOT NULL AND from_stage IS NOT NULL
         GROUP BY run_id ORDER BY max(finished_at) DESC LIMIT 50) AS runs
 GROUP BY from_stage
 ORDER BY from_stage;

-- name: density
-- Of what is published: bytes of its files per chunk (NULL: nothing is), and the chunk size that most of it was made with.
SELECT (SELECT sum(s.seen_size)::float8 / nullif(sum(d.n_chunks), 0) FROM documents AS d JOIN sources AS s USING (source_id)),
       (SELECT r.settings FROM stage_state AS t JOIN run_settings AS r USING (run_id) WHERE t.stage = 'chunks'
         GROUP BY r.run_id, r.settings ORDER BY count(*) DESC, r.run_id LIMIT 1);
