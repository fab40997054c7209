-- name: claim_sources
-- Open an attempt for each given source that has none; returns those that were opened. What failed before is history now; how often it
-- failed counts on only for an attempt at the same bytes and recipe.
WITH wanted AS (
    SELECT * FROM unnest(%(source_ids)s::uuid[], %(stages)s::text[], %(reasons)s::text[], %(versions)s::text[])
                  AS w (source_id, from_stage, reason, version)
), opened AS (
    INSERT INTO attempts (source_id, attempt_number, batch_id, reason, wanted_version, from_stage, queued_at)
    SELECT w.source_id, 1 + coalesce((SELECT max(a.attempt_number) FROM attempts AS a WHERE a.source_id = w.source_id), 0),
           %(batch_id)s, w.reason, w.version, w.from_stage, %(now)s
      FROM wanted AS w
      JOIN sources AS s USING (source_id)
     WHERE s.deletion_intent IS NULL AND s.presence <> 'missing'
    ON CONFLICT DO NOTHING
    RETURNING source_id, wanted_version
)
UPDATE sources AS s
   SET status = 'processing', stage = 'queued', error_code = NULL, error_message = NULL, failed_version = NULL, retry_at = NULL,
       n_failures = CASE WHEN s.failed_version IS NULL OR starts_with(opened.wanted_version, s.failed_version) THEN s.n_failures ELSE 0 END,
       updated_at = %(now)s
  FROM opened WHERE s.source_id = opened.source_id
RETURNING s.source_id;

-- name: partitions_to_claim
-- The sources of partitions that a person chose, with what an attempt would try (the same as `version` in staleness.sql); by path.
SELECT source_id::text, 'documents' AS stage, 'asked for in the UI' AS reason,
       concat_ws('|', concat_ws(':', seen_size, seen_mtime_ns, seen_inode, member_hash,
                                CASE WHEN file_type = 'zip' AND %(zip_archives)s THEN 'archive' END),
                 %(parsing)s::text, %(chunking)s::text, %(contextualizing)s::text, %(embedding)s::text, %(bm25)s::text) AS version
  FROM sources
 WHERE partition_key = ANY(%(partitions)s)
 ORDER BY source_path;

-- name: batches_to_request
-- Claimed batches that no run has bound and that were never requested, or not since the given time, or are `lost`; oldest first.
SELECT a.batch_id, max(a.n_requests) AS n_requests, array_agg(s.partition_key ORDER BY s.partition_key) AS partitions
  FROM attempts AS a JOIN sources AS s USING (source_id)
 WHERE a.state = 'queued' AND a.finished_at IS NULL AND a.run_id IS NULL
   AND (a.requested_at IS NULL OR a.batch_id = ANY(%(lost)s::uuid[])
        OR a.requested_at NOT BETWEEN %(requested_before)s AND %(future)s)  -- the future: the clock was set back since
 GROUP BY a.batch_id
 ORDER BY min(a.queued_at), a.batch_id;

-- name: close_unclaimable
-- Close claims of sources that vanished, are being deleted or were excluded while the batch waited for its run.
WITH closed AS (
    UPDATE attempts AS a SET state = 'abandoned', finished_at = %(now)s
      FROM sources AS s
     WHERE s.source_id = a.source_id AND a.state = 'queued' AND a.finished_at IS NULL AND a.run_id IS NULL
       AND (s.deletion_intent IS NOT NULL OR s.presence = 'missing')
    RETURNING a.source_id
)
UPDATE sources AS s SET status = 'pending', stage = NULL, updated_at = %(now)s FROM closed WHERE s.source_id = closed.source_id;

-- name: batch_limits
-- Sources whose last attempt with a verdict was interrupted, with half of what was interrupted together with it. Attempts that ended with
-- their supervisor, their server or by hand say nothing of a document.
SELECT last.source_id::text,
       greatest(1, (SELECT count(*) FROM attempts AS mate WHERE mate.batch_id = last.batch_id AND mate.state = 'interrupted') / 2)
  FROM attempts AS last
 WHERE last.state = 'interrupted'
   AND NOT EXISTS (SELECT FROM attempts AS later
                    WHERE later.source_id = last.source_id AND later.attempt_number > last.attempt_number
                      AND later.state IN ('succeeded', 'failed', 'interrupted'))
 ORDER BY last.source_id;

-- name: bind_batch
-- The run's first act: it takes the batch, or finds that another run has.
WITH bound AS (
    UPDATE attempts SET run_id = %(run_id)s, state = 'running', stage = 'parsing', started_at = %(now)s,
           bound_under = concat_ws('|', coalesce(%(supervisor)s::text, ''), extract(epoch FROM pg_postmaster_start_time()))
     WHERE batch_id = %(batch_id)s AND run_id IS NULL AND state = 'queued'
    RETURNING source_id
)
UPDATE sources AS s SET status = 'processing', stage = 'parsing', updated_at = %(now)s FROM bound WHERE s.source_id = bound.source_id;

-- name: begin_publications
-- A pending publication for every open attempt of the run that has none: made before any file is opened, so that a later reader has a higher id.
WITH begun AS (
    INSERT INTO publications (source_id, source_path, run_id, created_at)
    SELECT s.source_id, s.source_path, a.run_id, %(now)s
      FROM attempts AS a JOIN sources AS s USING (source_id)
     WHERE a.run_id = %(run_id)s AND a.finished_at IS NULL AND a.publication_id IS NULL
     ORDER BY s.source_id
    RETURNING source_id, publication_id
)
UPDATE attempts AS a SET publication_id = begun.publication_id
  FROM begun WHERE a.source_id = begun.source_id AND a.run_id = %(run_id)s AND a.finished_at IS NULL;

-- name: open_sources
-- The sources whose attempt this run still holds, with what its steps need of them; by partition key.
SELECT s.source_id::text, s.partition_key, s.source_path, coalesce(f.disk_path, s.disk_path) AS disk_path, s.kind, s.file_type,
       s.content_hash, s.member_hash, s.listed_output, s.excluded_hash, s.presence = 'detached' AS detached,
       s.file_created_at, s.file_modified_at, w.key AS workspace, a.publication_id, coalesce(p.first_original_index, 0) AS first_original_index,
       CASE WHEN s.wished_at > a.started_at THEN '' ELSE coalesce(s.wanted_stage, '') END AS wanted_stage,  -- a later wish is the next run's
       (s.deletion_intent IS NULL AND s.presence <> 'missing' AND f.presence IS DISTINCT FROM 'missing'
           AND p.source_path = s.source_path) AS claimable
  FROM attempts AS a
  JOIN sources AS s USING (source_id)
  JOIN workspaces AS w USING (workspace_id)
  LEFT JOIN sources AS f ON f.source_id = s.file_id
  JOIN publications AS p ON p.publication_id = a.publication_id
 WHERE a.run_id = %(run_id)s AND a.finished_at IS NULL
 ORDER BY s.partition_key;

-- name: enter_stage
-- What a person sees of the run: its open documents are at this stage. Progress only rises.
WITH moved AS (
    UPDATE attempts SET stage = %(stage)s, progress = greatest(progress, %(progress)s)
     WHERE run_id = %(run_id)s AND finished_at IS NULL
    RETURNING source_id
)
UPDATE sources AS s SET stage = %(stage)s, updated_at = %(now)s FROM moved WHERE s.source_id = moved.source_id;

-- name: fail_attempts
-- Close attempts as failed; what was live stays live. A retryable failure is tried again after a wait that doubles, a few times.
WITH failed AS (
    SELECT * FROM unnest(%(source_ids)s::uuid[], %(codes)s::text[], %(messages)s::text[], %(retryable)s::boolean[])
                  AS f (source_id, code, message, retryable)
), closed AS (
    UPDATE attempts AS a SET state = 'failed', stage = %(stage)s, error_code = f.code, error_message = f.message, finished_at = %(now)s
      FROM failed AS f
     WHERE a.source_id = f.source_id AND a.run_id = %(run_id)s AND a.finished_at IS NULL
    RETURNING a.source_id, a.publication_id, a.wanted_version, a.started_at, f.code, f.message, f.retryable
), abandoned AS (
    UPDATE publications AS p SET state = 'abandoned', superseded_at = %(now)s
      FROM closed AS c WHERE p.publication_id = c.publication_id AND p.state = 'pending'
)
UPDATE sources AS s
   SET status = 'failed', stage = %(stage)s, error_code = c.code, error_message = c.message, updated_at = %(now)s,
       wanted_stage = CASE WHEN s.wished_at > c.started_at THEN s.wanted_stage END,
       n_failures = s.n_failures + 1,
       failed_version = CASE %(stage)s
           WHEN 'parsing' THEN array_to_string((string_to_array(c.wanted_version, '|'))[1:2], '|')
           WHEN 'chunking' THEN array_to_string((string_to_array(c.wanted_version, '|'))[1:3], '|')
           WHEN 'contextualizing' THEN array_to_string((string_to_array(c.wanted_version, '|'))[1:4], '|')
           ELSE c.wanted_version END,
       retry_at = CASE WHEN c.retryable AND s.n_failures + 1 < %(max_attempts)s
                       THEN %(now)s + make_interval(secs => %(backoff_s)s * 2 ^ s.n_failures) END
  FROM closed AS c WHERE s.source_id = c.source_id
RETURNING s.source_id;

-- name: release_attempts
-- Close attempts of the run, those of the given sources or all, without a verdict: what they did not publish stays stale.
WITH closed AS (
    UPDATE attempts SET state = %(state)s, progress = CASE %(state)s WHEN 'succeeded' THEN 1 ELSE progress END, finished_at = %(now)s
     WHERE run_id = %(run_id)s AND finished_at IS NULL AND (%(source_ids)s::uuid[] IS NULL OR source_id = ANY(%(source_ids)s::uuid[]))
    RETURNING source_id, publication_id
), abandoned AS (
    UPDATE publications AS p SET state = 'abandoned', superseded_at = %(now)s
      FROM closed AS c WHERE p.publication_id = c.publication_id AND p.state = 'pending'
)
UPDATE sources AS s
   SET status = CASE WHEN EXISTS (SELECT FROM documents AS d WHERE d.source_id = s.source_id) THEN 'ready'
                     WHEN s.excluded_hash IS NOT NULL THEN 'cancelled' ELSE 'pending' END,
       stage = NULL, updated_at = %(now)s
  FROM closed AS c WHERE s.source_id = c.source_id;

-- name: bound_batches
-- Batches that a run has bound and not finished, with the time of the binding; oldest first.
SELECT batch_id, run_id, min(started_at) AS bound_at
  FROM attempts
 WHERE finished_at IS NULL AND run_id IS NOT NULL
 GROUP BY batch_id, run_id
 ORDER BY bound_at, batch_id;

-- name: run_partitions
-- Everything that the run ever held, with the state of its attempt; by partition key.
SELECT s.partition_key, s.source_id::text, a.state
  FROM attempts AS a JOIN sources AS s USING (source_id)
 WHERE a.run_id = %(run_id)s
 ORDER BY s.partition_key;

-- name: failures_of_run
-- How each attempt of the run that failed did so, as a sentence; by partition key.
SELECT s.partition_key, failure_sentence(a.attempt_number, a.stage, a.error_code, a.started_at, a.finished_at)
  FROM attempts AS a JOIN sources AS s USING (source_id)
 WHERE a.run_id = %(run_id)s AND a.state = 'failed'
 ORDER BY s.partition_key;

-- name: held_by_run
-- What the run has not finished; `stayed`: the supervisor and the server under which it was bound are still the ones that run;
-- `alone`: its batch holds nothing else.
SELECT source_id, stage, wanted_version,
       bound_under IS NOT DISTINCT FROM concat_ws('|', coalesce(%(supervisor)s::text, ''), extract(epoch FROM pg_postmaster_start_time())) AS stayed,
       (SELECT count(*) FROM attempts AS mate WHERE mate.batch_id = a.batch_id) = 1 AS alone
  FROM attempts AS a
 WHERE run_id = %(run_id)s AND finished_at IS NULL
 ORDER BY source_id;

-- name: lone_interruptions
-- How often in a row, lately, an attempt at these bytes with this recipe was interrupted while its batch held nothing else.
SELECT count(*) FILTER (WHERE streak)
  FROM (SELECT bool_and(state = 'interrupted' AND wanted_version = %(version)s AND alone) OVER (ORDER BY attempt_number DESC) AS streak
          FROM (SELECT attempt_number, state, wanted_version,
                       (SELECT count(*) FROM attempts AS mate WHERE mate.batch_id = a.batch_id) = 1 AS alone
                  FROM attempts AS a
                 WHERE source_id = %(source_id)s AND state IN ('succeeded', 'failed', 'interrupted')) AS judged) AS counted;

-- name: interrupt_run
-- Of a dead run: these of its publications are abandoned and the claims closed; they wait before they are taken again.
WITH closed AS (
    UPDATE attempts SET state = 'interrupted', finished_at = %(now)s
     WHERE source_id = ANY(%(source_ids)s) AND run_id = %(run_id)s AND finished_at IS NULL
    RETURNING source_id, publication_id
), abandoned AS (
    UPDATE publications AS p SET state = 'abandoned', superseded_at = %(now)s
      FROM closed AS c WHERE p.publication_id = c.publication_id AND p.state = 'pending'
)
UPDATE sources AS s
   SET status = 'pending', stage = NULL, updated_at = %(now)s, retry_at = %(now)s + make_interval(secs => %(wait_s)s)
  FROM closed AS c WHERE s.source_id = c.source_id;

-- name: cancel_attempts
-- A person wants it: what was being made is dropped, what is live stays, and nothing is tried until a retry or a change of file, settings or code.
WITH closed AS (
    UPDATE attempts SET state = 'cancelled', finished_at = %(now)s
     WHERE source_id = ANY(%(source_ids)s) AND finished_at IS NULL AND (%(run_id)s::text IS NULL OR run_id = %(run_id)s)
    RETURNING source_id, publication_id, wanted_version, run_id
), abandoned AS (
    UPDATE publications AS p SET state = 'abandoned', superseded_at = %(now)s
      FROM closed AS c WHERE p.publication_id = c.publication_id AND p.state = 'pending'
)
UPDATE sources AS s
   SET status = 'cancelled', stage = NULL, error_code = NULL, error_message = NULL, failed_version = c.wanted_version, retry_at = NULL,
       n_failures = 0, wanted_stage = NULL, wished_version = NULL, updated_at = %(now)s
  FROM closed AS c WHERE s.source_id = c.source_id
RETURNING s.source_id, c.run_id;

-- name: close_unlaunched
-- A batch that was requested too often without a run: its sources wait, and say why.
WITH closed AS (
    UPDATE attempts SET state = 'launch_failed', finished_at = %(now)s, error_code = 'launch_failed', error_message = %(message)s
     WHERE batch_id = %(batch_id)s AND run_id IS NULL AND finished_at IS NULL
    RETURNING source_id
)
UPDATE sources AS s
   SET status = 'failed', error_code = 'launch_failed', error_message = %(message)s, n_failures = s.n_failures + 1, updated_at = %(now)s,
       retry_at = %(now)s + make_interval(secs => %(backoff_s)s * 2 ^ least(s.n_failures, 6))
  FROM closed AS c WHERE s.source_id = c.source_id;

-- name: count_calls
-- Add calls that no cache answered to the attempts that needed them.
UPDATE attempts AS a
   SET n_parsed = a.n_parsed + c.parsed, n_contexts = a.n_contexts + c.contexts, n_embedded = a.n_embedded + c.embedded
  FROM unnest(%(source_ids)s::uuid[], %(parsed)s::integer[], %(contexts)s::integer[], %(embedded)s::integer[])
       AS c (source_id, parsed, contexts, embedded)
 WHERE a.source_id = c.source_id AND a.run_id = %(run_id)s AND a.finished_at IS NULL;

-- name: record_stages
-- What a stage of each source was made from, by which recipe, with which result; only while this run holds the source.
INSERT INTO stage_state (source_id, stage, input_version, fingerprint, output_hash, result_key, run_id, updated_at)
SELECT r.source_id, %(stage)s, r.input_version, %(fingerprint)s, r.output_hash, r.result_key, %(run_id)s, %(now)s
  FROM unnest(%(source_ids)s::uuid[], %(inputs)s::text[], %(outputs)s::text[], %(keys)s::text[])
       AS r (source_id, input_version, output_hash, result_key)
 WHERE EXISTS (SELECT FROM attempts AS a WHERE a.source_id = r.source_id AND a.run_id = %(run_id)s AND a.finished_at IS NULL)
ON CONFLICT (source_id, stage) DO UPDATE
   SET input_version = excluded.input_version, fingerprint = excluded.fingerprint, output_hash = excluded.output_hash,
       result_key = excluded.result_key, run_id = excluded.run_id, updated_at = excluded.updated_at
RETURNING source_id;

-- name: record_hashes
-- What the spool read: the hash, and the stat that can vouch for it (NULL where it cannot). Raises the clocks of the file beside it.
UPDATE sources AS s
   SET content_hash = h.content_hash, hashed_size = h.size, hashed_mtime_ns = h.mtime_ns, hashed_inode = h.inode, hashed_device = h.device,
       hashed_at = %(now)s, file_created_at = h.created_at, file_modified_at = h.modified_at, updated_at = %(now)s,
       excluded_hash = CASE WHEN s.excluded_hash = h.content_hash AND s.wanted_stage IS NULL THEN s.excluded_hash END
  FROM unnest(%(source_ids)s::uuid[], %(hashes)s::text[], %(sizes)s::bigint[], %(mtimes)s::bigint[], %(inodes)s::numeric[],
              %(devices)s::numeric[], %(created)s::timestamptz[], %(modified)s::timestamptz[])
       AS h (source_id, content_hash, size, mtime_ns, inode, device, created_at, modified_at)
 WHERE s.source_id = h.source_id
   AND EXISTS (SELECT FROM attempts AS a WHERE a.source_id = h.source_id AND a.run_id = %(run_id)s AND a.finished_at IS NULL);
