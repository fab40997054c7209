-- Documents know the language of their text, so that a search can be narrowed down to it, and keyword indexes the one whose stems they hold.
-- What was published before has no known language ('') until it is published anew.
ALTER TABLE documents ADD COLUMN IF NOT EXISTS language text NOT NULL DEFAULT '';
ALTER TABLE sparse_indexes ADD COLUMN IF NOT EXISTS language text NOT NULL DEFAULT 'english';
