-- name: read_corpus_state
-- How often the corpus was replaced as a whole.
SELECT epoch FROM corpus_state;

-- name: read_latest_scan
-- The latest walk of the library.
SELECT scan_id, state, n_seen, n_new, n_changed, n_vanished, n_renamed, started_at, finished_at
  FROM scans ORDER BY scan_id DESC LIMIT 1;

-- name: list_workspaces
-- Workspaces that hold sources or documents, with their published documents.
SELECT w.key, w.name, count(d.publication_id) AS n_documents
  FROM workspaces AS w
  LEFT JOIN documents AS d ON d.workspace_id = w.workspace_id
 GROUP BY w.workspace_id
HAVING count(d.publication_id) > 0 OR EXISTS (SELECT FROM sources AS s WHERE s.workspace_id = w.workspace_id)
 ORDER BY w.key;

-- name: count_by_stage
-- Sources being processed, by the stage they are at.
SELECT coalesce(stage, 'queued') AS stage, count(*) FROM sources
 WHERE status = 'processing' AND deletion_intent IS NULL
 GROUP BY 1 ORDER BY 1;

-- name: list_folders
-- Every folder with documents below it, each above what it holds, with how many there are and how many of them searches find.
SELECT array_to_string(parts.names[1:level.depth], '/') AS path,
       CASE WHEN level.depth > 1 THEN array_to_string(parts.names[1:level.depth - 1], '/') END AS parent,
       parts.names[level.depth] AS name, w.key AS workspace, level.depth, count(*) AS n_documents, count(d.source_id) AS n_ready
  FROM sources AS s
  JOIN workspaces AS w USING (workspace_id)
  LEFT JOIN documents AS d USING (source_id)
 CROSS JOIN LATERAL (SELECT string_to_array(s.source_path, '/') AS names) AS parts
 CROSS JOIN LATERAL generate_series(1, cardinality(parts.names) - 1) AS level (depth)
 WHERE s.kind = 'file' AND s.deletion_intent IS NULL
 GROUP BY 1, 2, 3, 4, 5
 ORDER BY 1;
