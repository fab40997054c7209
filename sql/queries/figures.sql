-- name: documents_without_figures
-- Live documents of which a picture was not taken yet, those of the given sources first; with every place of such a picture, in order.
-- What lies in a mail or archive has the disk path of its file.
SELECT s.source_path, file.disk_path, d.content_hash, array_agg(DISTINCT a.picture ORDER BY a.picture) AS pictures
  FROM document_assets AS a
  JOIN documents AS d USING (publication_id)
  JOIN sources AS s USING (source_id)
  JOIN sources AS file ON file.source_id = coalesce(s.file_id, s.source_id)
 WHERE a.picture IS NOT NULL AND file.disk_path IS NOT NULL AND s.presence = 'present' AND file.presence = 'present'
   AND s.deletion_intent IS NULL
   AND NOT EXISTS (SELECT FROM figures AS f WHERE f.content_hash = d.content_hash AND f.picture = a.picture AND f.revision = %(revision)s)
 GROUP BY s.source_id, s.source_path, file.disk_path, d.content_hash
 ORDER BY s.source_id = ANY(%(source_ids)s::uuid[]) DESC, s.source_path
 LIMIT %(limit)s;

-- name: record_figures
INSERT INTO figures (content_hash, picture, revision, sha256, mime_type, width, height, made_at)
SELECT %(content_hash)s, f.picture, %(revision)s, f.sha256, f.mime_type, f.width, f.height, %(now)s
  FROM unnest(%(pictures)s::text[], %(sha256)s::text[], %(mime_type)s::text[], %(width)s::integer[], %(height)s::integer[])
       AS f (picture, sha256, mime_type, width, height)
    ON CONFLICT (content_hash, picture) DO UPDATE
       SET revision = excluded.revision, sha256 = excluded.sha256, mime_type = excluded.mime_type, width = excluded.width,
           height = excluded.height, made_at = excluded.made_at;

-- name: forget_figures
-- Pictures of bytes that no live document has.
DELETE FROM figures AS f WHERE NOT EXISTS (SELECT FROM documents AS d WHERE d.content_hash = f.content_hash) RETURNING f.sha256;

-- name: pictures_in_use
SELECT DISTINCT sha256 FROM figures WHERE sha256 = ANY(%(sha256)s) ORDER BY sha256;

-- name: read_assets
-- Tables and figures of a source's live version in the order of the text, with what is kept of their pictures.
SELECT a.asset_index, a.kind, a.page, a.char_start, a.char_end, a.caption, f.sha256, f.mime_type, f.width, f.height
  FROM documents AS d
  JOIN document_assets AS a USING (publication_id)
  LEFT JOIN figures AS f ON f.content_hash = d.content_hash AND f.picture = a.picture
 WHERE d.source_id = %(source_id)s
 ORDER BY a.asset_index;
