-- Where the files of a workspace lie. Today that is one folder of the library, its managed root; folders elsewhere on disk (linked roots) are foreseen, so
-- their states are allowed from the start. A trigger makes the managed root with its workspace, whoever makes that and however many at once.
CREATE TABLE IF NOT EXISTS source_roots (
    root_id      bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT source_roots_pk PRIMARY KEY,
    workspace_id bigint      NOT NULL CONSTRAINT source_roots_workspace_fk REFERENCES workspaces ON DELETE CASCADE,
    kind         text        NOT NULL CONSTRAINT source_roots_kind_ck CHECK (kind IN ('managed', 'linked')),
    name         text        NOT NULL CONSTRAINT source_roots_name_ck CHECK (name <> ''),
    name_key     text        NOT NULL,
    -- of a managed root, relative to the library: the key of its workspace, empty for the library's own files
    disk_path    text        NOT NULL,
    state        text        NOT NULL DEFAULT 'ready' CONSTRAINT source_roots_state_ck
                             CHECK (state IN ('ready', 'deleting', 'scanning', 'unavailable', 'paused')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS source_roots_workspace_idx ON source_roots (workspace_id);
CREATE UNIQUE INDEX IF NOT EXISTS source_roots_one_managed_uq ON source_roots (workspace_id) WHERE kind = 'managed';

CREATE OR REPLACE FUNCTION make_managed_root() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO source_roots (workspace_id, kind, name, name_key, disk_path, created_at, updated_at)
    VALUES (NEW.workspace_id, 'managed', 'Library', 'library', CASE NEW.key WHEN 'default' THEN '' ELSE NEW.key END, NEW.created_at, NEW.created_at);
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER workspaces_managed_root AFTER INSERT ON workspaces FOR EACH ROW EXECUTE FUNCTION make_managed_root();

INSERT INTO source_roots (workspace_id, kind, name, name_key, disk_path)
SELECT w.workspace_id, 'managed', 'Library', 'library', CASE w.key WHEN 'default' THEN '' ELSE w.key END
  FROM workspaces AS w
 WHERE NOT EXISTS (SELECT FROM source_roots AS r WHERE r.workspace_id = w.workspace_id AND r.kind = 'managed');
