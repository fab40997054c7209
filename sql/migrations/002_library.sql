-- The source catalog: what lies in the library, what was seen of it, what was hashed, and what is being done with it.
CREATE TABLE IF NOT EXISTS workspaces (
    workspace_id                  bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT workspaces_pk PRIMARY KEY,
    key                           text        NOT NULL CONSTRAINT workspaces_key_uq UNIQUE CONSTRAINT workspaces_key_ck CHECK (key <> ''),
    name                          text        NOT NULL CONSTRAINT workspaces_name_ck CHECK (char_length(name) BETWEEN 1 AND 200 AND name = btrim(name)),
    cloud_id                      integer     CONSTRAINT workspaces_cloud_id_uq UNIQUE,
    has_unkeyed_imported_threads  boolean     NOT NULL DEFAULT false,
    created_at                    timestamptz NOT NULL DEFAULT now(),
    updated_at                    timestamptz NOT NULL DEFAULT now()
);

-- The folders of the library, derived from paths; levels past the eighth are joined into the eighth.
CREATE TABLE IF NOT EXISTS folders (
    folder_id    bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT folders_pk PRIMARY KEY,
    workspace_id bigint      NOT NULL CONSTRAINT folders_workspace_fk REFERENCES workspaces ON DELETE CASCADE,
    parent_id    bigint      CONSTRAINT folders_parent_fk REFERENCES folders ON DELETE CASCADE,
    name         text        NOT NULL CONSTRAINT folders_name_ck CHECK (name <> ''),
    name_key     text        NOT NULL,
    disk_name    text        NOT NULL,
    depth        smallint    NOT NULL CONSTRAINT folders_depth_ck CHECK (depth BETWEEN 1 AND 8),
    role         text        NOT NULL DEFAULT 'library' CONSTRAINT folders_role_ck CHECK (role IN ('library', 'evidence', 'target', 'playbook')),
    state        text        NOT NULL DEFAULT 'ready' CONSTRAINT folders_state_ck CHECK (state IN ('ready', 'deleting', 'placeholder', 'trashed')),
    trash_kind   text        CONSTRAINT folders_trash_kind_ck CHECK (trash_kind IN ('user', 'vanished')),
    trashed_at   timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    updated_at   timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX IF NOT EXISTS folders_siblings_uq ON folders (workspace_id, parent_id, name_key) NULLS NOT DISTINCT
    WHERE state IN ('ready', 'deleting');
CREATE INDEX IF NOT EXISTS folders_parent_idx ON folders (parent_id);
CREATE INDEX IF NOT EXISTS folders_workspace_idx ON folders (workspace_id);

-- One row per walk of the library. A walk works within a budget and goes on from its cursor; only a complete one decides what vanished.
CREATE TABLE IF NOT EXISTS scans (
    scan_id       bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT scans_pk PRIMARY KEY,
    library       text        NOT NULL,
    state         text        NOT NULL DEFAULT 'walking' CONSTRAINT scans_state_ck CHECK (state IN ('walking', 'complete', 'abandoned')),
    cursor        bytea,
    n_seen        integer     NOT NULL DEFAULT 0,
    n_new         integer     NOT NULL DEFAULT 0,
    n_changed     integer     NOT NULL DEFAULT 0,
    n_vanished    integer     NOT NULL DEFAULT 0,
    n_renamed     integer     NOT NULL DEFAULT 0,
    -- reason -> {"count": n, "paths": [the first of them]}
    skipped       jsonb       NOT NULL DEFAULT '{}',
    -- [{"path": source_path, "disk_path": hex, "reason": code}]: what lies below is unknown, not missing
    unlistable    jsonb       NOT NULL DEFAULT '[]',
    started_at    timestamptz NOT NULL DEFAULT now(),
    finished_at   timestamptz
);
CREATE UNIQUE INDEX IF NOT EXISTS scans_one_walking_uq ON scans ((true)) WHERE state = 'walking';

CREATE TABLE IF NOT EXISTS sources (
    source_id           uuid        NOT NULL DEFAULT gen_random_uuid() CONSTRAINT sources_pk PRIMARY KEY,
    workspace_id        bigint      NOT NULL CONSTRAINT sources_workspace_fk REFERENCES workspaces ON DELETE CASCADE,
    folder_id           bigint      CONSTRAINT sources_folder_fk REFERENCES folders ON DELETE SET NULL,
    kind                text        NOT NULL DEFAULT 'file' CONSTRAINT sources_kind_ck CHECK (kind IN ('file', 'note', 'artifact', 'thread_day')),
    source_path         text        NOT NULL CONSTRAINT sources_source_path_uq UNIQUE
                                    CONSTRAINT sources_source_path_ck CHECK (source_path <> '' AND octet_length(source_path) <= 2000),
    partition_key       text        NOT NULL CONSTRAINT sources_partition_key_uq UNIQUE
                                    CONSTRAINT sources_partition_key_ck CHECK (octet_length(partition_key) <= 2400),
    disk_path           bytea       CONSTRAINT sources_disk_path_ck CHECK (kind <> 'file' OR disk_path IS NOT NULL OR presence = 'detached'),
    file_type           text        NOT NULL DEFAULT '',
    -- what the last walk saw, and nothing else
    seen_size           bigint,
    seen_mtime_ns       bigint,
    seen_inode          numeric(20),
    seen_device         numeric(20),
    last_seen_scan      bigint,
    -- a new path is claimed only after a walk at least as late as this one is complete
    first_seen_scan     bigint,
    -- sha256 that a walk took of a new file to decide whether it is a renamed one; NULL when that is decided
    rename_hash         text,
    -- what was true of the bytes when they were hashed; NULL when the stat cannot vouch for them
    hashed_size         bigint,
    hashed_mtime_ns     bigint,
    hashed_inode        numeric(20),
    hashed_device       numeric(20),
    hashed_at           timestamptz,
    content_hash        text        CONSTRAINT sources_content_hash_ck CHECK (content_hash ~ '^[0-9a-f]{64}$'),
    presence            text        NOT NULL DEFAULT 'present' CONSTRAINT sources_presence_ck CHECK (presence IN ('present', 'missing', 'detached')),
    missing_since       timestamptz,
    missing_scans       integer     NOT NULL DEFAULT 0,
    deletion_intent     text        CONSTRAINT sources_deletion_intent_ck CHECK (deletion_intent IN ('keep_file', 'remove_file', 'vanished')),
    deletion_step       text        CONSTRAINT sources_deletion_step_ck CHECK (deletion_step IN ('marked', 'sparse_removed', 'file_removed')),
    excluded_hash       text,
    wanted_stage        text        CONSTRAINT sources_wanted_stage_ck
                                    CHECK (wanted_stage IN ('documents', 'chunks', 'contextualized_chunks', 'embeddings', 'bm25_index', 'corpus')),
    last_publication_id bigint      NOT NULL DEFAULT 0,
    status              text        NOT NULL DEFAULT 'pending' CONSTRAINT sources_status_ck
                                    CHECK (status IN ('pending', 'processing', 'ready', 'failed', 'cancelled')),
    stage               text        CONSTRAINT sources_stage_ck
                                    CHECK (stage IN ('uploading', 'queued', 'parsing', 'chunking', 'contextualizing', 'embedding', 'indexing', 'publishing')),
    error_code          text,
    error_message       text        CONSTRAINT sources_error_message_ck CHECK (char_length(error_message) <= 500),
    warning_code        text,
    -- what was tried when it failed: it is not tried again until this differs from what is wanted now
    failed_version      text,
    n_failures          integer     NOT NULL DEFAULT 0,
    retry_at            timestamptz,
    dedup_key           text,
    file_created_at     timestamptz,
    file_modified_at    timestamptz,
    created_at          timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT sources_deleting_ck CHECK ((deletion_intent IS NULL) = (deletion_step IS NULL)),
    CONSTRAINT sources_failed_ck CHECK (status <> 'failed' OR error_code IS NOT NULL)
) WITH (fillfactor = 50);  -- every walk stamps every row: with room on its page and no index on the stamp, that touches no index
CREATE INDEX IF NOT EXISTS sources_workspace_created_idx ON sources (workspace_id, created_at);
CREATE INDEX IF NOT EXISTS sources_workspace_status_idx ON sources (workspace_id, status);
CREATE INDEX IF NOT EXISTS sources_content_hash_idx ON sources (content_hash);
CREATE INDEX IF NOT EXISTS sources_folder_idx ON sources (folder_id);
CREATE INDEX IF NOT EXISTS sources_deleting_idx ON sources (source_id) WHERE deletion_intent IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS sources_dedup_key_uq ON sources (workspace_id, folder_id, dedup_key) NULLS NOT DISTINCT WHERE dedup_key IS NOT NULL;

-- Partition keys that belong to no source any more; Dagster's set loses them after a retention time. A key that comes back leaves this table.
CREATE TABLE IF NOT EXISTS retired_partitions (
    partition_key text        CONSTRAINT retired_partitions_pk PRIMARY KEY,
    retired_at    timestamptz NOT NULL
);

-- One row per source and attempt; rows accumulate, a retry is a new row. The open one is the claim.
CREATE TABLE IF NOT EXISTS attempts (
    attempt_id     bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT attempts_pk PRIMARY KEY,
    source_id      uuid        NOT NULL CONSTRAINT attempts_source_fk REFERENCES sources ON DELETE CASCADE,
    attempt_number integer     NOT NULL CONSTRAINT attempts_number_ck CHECK (attempt_number > 0),
    batch_id       uuid        NOT NULL,
    run_id         text,
    state          text        NOT NULL DEFAULT 'queued' CONSTRAINT attempts_state_ck
                               CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'abandoned', 'interrupted', 'cancelled', 'launch_failed')),
    stage          text        NOT NULL DEFAULT 'queued' CONSTRAINT attempts_stage_ck
                               CHECK (stage IN ('queued', 'parsing', 'chunking', 'contextualizing', 'embedding', 'indexing', 'publishing')),
    reason         text        NOT NULL DEFAULT '',
    wanted_version text        NOT NULL DEFAULT '',
    from_stage     text,
    progress       real        NOT NULL DEFAULT 0 CONSTRAINT attempts_progress_ck CHECK (progress BETWEEN 0 AND 1),
    publication_id bigint,
    -- calls that no cache answered
    n_parsed       integer     NOT NULL DEFAULT 0,
    n_contexts     integer     NOT NULL DEFAULT 0,
    n_embedded     integer     NOT NULL DEFAULT 0,
    error_code     text,
    error_message  text        CONSTRAINT attempts_error_message_ck CHECK (char_length(error_message) <= 500),
    n_requests     integer     NOT NULL DEFAULT 0,
    queued_at      timestamptz NOT NULL DEFAULT now(),
    requested_at   timestamptz,
    started_at     timestamptz,
    finished_at    timestamptz,
    CONSTRAINT attempts_open_ck CHECK ((finished_at IS NULL) = (state IN ('queued', 'running'))),
    CONSTRAINT attempts_number_uq UNIQUE (source_id, attempt_number)
);
CREATE UNIQUE INDEX IF NOT EXISTS attempts_one_open_uq ON attempts (source_id) WHERE finished_at IS NULL;
CREATE INDEX IF NOT EXISTS attempts_batch_idx ON attempts (batch_id);
CREATE INDEX IF NOT EXISTS attempts_run_idx ON attempts (run_id);
CREATE INDEX IF NOT EXISTS attempts_finished_idx ON attempts (finished_at);

-- What each stage of a source was last made from, by which recipe, with which result. Within an open attempt only its run writes here:
-- it is how one step hands its keys to the next.
CREATE TABLE IF NOT EXISTS stage_state (
    source_id     uuid        NOT NULL CONSTRAINT stage_state_source_fk REFERENCES sources ON DELETE CASCADE,
    stage         text        NOT NULL CONSTRAINT stage_state_stage_ck
                              CHECK (stage IN ('documents', 'chunks', 'contextualized_chunks', 'embeddings', 'bm25_index', 'corpus')),
    input_version text        NOT NULL,
    fingerprint   text        NOT NULL,
    output_hash   text        NOT NULL,
    result_key    text        NOT NULL,
    run_id        text        NOT NULL,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT stage_state_pk PRIMARY KEY (source_id, stage)
);
