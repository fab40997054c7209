-- name: forget_stale_keys
-- Files of the folder whose bytes are no longer those that were uploaded, or which are gone or going: their key holds nothing up.
UPDATE sources SET dedup_key = NULL
 WHERE workspace_id = %(workspace_id)s AND folder_id IS NOT DISTINCT FROM %(folder_id)s AND dedup_key = %(content_hash)s
   AND (content_hash <> dedup_key OR presence = 'missing' OR deletion_intent IS NOT NULL);

-- name: same_bytes
-- The file of the folder that has these bytes, as it was uploaded or hashed.
SELECT source_id, source_path FROM sources
 WHERE workspace_id = %(workspace_id)s AND folder_id IS NOT DISTINCT FROM %(folder_id)s AND kind = 'file'
   AND (dedup_key = %(content_hash)s OR content_hash = %(content_hash)s) AND presence = 'present' AND deletion_intent IS NULL
 ORDER BY source_path LIMIT 1;

-- name: hold_folder
-- The folder is not dropped as empty before the file is in it; no row: it was dropped already.
SELECT folder_id FROM folders WHERE folder_id = %(folder_id)s FOR KEY SHARE;

-- name: insert_upload
-- A file that is about to be placed. No walk has to confirm it (its first scan is the one before all), and the walk that goes on now counts as
-- having met it.
WITH inserted AS (
    INSERT INTO sources (workspace_id, folder_id, source_path, partition_key, disk_path, file_type, seen_size, seen_mtime_ns, seen_inode,
                         seen_device, first_seen_scan, last_seen_scan, dedup_key, created_at, updated_at)
    VALUES (%(workspace_id)s, %(folder_id)s, %(source_path)s, %(partition_key)s, %(disk_path)s, %(file_type)s, %(size)s, %(mtime_ns)s, %(inode)s,
            %(device)s, 0, (SELECT scan_id FROM scans WHERE state = 'walking'), %(dedup_key)s, %(now)s, %(now)s)
    ON CONFLICT (source_path) DO NOTHING
    RETURNING source_id, partition_key
), revived AS (
    DELETE FROM retired_partitions WHERE partition_key IN (SELECT partition_key FROM inserted)
)
SELECT source_id FROM inserted;
