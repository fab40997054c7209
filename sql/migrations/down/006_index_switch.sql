DROP INDEX IF EXISTS sparse_indexes_one_building_uq;
-- A recipe names one row again: of several the active one stays, which every live publication has entries in.
DELETE FROM sparse_indexes AS other USING sparse_indexes AS kept
 WHERE other.fingerprint = kept.fingerprint AND other.sparse_index_id <> kept.sparse_index_id AND other.state <> 'active'
   AND (kept.state = 'active' OR other.sparse_index_id < kept.sparse_index_id);
ALTER TABLE sparse_indexes DROP COLUMN IF EXISTS incomplete_since;
ALTER TABLE sparse_indexes DROP COLUMN IF EXISTS retired_at;
ALTER TABLE embedding_indexes DROP COLUMN IF EXISTS retired_at;
ALTER TABLE embedding_indexes DROP COLUMN IF EXISTS location;
ALTER TABLE sparse_indexes DROP CONSTRAINT IF EXISTS sparse_indexes_fingerprint_uq;
ALTER TABLE sparse_indexes ADD CONSTRAINT sparse_indexes_fingerprint_uq UNIQUE (fingerprint);
