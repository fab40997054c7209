-- Switching indexes: where a model lies on this machine, since when an index is retired, since when a keyword index is being made again.
ALTER TABLE embedding_indexes ADD COLUMN IF NOT EXISTS location text;
ALTER TABLE embedding_indexes ADD COLUMN IF NOT EXISTS retired_at timestamptz;
ALTER TABLE sparse_indexes ADD COLUMN IF NOT EXISTS retired_at timestamptz;
ALTER TABLE sparse_indexes ADD COLUMN IF NOT EXISTS incomplete_since timestamptz;

-- A lost keyword index is replaced by one of the same recipe, so a recipe no longer names one row alone.
ALTER TABLE sparse_indexes DROP CONSTRAINT IF EXISTS sparse_indexes_fingerprint_uq;
CREATE UNIQUE INDEX IF NOT EXISTS sparse_indexes_one_building_uq ON sparse_indexes (fingerprint) WHERE state = 'building';
