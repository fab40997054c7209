-- name: file_of
-- Where the bytes of a source lie; no path for what is no file.
SELECT source_path, CASE WHEN kind = 'file' THEN disk_path END AS disk_path FROM sources WHERE source_id = %(source_id)s;

-- name: read_pages
-- The pages of a live document.
SELECT doc_id, pages FROM documents WHERE source_id = %(source_id)s;

-- name: page_text
-- A stretch of a live document's text, with the chunks that touch it.
SELECT d.doc_id, substr(d.text, %(char_start)s + 1, %(char_end)s - %(char_start)s) AS text,
       ARRAY(SELECT c.chunk_id FROM chunks AS c WHERE c.publication_id = d.publication_id AND c.char_start < %(char_end)s AND c.char_end > %(char_start)s
              ORDER BY c.chunk_index) AS chunk_ids
  FROM documents AS d WHERE d.source_id = %(source_id)s;

-- name: titles
-- Title and path of every published document, of a workspace or of all.
SELECT d.source_id, d.doc_id, d.title, d.source_path, w.key AS workspace
  FROM documents AS d JOIN workspaces AS w ON w.workspace_id = d.workspace_id
 WHERE (%(workspace)s::text IS NULL OR w.key = %(workspace)s)
   AND NOT EXISTS (SELECT FROM sources AS s WHERE s.source_id = d.source_id AND s.deletion_intent IS NOT NULL)
 ORDER BY d.source_path;

-- name: list_all_workspaces
-- Every workspace, empty ones too.
SELECT w.key, w.name, w.created_at, w.updated_at,
       (SELECT count(*) FROM sources AS s WHERE s.workspace_id = w.workspace_id AND s.deletion_intent IS NULL)::integer AS n_sources,
       (SELECT count(*) FROM documents AS d WHERE d.workspace_id = w.workspace_id)::integer AS n_documents
  FROM workspaces AS w
 WHERE (%(key)s::text IS NULL OR w.key = %(key)s)
 ORDER BY lower(w.name), w.key;

-- name: rename_workspace
-- What it is called; its key, and so its folder, stay.
UPDATE workspaces SET name = %(name)s, updated_at = %(now)s WHERE key = %(key)s RETURNING key;

-- name: insert_workspace
-- A workspace without documents.
INSERT INTO workspaces (key, name, created_at, updated_at) VALUES (%(key)s, %(name)s, %(now)s, %(now)s) ON CONFLICT (key) DO NOTHING RETURNING key;

-- name: roots_of
-- Where the files of a workspace lie, the managed root first.
SELECT r.root_id, r.kind, r.name, r.disk_path, r.state
  FROM source_roots AS r JOIN workspaces AS w USING (workspace_id)
 WHERE w.key = %(key)s
 ORDER BY r.kind DESC, r.name_key, r.root_id;
