-- A wish holds for what was wanted when it was made, and a run that had begun before does not settle it.
ALTER TABLE sources ADD COLUMN IF NOT EXISTS wished_at timestamptz;
ALTER TABLE sources ADD COLUMN IF NOT EXISTS wished_version text;
