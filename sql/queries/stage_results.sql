-- name: find_results
-- What was done before; marks it as used. Rows that another transaction is marking are left to it: nobody waits here, nobody can deadlock.
WITH free AS (
    SELECT key FROM stage_results
     WHERE stage = %(stage)s AND key = ANY(%(keys)s)
     ORDER BY key
       FOR NO KEY UPDATE SKIP LOCKED
), used AS (
    UPDATE stage_results AS r SET last_used_at = %(now)s FROM free WHERE r.stage = %(stage)s AND r.key = free.key
)
SELECT key, output_hash, object FROM stage_results WHERE stage = %(stage)s AND key = ANY(%(keys)s) ORDER BY key;

-- name: store_results
-- The results of one object, in one order for everybody; a result that is made again replaces the one before, which is forgotten.
WITH replaced AS (
    INSERT INTO stage_results (stage, key, fingerprint, output_hash, object, last_used_at)
    SELECT r.stage, 'forgotten:' || r.key || '@' || r.object, r.fingerprint, r.output_hash, r.object, %(now)s
      FROM stage_results AS r
     WHERE r.stage = %(stage)s AND r.key = ANY(%(keys)s) AND r.object <> %(object)s
     ORDER BY r.key
        ON CONFLICT DO NOTHING
)
INSERT INTO stage_results (stage, key, fingerprint, output_hash, object, last_used_at)
SELECT %(stage)s, r.key, %(fingerprint)s, r.output_hash, %(object)s, %(now)s
  FROM unnest(%(keys)s::text[], %(hashes)s::text[]) AS r (key, output_hash)
 ORDER BY r.key
    ON CONFLICT (stage, key) DO UPDATE
       SET output_hash = excluded.output_hash, object = excluded.object, last_used_at = excluded.last_used_at;

-- name: stored_documents
-- What is published of the sources, as their stage `documents` recorded it.
SELECT m.result_key, m.output_hash AS recorded_output, m.fingerprint, d.title, d.file_name, d.text, d.blocks, d.pages, d.document_metadata,
       d.parser, d.parser_version, d.extraction, d.ocr_pages, d.warning_code,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('kind', a.kind, 'char_start', a.char_start, 'char_end', a.char_end, 'page', a.page,
                                                     'caption', a.caption, 'picture', a.picture) ORDER BY a.asset_index), '[]')
          FROM document_assets AS a WHERE a.publication_id = d.publication_id) AS assets
  FROM documents AS d
  JOIN stage_state AS m ON m.source_id = d.source_id AND m.stage = 'documents'
 WHERE d.source_id = ANY(%(source_ids)s::uuid[]) AND m.result_key <> ''
 ORDER BY d.publication_id;
