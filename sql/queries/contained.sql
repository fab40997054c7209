-- name: containers_to_list
-- Containers that this run holds, with the file that they lie in and how many documents it holds without their own.
SELECT c.source_id, coalesce(c.file_id, c.source_id) AS file_id, c.source_path, c.workspace_id, c.folder_id, c.listed_output,
       (SELECT count(*) FROM sources AS other
         WHERE other.file_id = coalesce(c.file_id, c.source_id) AND other.presence = 'present' AND other.container_id <> c.source_id) AS n_others
  FROM sources AS c
  JOIN attempts AS a ON a.source_id = c.source_id AND a.run_id = %(run_id)s AND a.finished_at IS NULL
 WHERE c.source_id = ANY(%(source_ids)s) AND c.deletion_intent IS NULL
 ORDER BY c.source_id;

-- name: known_members
-- What the catalog has of these containers.
SELECT source_id, container_id, member_path, source_path, partition_key, member_hash, presence, deletion_intent IS NOT NULL AS deleting, error_code
  FROM sources WHERE container_id = ANY(%(source_ids)s)
 ORDER BY container_id, member_path;

-- name: insert_members
-- New members; a partition key that comes back is retired no longer.
WITH inserted AS (
    INSERT INTO sources (kind, container_id, file_id, workspace_id, folder_id, member_path, source_path, partition_key, file_type, media_type,
                         seen_size, member_hash, status, stage, error_code, error_message, created_at, updated_at)
    SELECT 'contained', c.source_id, coalesce(c.file_id, c.source_id), c.workspace_id, c.folder_id, m.member_path, m.source_path,
           m.partition_key, m.file_type, m.media_type, m.size, m.member_hash,
           CASE WHEN m.error_code IS NULL THEN 'pending' ELSE 'failed' END, CASE WHEN m.error_code IS NOT NULL THEN 'queued' END,
           m.error_code, m.error_message, %(now)s, %(now)s
      FROM unnest(%(container_ids)s::uuid[], %(member_paths)s::text[], %(source_paths)s::text[], %(partition_keys)s::text[],
                  %(file_types)s::text[], %(media_types)s::text[], %(sizes)s::bigint[], %(member_hashes)s::text[], %(error_codes)s::text[],
                  %(error_messages)s::text[])
           AS m (container_id, member_path, source_path, partition_key, file_type, media_type, size, member_hash, error_code, error_message)
      JOIN sources AS c ON c.source_id = m.container_id
    ON CONFLICT DO NOTHING
    RETURNING partition_key
), revived AS (
    DELETE FROM retired_partitions WHERE partition_key IN (SELECT partition_key FROM inserted)
)
SELECT count(*)::integer FROM inserted;

-- name: update_members
-- Members that are there again, have other bytes, or have another name. One that could not be taken out and now can waits again, and
-- one that failed because its container had changed is tried again.
UPDATE sources AS s
   SET member_path = m.member_path, source_path = m.source_path, partition_key = m.partition_key, file_type = m.file_type,
       media_type = m.media_type, seen_size = m.size, member_hash = m.member_hash, presence = 'present', missing_since = NULL,
       status = CASE WHEN m.error_code IS NOT NULL THEN 'failed'
                     WHEN s.error_code IS NULL OR m.still_fails THEN s.status
                     WHEN EXISTS (SELECT FROM documents AS d WHERE d.source_id = s.source_id) THEN 'ready' ELSE 'pending' END,
       stage = CASE WHEN m.error_code IS NOT NULL THEN 'queued' WHEN s.error_code IS NULL OR m.still_fails THEN s.stage END,
       error_code = CASE WHEN m.still_fails THEN s.error_code ELSE m.error_code END,
       error_message = CASE WHEN m.still_fails THEN s.error_message ELSE m.error_message END,
       failed_version = CASE WHEN s.error_code = 'container_changed' THEN NULL ELSE s.failed_version END,
       retry_at = CASE WHEN s.error_code = 'container_changed' THEN NULL ELSE s.retry_at END, updated_at = %(now)s
  FROM (SELECT n.*, n.error_code IS NULL AND known.member_hash = n.member_hash
                    AND known.error_code NOT IN ('container_changed', 'path_too_long') AS still_fails
          FROM unnest(%(source_ids)s::uuid[], %(member_paths)s::text[], %(source_paths)s::text[], %(partition_keys)s::text[],
                      %(file_types)s::text[], %(media_types)s::text[], %(sizes)s::bigint[], %(member_hashes)s::text[], %(error_codes)s::text[],
                      %(error_messages)s::text[])
               AS n (source_id, member_path, source_path, partition_key, file_type, media_type, size, member_hash, error_code, error_message)
          JOIN sources AS known ON known.source_id = n.source_id) AS m
 WHERE s.source_id = m.source_id;

-- name: mark_unlisted
-- Members that their container holds no longer: the next look deletes them.
UPDATE sources SET presence = 'missing', missing_since = coalesce(missing_since, %(now)s), updated_at = %(now)s
 WHERE source_id = ANY(%(source_ids)s);

-- name: note_listed
-- The catalog has all that these documents list.
UPDATE sources AS s SET listed_output = l.output
  FROM unnest(%(source_ids)s::uuid[], %(outputs)s::text[]) AS l (source_id, output)
 WHERE s.source_id = l.source_id AND s.listed_output IS DISTINCT FROM l.output;

-- name: members_to_delete
-- Members that their container holds no longer, or whose container is being deleted.
SELECT m.source_id
  FROM sources AS m
  JOIN sources AS c ON c.source_id = m.container_id
 WHERE m.kind = 'contained' AND m.deletion_intent IS NULL AND (m.presence = 'missing' OR c.deletion_intent IS NOT NULL)
 ORDER BY m.source_id;

-- name: contents_first
-- The sources and all that lies in them, however deep; what lies in others before what holds it.
WITH RECURSIVE within AS (
    SELECT source_id FROM sources WHERE source_id = ANY(%(source_ids)s)
    UNION
    SELECT m.source_id FROM within AS w JOIN sources AS m ON m.container_id = w.source_id
)
SELECT source_id FROM within JOIN sources USING (source_id)
 ORDER BY length(source_path) - length(replace(source_path, '//', '')) DESC, source_id;

-- name: still_holding
-- Those of the sources that hold others than these.
SELECT DISTINCT container_id FROM sources WHERE container_id = ANY(%(source_ids)s) AND NOT source_id = ANY(%(source_ids)s);

-- name: members_to_move
-- Members of one level whose path does not follow from their container's, after that was renamed or moved.
SELECT m.source_id, c.source_path AS container_path, m.member_path, m.source_path, m.partition_key
  FROM sources AS m
  JOIN sources AS c ON c.source_id = m.container_id
 WHERE m.kind = 'contained' AND m.deletion_intent IS NULL
   AND NOT starts_with(m.source_path, c.source_path || '//')
 ORDER BY m.source_id;

-- name: move_members
-- They take everything that a path decides from where their container lies now.
UPDATE sources AS s
   SET source_path = n.source_path, partition_key = n.partition_key, workspace_id = c.workspace_id, folder_id = c.folder_id,
       status = CASE WHEN n.error_code IS NOT NULL THEN 'failed' WHEN s.error_code = 'path_too_long' THEN 'pending' ELSE s.status END,
       error_code = CASE WHEN n.error_code IS NOT NULL THEN n.error_code WHEN s.error_code = 'path_too_long' THEN NULL ELSE s.error_code END,
       error_message = CASE WHEN n.error_code IS NOT NULL THEN n.error_message WHEN s.error_code = 'path_too_long' THEN NULL
                            ELSE s.error_message END,
       updated_at = %(now)s
  FROM unnest(%(source_ids)s::uuid[], %(source_paths)s::text[], %(partition_keys)s::text[], %(error_codes)s::text[],
              %(error_messages)s::text[]) AS n (source_id, source_path, partition_key, error_code, error_message),
       sources AS c
 WHERE s.source_id = n.source_id AND c.source_id = s.container_id;

-- name: forget_stages_of
-- What holds documents no longer, such as an archive that is not to be read: were it read again, all of it would be stale.
DELETE FROM stage_state WHERE source_id = ANY(%(source_ids)s);
