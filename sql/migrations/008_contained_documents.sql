-- Documents inside other files: attachments of mails and members of archives are sources of their own, linked to what holds them.
ALTER TABLE sources ADD COLUMN IF NOT EXISTS container_id uuid CONSTRAINT sources_container_fk REFERENCES sources ON DELETE NO ACTION;
-- the file of the library that all of it lies in, however deep
ALTER TABLE sources ADD COLUMN IF NOT EXISTS file_id uuid CONSTRAINT sources_file_fk REFERENCES sources ON DELETE NO ACTION;
ALTER TABLE sources ADD COLUMN IF NOT EXISTS member_path text;
ALTER TABLE sources ADD COLUMN IF NOT EXISTS media_type text;
-- sha256 of the bytes as the container's listing says; NULL when they cannot be taken out, and error_code says why
ALTER TABLE sources ADD COLUMN IF NOT EXISTS member_hash text CONSTRAINT sources_member_hash_ck CHECK (member_hash ~ '^[0-9a-f]{64}$');
-- of a container: the output of the document whose members are all in the catalog; empty while some could not be written yet
ALTER TABLE sources ADD COLUMN IF NOT EXISTS listed_output text;

ALTER TABLE sources DROP CONSTRAINT IF EXISTS sources_kind_ck;
ALTER TABLE sources ADD CONSTRAINT sources_kind_ck CHECK (kind IN ('file', 'note', 'artifact', 'thread_day', 'contained'));
ALTER TABLE sources DROP CONSTRAINT IF EXISTS sources_contained_ck;
ALTER TABLE sources ADD CONSTRAINT sources_contained_ck
    CHECK (num_nonnulls(container_id, file_id, member_path) = CASE kind WHEN 'contained' THEN 3 ELSE 0 END);

CREATE UNIQUE INDEX IF NOT EXISTS sources_member_uq ON sources (container_id, member_path) WHERE container_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS sources_file_idx ON sources (file_id) WHERE file_id IS NOT NULL;
