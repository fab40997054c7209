DROP FUNCTION IF EXISTS failure_sentence(integer, text, text, timestamptz, timestamptz);
ALTER TABLE attempts DROP COLUMN IF EXISTS bound_under;
