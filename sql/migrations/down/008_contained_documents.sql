-- Contained documents leave with what was made of them; the files that hold them stay, and are read as before.
DELETE FROM publications WHERE source_id IN (SELECT source_id FROM sources WHERE kind = 'contained');
INSERT INTO retired_partitions (partition_key, retired_at)
SELECT partition_key, now() FROM sources WHERE kind = 'contained' ON CONFLICT DO NOTHING;
DELETE FROM sources WHERE kind = 'contained';
DROP INDEX IF EXISTS sources_member_uq;
DROP INDEX IF EXISTS sources_file_idx;
ALTER TABLE sources DROP CONSTRAINT IF EXISTS sources_contained_ck;
ALTER TABLE sources DROP CONSTRAINT IF EXISTS sources_kind_ck;
ALTER TABLE sources ADD CONSTRAINT sources_kind_ck CHECK (kind IN ('file', 'note', 'artifact', 'thread_day'));
ALTER TABLE sources
    DROP COLUMN IF EXISTS container_id, DROP COLUMN IF EXISTS file_id, DROP COLUMN IF EXISTS member_path,
    DROP COLUMN IF EXISTS media_type, DROP COLUMN IF EXISTS member_hash, DROP COLUMN IF EXISTS listed_output;
