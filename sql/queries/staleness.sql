-- name: stale
-- Goes on from `selected`, and is the beginning of every query below: each of those whose corpus is not what its file and the wanted recipes give.
-- For every asset of the chain its column says why it is not what its own input and recipe give (NULL: it is); `stage` and `reason`
-- are those of the first that differs, `waits_for` what must come before it is claimed (NULL: nothing).
-- A file modified a moment ago is still settling: its stat could not vouch for what is read now.
-- `version` names what an attempt from here would try: a failure is not repeated until it differs, and a wish passes a policy until it differs.
, complete AS (
    SELECT max(scan_id) AS scan_id FROM scans WHERE state = 'complete'
), differing AS (
    SELECT s.source_id, selected.named, s.partition_key, s.source_path, coalesce(s.seen_size, 0) AS size, s.workspace_id, s.wanted_stage, s.wished_version,
           s.presence, s.deletion_intent, s.excluded_hash, s.error_code, s.failed_version, s.retry_at, stat_differs,
           s.kind = 'file' AND s.hashed_at IS NULL AND coalesce(s.first_seen_scan > (SELECT scan_id FROM complete), true) AS walk_goes_on,
           coalesce(s.kind = 'file' AND s.seen_mtime_ns BETWEEN %(settled_ns)s AND %(now_ns)s, false) AS settling,
           CASE WHEN s.kind <> 'contained' OR s.presence = 'detached'          THEN NULL
                WHEN f.presence <> 'present' OR f.deletion_intent IS NOT NULL  THEN 'file'
                WHEN s.member_hash IS NULL                                     THEN 'change' END AS out_of_reach,
           CASE
               -- no file was ever seen: it is worked on from its stored text, if a parser of ours made that
               WHEN s.presence = 'detached'                                    THEN CASE d.fingerprint WHEN '' THEN 'parsing recipe changed' END
               WHEN s.hashed_at IS NULL                                        THEN 'new file'
               WHEN s.kind IN ('file', 'contained') AND stat_differs           THEN 'file changed'
               WHEN s.kind = 'file' AND s.hashed_at < %(hash_before)s          THEN 'periodic full hash'
               WHEN d.input_version IS NULL                                    THEN 'not made yet'
               WHEN d.input_version IS DISTINCT FROM s.content_hash            THEN 'file changed'
               WHEN d.fingerprint <> %(parsing)s                               THEN 'parsing recipe changed'
               WHEN s.listed_output <> d.output_hash                           THEN 'members not listed'
               WHEN s.listed_output IS NOT NULL AND s.file_type = 'zip' AND NOT %(zip_archives)s THEN 'archives are not read'
               WHEN s.wanted_stage = 'documents'                               THEN 'asked for'
           END AS documents,
           CASE
               WHEN c.input_version IS DISTINCT FROM d.output_hash             THEN 'document changed'
               WHEN c.fingerprint <> %(chunking)s                              THEN 'chunking recipe changed'
               WHEN s.wanted_stage = 'chunks'                                  THEN 'asked for'
           END AS chunks,
           CASE
               WHEN x.input_version IS DISTINCT FROM c.output_hash             THEN 'chunks changed'
               WHEN x.fingerprint <> %(contextualizing)s                       THEN 'contextualizing recipe changed'
               WHEN s.wanted_stage = 'contextualized_chunks'                   THEN 'asked for'
           END AS contextualized_chunks,
           CASE
               WHEN e.input_version IS DISTINCT FROM x.output_hash             THEN 'contextualized chunks changed'
               WHEN e.fingerprint <> %(embedding)s                             THEN 'embedding recipe changed'
               WHEN s.wanted_stage = 'embeddings'                              THEN 'asked for'
           END AS embeddings,
           CASE
               WHEN b.input_version IS DISTINCT FROM x.output_hash             THEN 'contextualized chunks changed'
               WHEN b.fingerprint <> %(bm25)s                                  THEN 'bm25 recipe changed'
               WHEN s.wanted_stage = 'bm25_index'                              THEN 'asked for'
           END AS bm25_index,
           CASE
               WHEN p.input_version IS DISTINCT FROM
                    encode(sha256(convert_to(concat_ws(E'\n', s.source_path, s.content_hash, d.output_hash, x.output_hash), 'UTF8')), 'hex')
                                                                               THEN 'not published'
               WHEN NOT EXISTS (SELECT FROM publications AS live WHERE live.source_id = s.source_id AND live.state = 'live')
                                                                               THEN 'not published'
               WHEN s.wanted_stage = 'corpus'                                  THEN 'asked for'
           END AS corpus,
           CASE s.stage
               WHEN 'parsing'         THEN concat_ws('|', stat, %(parsing)s::text)
               WHEN 'chunking'        THEN concat_ws('|', stat, %(parsing)s::text, %(chunking)s::text)
               WHEN 'contextualizing' THEN concat_ws('|', stat, %(parsing)s::text, %(chunking)s::text, %(contextualizing)s::text)
               ELSE concat_ws('|', stat, %(parsing)s::text, %(chunking)s::text, %(contextualizing)s::text, %(embedding)s::text, %(bm25)s::text)
           END AS failed_basis,
           concat_ws('|', stat, %(parsing)s::text, %(chunking)s::text, %(contextualizing)s::text, %(embedding)s::text, %(bm25)s::text)
               AS version
      FROM selected JOIN sources AS s USING (source_id)
     CROSS JOIN LATERAL (
           SELECT CASE s.kind
                      WHEN 'contained' THEN s.member_hash IS DISTINCT FROM s.content_hash
                      ELSE (s.seen_size, s.seen_mtime_ns, s.seen_inode, s.seen_device)
                           IS DISTINCT FROM (s.hashed_size, s.hashed_mtime_ns, s.hashed_inode, s.hashed_device) END AS stat_differs,
                  concat_ws(':', s.seen_size, s.seen_mtime_ns, s.seen_inode, s.member_hash,
                            CASE WHEN s.file_type = 'zip' AND %(zip_archives)s THEN 'archive' END) AS stat) AS seen
      LEFT JOIN sources AS f ON f.source_id = s.file_id
      LEFT JOIN stage_state AS d ON d.source_id = s.source_id AND d.stage = 'documents'
      LEFT JOIN stage_state AS c ON c.source_id = s.source_id AND c.stage = 'chunks'
      LEFT JOIN stage_state AS x ON x.source_id = s.source_id AND x.stage = 'contextualized_chunks'
      LEFT JOIN stage_state AS e ON e.source_id = s.source_id AND e.stage = 'embeddings'
      LEFT JOIN stage_state AS b ON b.source_id = s.source_id AND b.stage = 'bm25_index'
      LEFT JOIN stage_state AS p ON p.source_id = s.source_id AND p.stage = 'corpus'
    OFFSET 0  -- a fence: without it the planner repeats these expressions wherever they are named
), stale AS (
    SELECT differing.*, amiss.stage, amiss.reason,
           CASE WHEN EXISTS (SELECT FROM attempts AS open WHERE open.source_id = differing.source_id AND open.finished_at IS NULL) THEN 'run'
                WHEN deletion_intent IS NOT NULL                                           THEN 'deletion'
                WHEN presence = 'missing' OR (presence = 'detached' AND amiss.stage = 'documents') THEN 'file'
                WHEN out_of_reach IS NOT NULL                                              THEN out_of_reach
                WHEN error_code = 'path_too_long'                                          THEN 'change'
                WHEN excluded_hash IS NOT NULL AND NOT stat_differs AND wanted_stage IS NULL THEN 'wish'
                WHEN walk_goes_on                                                          THEN 'walk'
                WHEN failed_version IS NULL AND retry_at > %(now)s                         THEN 'retry'
                WHEN failed_version = failed_basis AND wanted_stage IS NULL AND retry_at IS NULL    THEN 'change'
                WHEN failed_version = failed_basis AND wanted_stage IS NULL AND retry_at > %(now)s  THEN 'retry'
                -- What is live stays as a manual stage made it, and what is below that stage waits too, since it would be made from what is
                -- about to be replaced. Whatever flows for another reason flows whole.
                WHEN amiss.stage = ANY(%(manual)s::text[]) AND amiss.reason LIKE '%% recipe changed'
                     AND wanted_stage IS NULL AND wished_version IS DISTINCT FROM version
                     AND EXISTS (SELECT FROM documents AS live
                                  WHERE live.source_id = differing.source_id AND live.source_path = differing.source_path) THEN 'backfill'
           END AS waits_for
      FROM differing
     CROSS JOIN LATERAL (
           SELECT CASE WHEN documents IS NOT NULL             THEN 'documents'
                       WHEN chunks IS NOT NULL                THEN 'chunks'
                       WHEN contextualized_chunks IS NOT NULL THEN 'contextualized_chunks'
                       WHEN embeddings IS NOT NULL            THEN 'embeddings'
                       WHEN bm25_index IS NOT NULL            THEN 'bm25_index'
                       ELSE 'corpus' END AS stage,
                  coalesce(documents, chunks, contextualized_chunks, embeddings, bm25_index, corpus) AS reason) AS amiss
     WHERE amiss.reason IS NOT NULL
)

-- name: stale_counts
-- How many there are of each kind; most first.
SELECT documents, chunks, contextualized_chunks, embeddings, bm25_index, corpus, stage, reason, waits_for, settling, count(*) AS sources
  FROM stale
 GROUP BY documents, chunks, contextualized_chunks, embeddings, bm25_index, corpus, stage, reason, waits_for, settling
 ORDER BY sources DESC, stage, reason, waits_for, settling;

-- name: stale_page
-- Some of them by path, those of `last` at the end, with what `claim_sources` needs.
SELECT source_id::text, partition_key, source_path, size, stage, reason, version, waits_for IS NULL AS claimable, settling, waits_for
  FROM stale
 WHERE (%(stage)s::text IS NULL OR stage = %(stage)s)
   AND (%(after)s::text IS NULL OR source_path > %(after)s)
   AND (NOT %(claimable)s OR waits_for IS NULL AND (NOT settling OR source_id = ANY(%(overdue)s::uuid[])))
   AND (NOT %(settling)s OR settling)
 ORDER BY source_id = ANY(%(last)s::uuid[]), source_path
 LIMIT %(limit)s;

-- name: wish_stale
-- A person asks for what is stale: a wait after a failure ends, and no policy holds it back until something else is wanted.
UPDATE sources AS s
   SET wished_version = stale.version, wished_at = %(now)s, failed_version = NULL, retry_at = NULL, n_failures = 0, updated_at = %(now)s
  FROM stale
 WHERE s.source_id = stale.source_id AND (%(stage)s::text IS NULL OR stale.stage = %(stage)s)
   AND stale.deletion_intent IS NULL AND stale.presence = 'present' AND stale.waits_for IS DISTINCT FROM 'wish';

-- name: recipes
-- By which recipes a stage of the corpus is made, the most used first, and the settings of a run that used each (NULL: no longer known).
SELECT made.stage, made.fingerprint, r.settings
  FROM (SELECT stage, fingerprint, count(*) AS sources, max(run_id) AS run_id FROM stage_state WHERE stage <> 'corpus' GROUP BY stage, fingerprint) AS made
  LEFT JOIN run_settings AS r USING (run_id)
 ORDER BY made.stage, made.sources DESC, made.fingerprint;
