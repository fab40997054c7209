-- name: scan
-- One walk.
SELECT scan_id, library, cursor, n_seen, n_new, n_changed, n_vanished, n_renamed, skipped, unlistable FROM scans WHERE scan_id = %(scan_id)s;

-- name: begin_scan
-- A new walk; of the old ones the last thousand are kept.
WITH forgotten AS (
    DELETE FROM scans WHERE state <> 'walking' AND scan_id < (SELECT max(scan_id) FROM scans) - 1000
)
INSERT INTO scans (library, started_at) VALUES (%(library)s, %(now)s)
RETURNING scan_id, cursor;

-- name: advance_scan
-- Where the walk has got to and what it has met.
UPDATE scans
   SET cursor = %(cursor)s, n_seen = %(n_seen)s, n_new = %(n_new)s, n_changed = %(n_changed)s, skipped = %(skipped)s, unlistable = %(unlistable)s
 WHERE scan_id = %(scan_id)s;

-- name: create_walked
-- Where a batch of a walk lands before it meets the catalog.
CREATE TEMPORARY TABLE IF NOT EXISTS walked (
    source_path text NOT NULL, disk_path bytea NOT NULL, size bigint NOT NULL, mtime_ns bigint NOT NULL, inode numeric NOT NULL, device numeric NOT NULL
) ON COMMIT DELETE ROWS;

-- name: stamp_seen
-- Known files of the batch are there; returns how many, and how many of them have another stat than last time.
-- No indexed column changes, so a stamp stays on its page and no index is touched.
WITH met AS (
    SELECT s.source_id, w.disk_path, w.size, w.mtime_ns, w.inode, w.device,
           (s.seen_size, s.seen_mtime_ns, s.seen_inode, s.seen_device) IS DISTINCT FROM (w.size, w.mtime_ns, w.inode, w.device) AS differs
      FROM walked AS w JOIN sources AS s USING (source_path)
     WHERE s.kind = 'file' AND s.deletion_intent IS NULL
), stamped AS (
    UPDATE sources AS s
       SET seen_size = m.size, seen_mtime_ns = m.mtime_ns, seen_inode = m.inode, seen_device = m.device, disk_path = m.disk_path,
           last_seen_scan = %(scan_id)s, presence = 'present', missing_since = NULL, missing_scans = 0,
           updated_at = CASE WHEN m.differs OR s.presence <> 'present' THEN %(now)s ELSE s.updated_at END
      FROM met AS m
     WHERE s.source_id = m.source_id
    RETURNING m.differs
)
SELECT count(*)::integer, (count(*) FILTER (WHERE differs))::integer FROM stamped;

-- name: unknown_paths
-- Files of the batch that no source stands for; the path of a source that is being deleted is not unknown.
SELECT w.source_path FROM walked AS w WHERE NOT EXISTS (SELECT FROM sources AS s WHERE s.source_path = w.source_path) ORDER BY w.source_path;

-- name: insert_workspaces
-- A workspace for each first folder; a name that someone gave stays.
INSERT INTO workspaces (key, name, created_at, updated_at)
SELECT w.key, w.name, %(now)s, %(now)s FROM unnest(%(keys)s::text[], %(names)s::text[]) AS w (key, name)
ON CONFLICT (key) DO NOTHING;

-- name: insert_folders
-- One level of folders; a second spelling of a name shares the row of the first.
INSERT INTO folders (workspace_id, parent_id, name, name_key, disk_name, depth, created_at, updated_at)
SELECT f.workspace_id, f.parent_id, f.name, f.name_key, f.disk_name, %(depth)s, %(now)s, %(now)s
  FROM unnest(%(workspace_ids)s::bigint[], %(parent_ids)s::bigint[], %(names)s::text[], %(name_keys)s::text[], %(disk_names)s::text[])
       AS f (workspace_id, parent_id, name, name_key, disk_name)
ON CONFLICT (workspace_id, parent_id, name_key) WHERE state IN ('ready', 'deleting') DO NOTHING;

-- name: folder_ids
-- The folders of one level, in the order asked for.
SELECT f.folder_id
  FROM unnest(%(workspace_ids)s::bigint[], %(parent_ids)s::bigint[], %(name_keys)s::text[])
       WITH ORDINALITY AS wanted (workspace_id, parent_id, name_key, position)
  JOIN folders AS f ON f.workspace_id = wanted.workspace_id AND f.parent_id IS NOT DISTINCT FROM wanted.parent_id
                   AND f.name_key = wanted.name_key AND f.state IN ('ready', 'deleting')
 ORDER BY wanted.position;

-- name: insert_sources
-- New files of the batch; a partition key that comes back is retired no longer.
WITH inserted AS (
    INSERT INTO sources (workspace_id, folder_id, source_path, partition_key, disk_path, file_type, seen_size, seen_mtime_ns, seen_inode,
                         seen_device, first_seen_scan, last_seen_scan, status, stage, error_code, error_message, created_at, updated_at)
    SELECT n.workspace_id, n.folder_id, w.source_path, n.partition_key, w.disk_path, n.file_type, w.size, w.mtime_ns, w.inode,
           w.device, %(scan_id)s, %(scan_id)s, CASE WHEN n.error_code IS NULL THEN 'pending' ELSE 'failed' END,
           CASE WHEN n.error_code IS NOT NULL THEN 'queued' END, n.error_code, n.error_message, %(now)s, %(now)s
      FROM unnest(%(source_paths)s::text[], %(partition_keys)s::text[], %(workspace_ids)s::bigint[], %(folder_ids)s::bigint[],
                  %(file_types)s::text[], %(error_codes)s::text[], %(error_messages)s::text[])
           AS n (source_path, partition_key, workspace_id, folder_id, file_type, error_code, error_message)
      JOIN walked AS w USING (source_path)
    ON CONFLICT DO NOTHING
    RETURNING partition_key
), revived AS (
    DELETE FROM retired_partitions WHERE partition_key IN (SELECT partition_key FROM inserted)
)
SELECT count(*)::integer FROM inserted;

-- name: unseen_sources
-- Files of the catalog that the walk did not meet.
SELECT source_id, source_path, partition_key, disk_path, presence, coalesce(content_hash, excluded_hash) AS content_hash,
       hashed_size, seen_size, seen_inode::text AS inode, seen_device::text AS device
  FROM sources
 WHERE kind = 'file' AND presence IN ('present', 'missing') AND deletion_intent IS NULL AND last_seen_scan IS DISTINCT FROM %(scan_id)s
 ORDER BY source_id;

-- name: new_files
-- Files met since the last complete walk, on which no work has begun, and whose size is one of those given; by path.
SELECT source_id, workspace_id, folder_id, source_path, partition_key, disk_path, file_type, seen_size AS size, seen_mtime_ns AS mtime_ns,
       seen_inode::text AS inode, seen_device::text AS device, rename_hash
  FROM sources AS s
 WHERE kind = 'file' AND deletion_intent IS NULL AND last_seen_scan = %(scan_id)s AND content_hash IS NULL AND error_code IS NULL
   AND first_seen_scan > coalesce((SELECT max(scan_id) FROM scans WHERE state = 'complete'), 0)
   AND seen_size = ANY(%(sizes)s)
   AND NOT EXISTS (SELECT FROM attempts AS a WHERE a.source_id = s.source_id)
 ORDER BY source_path;

-- name: keep_rename_hashes
-- What a walk has hashed so far: it is not hashed again if the walk goes on later.
UPDATE sources AS s SET rename_hash = h.content_hash
  FROM unnest(%(source_ids)s::uuid[], %(hashes)s::text[]) AS h (source_id, content_hash)
 WHERE s.source_id = h.source_id;

-- name: drop_renamed
-- The rows that stood for the new paths of renamed files.
DELETE FROM sources WHERE source_id = ANY(%(source_ids)s);

-- name: rename_sources
-- A renamed file keeps its source; all that its path decides follows the path.
UPDATE sources AS s
   SET workspace_id = n.workspace_id, folder_id = n.folder_id, source_path = n.source_path, partition_key = n.partition_key,
       disk_path = n.disk_path, file_type = n.file_type, seen_size = n.size, seen_mtime_ns = n.mtime_ns, seen_inode = n.inode,
       seen_device = n.device, last_seen_scan = %(scan_id)s, presence = 'present', missing_since = NULL, missing_scans = 0, updated_at = %(now)s
  FROM unnest(%(source_ids)s::uuid[], %(workspace_ids)s::bigint[], %(folder_ids)s::bigint[], %(source_paths)s::text[],
              %(partition_keys)s::text[], %(disk_paths)s::bytea[], %(file_types)s::text[], %(sizes)s::bigint[], %(mtimes_ns)s::bigint[],
              %(inodes)s::numeric[], %(devices)s::numeric[])
       AS n (source_id, workspace_id, folder_id, source_path, partition_key, disk_path, file_type, size, mtime_ns, inode, device)
 WHERE s.source_id = n.source_id;

-- name: count_renamed
-- What was counted as new was an old file under another name.
UPDATE scans SET n_new = n_new - %(n)s, n_renamed = n_renamed + %(n)s WHERE scan_id = %(scan_id)s;

-- name: retire_partitions
-- Keys that belong to no source any more.
INSERT INTO retired_partitions (partition_key, retired_at)
SELECT key, %(now)s FROM unnest(%(partition_keys)s::text[]) AS retired (key)
 WHERE NOT EXISTS (SELECT FROM sources AS s WHERE s.partition_key = key)
ON CONFLICT (partition_key) DO UPDATE SET retired_at = excluded.retired_at;

-- name: revive_partitions
-- Keys that belong to a source again.
DELETE FROM retired_partitions WHERE partition_key = ANY(%(partition_keys)s);

-- name: mark_missing
-- Files that a complete walk did not find where they should be.
UPDATE sources
   SET presence = 'missing', missing_since = coalesce(missing_since, %(now)s), missing_scans = missing_scans + 1, updated_at = %(now)s
 WHERE source_id = ANY(%(source_ids)s);

-- name: mark_unknown
-- Files that were missing and whose place could not be looked at by this walk: whether they are there is unknown again.
UPDATE sources SET presence = 'present', missing_since = NULL, missing_scans = 0, updated_at = %(now)s
 WHERE kind = 'file' AND presence = 'missing' AND deletion_intent IS NULL AND last_seen_scan IS DISTINCT FROM %(scan_id)s
   AND source_id <> ALL(%(source_ids)s);

-- name: complete_scan
-- The walk has decided.
UPDATE scans SET state = 'complete', n_vanished = %(n_vanished)s, finished_at = %(now)s WHERE scan_id = %(scan_id)s;

-- name: forget_rename_hashes
-- They have served.
UPDATE sources SET rename_hash = NULL WHERE rename_hash IS NOT NULL;

-- name: losses
-- Per workspace and first folder ('' for files at the root): its files, those that are missing, those of them that were missing in two
-- complete walks far enough apart, and whether the last complete walk met none at all.
SELECT w.key AS workspace, CASE WHEN strpos(s.source_path, '/') > 0 THEN split_part(s.source_path, '/', 1) ELSE '' END AS folder,
       count(*)::integer AS n_files, (count(*) FILTER (WHERE s.presence = 'missing'))::integer AS n_missing,
       (count(*) FILTER (WHERE s.presence = 'missing' AND s.missing_scans >= 2 AND s.missing_since <= %(missing_before)s))::integer AS n_due,
       NOT coalesce(bool_or(s.last_seen_scan >= latest.scan_id), false) AS emptied
  FROM sources AS s
  JOIN workspaces AS w USING (workspace_id)
 CROSS JOIN (SELECT coalesce(max(scan_id), 0) AS scan_id FROM scans WHERE state = 'complete') AS latest
 WHERE s.kind = 'file' AND s.presence IN ('present', 'missing') AND s.deletion_intent IS NULL
 GROUP BY 1, 2
 ORDER BY 1, 2;

-- name: missing_sources
-- Missing files below these first folders ('' for the root), those of them alone that are due, or all; by source_id.
SELECT source_id FROM sources
 WHERE kind = 'file' AND presence = 'missing' AND deletion_intent IS NULL
   AND CASE WHEN strpos(source_path, '/') > 0 THEN split_part(source_path, '/', 1) ELSE '' END = ANY(%(folders)s)
   AND (%(even_early)s OR (missing_scans >= 2 AND missing_since <= %(missing_before)s))
 ORDER BY source_id;

-- name: drop_empty_folders
-- Folders that no source lies in or below.
WITH RECURSIVE used (folder_id) AS (
    SELECT folder_id FROM sources WHERE folder_id IS NOT NULL
    UNION
    SELECT f.parent_id FROM folders AS f JOIN used USING (folder_id) WHERE f.parent_id IS NOT NULL
)
DELETE FROM folders WHERE role = 'library' AND state = 'ready' AND folder_id NOT IN (SELECT folder_id FROM used);

-- name: mark_deleting
-- The sources leave every scope at once. One that is marked already keeps its intent, except that a file which is still there may be kept after all.
-- What lies in a source that is being deleted goes with it, whatever was wanted of it alone; it has no file that could be removed.
WITH RECURSIVE wanted AS (
    SELECT s.source_id,
           CASE WHEN c.deletion_intent IS NOT NULL THEN 'vanished'
                WHEN s.kind = 'contained' AND %(intent)s = 'remove_file' THEN 'keep_file' ELSE %(intent)s END AS intent
      FROM sources AS s LEFT JOIN sources AS c ON c.source_id = s.container_id
     WHERE s.source_id = ANY(%(source_ids)s)
       AND CASE WHEN s.deletion_intent IS NULL THEN %(intent)s <> 'vanished' OR s.presence = 'missing' OR c.deletion_intent IS NOT NULL
                ELSE s.deletion_intent = 'remove_file' AND s.deletion_step <> 'file_removed' AND %(intent)s = 'keep_file' END
    UNION
    SELECT m.source_id, 'vanished' FROM wanted AS w JOIN sources AS m ON m.container_id = w.source_id
), decided AS (
    SELECT source_id, CASE WHEN bool_or(intent = 'vanished') THEN 'vanished' ELSE min(intent) END AS intent FROM wanted GROUP BY source_id
)
UPDATE sources AS s
   SET deletion_intent = d.intent, deletion_step = coalesce(s.deletion_step, 'marked'), updated_at = %(now)s
  FROM decided AS d
 WHERE s.source_id = d.source_id AND s.source_id = ANY(%(locked)s) AND s.deletion_intent IS DISTINCT FROM d.intent
RETURNING s.source_id;

-- name: pending_deletions
-- Sources whose deletion is marked and not finished, by source_id.
SELECT source_id, source_path, kind, disk_path, coalesce(member_hash, content_hash) AS content_hash, deletion_intent AS intent, deletion_step AS step,
       seen_size, seen_mtime_ns, seen_inode::text AS seen_inode, seen_device::text AS seen_device,
       hashed_size, hashed_mtime_ns, hashed_inode::text AS hashed_inode, hashed_device::text AS hashed_device
  FROM sources
 WHERE deletion_intent IS NOT NULL AND (%(source_ids)s::uuid[] IS NULL OR source_id = ANY(%(source_ids)s))
 ORDER BY source_id;

-- name: note_files_not_removed
-- What a person is shown of files that could not be removed; they are tried again.
UPDATE sources AS s SET error_code = %(code)s, error_message = f.message, updated_at = %(now)s
  FROM unnest(%(source_ids)s::uuid[], %(messages)s::text[]) AS f (source_id, message)
 WHERE s.source_id = f.source_id AND s.deletion_intent IS NOT NULL AND s.error_message IS DISTINCT FROM f.message;

-- name: publications_of
-- Every publication of the sources that may have entries in a keyword index.
SELECT publication_id FROM publications WHERE source_id = ANY(%(source_ids)s) AND state <> 'retired' ORDER BY publication_id;

-- name: advance_deletions
-- The step is done.
UPDATE sources SET deletion_step = %(step)s, updated_at = %(now)s WHERE source_id = ANY(%(source_ids)s) AND deletion_step = %(after)s;

-- name: forget_coverage
-- The keyword indexes no longer hold these publications.
DELETE FROM sparse_coverage AS c USING publications AS p
 WHERE c.publication_id = p.publication_id AND p.source_id = ANY(%(source_ids)s) AND p.publication_id = ANY(%(publication_ids)s);

-- name: cancel_attempts
-- Nobody works on these sources any more.
UPDATE attempts SET state = 'cancelled', finished_at = %(now)s WHERE source_id = ANY(%(source_ids)s) AND finished_at IS NULL;

-- name: delete_documents
-- With their chunks, assets and vectors, by cascade.
DELETE FROM documents WHERE source_id = ANY(%(source_ids)s);

-- name: retire_publications
-- What was visible is retired: its entries are gone. What was still being made is abandoned, and swept once its run cannot add to it.
UPDATE publications
   SET state = CASE WHEN state = 'pending' THEN 'abandoned' ELSE 'retired' END, superseded_at = coalesce(superseded_at, %(now)s)
 WHERE source_id = ANY(%(source_ids)s) AND state IN ('pending', 'live', 'superseded');

-- name: forget_stages
-- What was made of these sources is published no more: were they taken again, all of it would be stale.
DELETE FROM stage_state WHERE source_id = ANY(%(source_ids)s);

-- name: exclude_sources
-- The files stay; as long as their bytes do, they are not brought back.
UPDATE sources AS s
   SET excluded_hash = coalesce(e.content_hash, s.content_hash, ''), status = 'cancelled', stage = NULL, error_code = NULL, error_message = NULL,
       warning_code = NULL, wanted_stage = NULL, deletion_intent = NULL, deletion_step = NULL, updated_at = %(now)s
  FROM unnest(%(source_ids)s::uuid[], %(hashes)s::text[]) AS e (source_id, content_hash)
 WHERE s.source_id = e.source_id;

-- name: delete_sources
-- The sources, with their attempts and stage states, by cascade; returns their partition keys.
DELETE FROM sources WHERE source_id = ANY(%(source_ids)s) RETURNING partition_key;

-- name: select_sources
-- What a selection means: each name that was asked for with its sources, being deleted, excluded or neither; by path.
SELECT asked.name, s.source_id, s.source_path, s.deletion_intent IS NOT NULL AS deleting, s.excluded_hash IS NOT NULL AS excluded
  FROM (SELECT u.name, s.source_id FROM unnest(%(names_of_ids)s::text[], %(source_ids)s::uuid[]) AS u (name, source_id) JOIN sources AS s USING (source_id)
        UNION
        SELECT d.doc_id, d.source_id FROM documents AS d WHERE d.doc_id = ANY(%(doc_ids)s)
        UNION
        SELECT s.source_path, s.source_id FROM sources AS s WHERE s.source_path = ANY(%(paths)s)
        UNION
        SELECT f.name, s.source_id
          FROM unnest(%(names_of_folders)s::text[], %(folders)s::text[]) AS f (name, folder)
          JOIN sources AS s ON s.kind = 'file' AND starts_with(s.source_path, f.folder || '/')
        UNION
        SELECT w.key, s.source_id FROM workspaces AS w JOIN sources AS s USING (workspace_id) WHERE w.key = ANY(%(workspaces)s)) AS asked
  JOIN sources AS s USING (source_id)
 ORDER BY s.source_path, asked.name;

-- name: list_sources
-- Every source, whatever its status, with its live document and its last attempt; by path.
SELECT s.source_id, s.source_path, w.key AS workspace, s.kind, d.doc_id, s.content_hash, s.status, s.stage, s.error_code, s.error_message,
       s.warning_code, d.n_chunks, coalesce(d.title, regexp_replace(s.source_path, '^.*/', '')) AS title, s.file_type, s.seen_size AS size,
       d.n_pages, d.n_chars, s.presence, s.deletion_intent, s.excluded_hash IS NOT NULL AS excluded, d.used_ocr, d.parser,
       coalesce(s.file_modified_at, to_timestamp(s.seen_mtime_ns / 1000000000.0)) AS file_modified_at,
       d.ingested_at, s.partition_key, a.attempt_number, a.progress, s.retry_at, s.updated_at,
       CASE WHEN s.status = 'failed' AND a.state IN ('failed', 'launch_failed')
            THEN failure_sentence(a.attempt_number, a.stage, a.error_code, coalesce(a.started_at, a.queued_at), a.finished_at) END AS failure,
       s.media_type, c.source_id AS container_id, c.source_path AS container_path
  FROM sources AS s
  JOIN workspaces AS w USING (workspace_id)
  LEFT JOIN documents AS d USING (source_id)
  LEFT JOIN sources AS c ON c.source_id = s.container_id
  LEFT JOIN LATERAL (SELECT attempt_number, progress, state, stage, error_code, queued_at, started_at, finished_at
                       FROM attempts WHERE source_id = s.source_id ORDER BY attempt_number DESC LIMIT 1) AS a ON true
 WHERE (%(status)s::text IS NULL OR s.status = %(status)s)
   AND (%(workspace)s::text IS NULL OR w.key = %(workspace)s)
   AND (%(folder)s::text IS NULL OR starts_with(s.source_path, %(folder)s || '/'))
   AND (%(after)s::text IS NULL OR s.source_path > %(after)s)
   AND (%(source_id)s::uuid IS NULL OR s.source_id = %(source_id)s)
   AND (%(container_id)s::uuid IS NULL OR s.container_id = %(container_id)s)
 ORDER BY s.source_path
 LIMIT %(limit)s;

-- name: count_by_status
-- How many sources have each status.
SELECT status, count(*)::integer FROM sources GROUP BY status ORDER BY status;

-- name: published_under
-- The source that was last visible under a doc_id, and the doc_id under which it is visible now.
SELECT p.source_id, d.doc_id
  FROM publications AS p LEFT JOIN documents AS d USING (source_id)
 WHERE p.doc_id = %(doc_id)s AND p.published_at IS NOT NULL
 ORDER BY d.doc_id = p.doc_id DESC NULLS LAST, p.publication_id DESC
 LIMIT 1;
