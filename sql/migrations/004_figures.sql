-- Pictures of figures are kept: where each lies in its file, and what was taken from there. Keyed by the bytes, so that neither
-- another recipe nor a copy takes them again, and taking them again touches no text, chunk or vector.
ALTER TABLE document_assets ADD COLUMN IF NOT EXISTS picture text;

CREATE TABLE IF NOT EXISTS figures (
    content_hash text        NOT NULL CONSTRAINT figures_content_hash_ck CHECK (content_hash ~ '^[0-9a-f]{64}$'),
    picture      text        NOT NULL,
    revision     integer     NOT NULL,
    sha256       text        CONSTRAINT figures_sha256_ck CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    mime_type    text,
    width        integer,
    height       integer,
    made_at      timestamptz NOT NULL,
    CONSTRAINT figures_pk PRIMARY KEY (content_hash, picture),
    CONSTRAINT figures_whole_ck CHECK (num_nulls(sha256, mime_type, width, height) IN (0, 4))
);
CREATE INDEX IF NOT EXISTS figures_sha256_idx ON figures (sha256);
