-- An index of another language than English is of no release before; searches fall back to full text until it is made again.
ALTER TABLE sparse_indexes DROP COLUMN IF EXISTS language;
ALTER TABLE documents DROP COLUMN IF EXISTS language;
