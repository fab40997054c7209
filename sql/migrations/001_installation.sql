-- What every other table stands on: the vector type, overrides of settings, the settings of each run, and the one row that says what is active.
CREATE EXTENSION IF NOT EXISTS vector;

-- Runtime overrides, in the form that the environment would have. Keys beginning with an underscore are Stemma's own.
CREATE TABLE IF NOT EXISTS app_settings (
    key        text        CONSTRAINT app_settings_pk PRIMARY KEY,
    value      text        NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- The settings that a run froze at its start, with the fingerprints they gave and the epoch it belongs to.
CREATE TABLE IF NOT EXISTS run_settings (
    run_id       text        CONSTRAINT run_settings_pk PRIMARY KEY,
    settings     jsonb       NOT NULL,
    fingerprints jsonb       NOT NULL,
    epoch        bigint      NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now()
);

-- One row per way of turning text into vectors. The spec is frozen; each index has a vector table of its own, made beside the row.
CREATE TABLE IF NOT EXISTS embedding_indexes (
    embedding_index_id integer     GENERATED ALWAYS AS IDENTITY CONSTRAINT embedding_indexes_pk PRIMARY KEY,
    spec               jsonb       NOT NULL,
    spec_hash          text        NOT NULL CONSTRAINT embedding_indexes_spec_hash_uq UNIQUE,
    dimension          integer     NOT NULL CONSTRAINT embedding_indexes_dimension_ck CHECK (dimension BETWEEN 1 AND 16000),
    vector_table       text        NOT NULL CONSTRAINT embedding_indexes_vector_table_uq UNIQUE
                                   CONSTRAINT embedding_indexes_vector_table_ck CHECK (vector_table ~ '^chunk_vectors_[1-9][0-9]*$'),
    state              text        NOT NULL CONSTRAINT embedding_indexes_state_ck CHECK (state IN ('building', 'active', 'retired')),
    created_at         timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX IF NOT EXISTS embedding_indexes_one_active_uq ON embedding_indexes ((true)) WHERE state = 'active';

CREATE OR REPLACE FUNCTION refuse_spec_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.spec IS DISTINCT FROM OLD.spec OR NEW.spec_hash <> OLD.spec_hash OR NEW.dimension <> OLD.dimension
       OR NEW.vector_table <> OLD.vector_table THEN
        RAISE EXCEPTION 'the spec of embedding index % is frozen', OLD.embedding_index_id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER embedding_indexes_spec_frozen BEFORE UPDATE ON embedding_indexes
    FOR EACH ROW EXECUTE FUNCTION refuse_spec_update();

-- One row per keyword index: which engine, under which name, with which settings.
CREATE TABLE IF NOT EXISTS sparse_indexes (
    sparse_index_id integer     GENERATED ALWAYS AS IDENTITY CONSTRAINT sparse_indexes_pk PRIMARY KEY,
    backend         text        NOT NULL CONSTRAINT sparse_indexes_backend_ck CHECK (backend IN ('tantivy', 'elasticsearch')),
    name            text        NOT NULL CONSTRAINT sparse_indexes_name_uq UNIQUE,
    fingerprint     text        NOT NULL CONSTRAINT sparse_indexes_fingerprint_uq UNIQUE,
    state           text        NOT NULL CONSTRAINT sparse_indexes_state_ck CHECK (state IN ('building', 'active', 'retired')),
    created_at      timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX IF NOT EXISTS sparse_indexes_one_active_uq ON sparse_indexes ((true)) WHERE state = 'active';

-- The one row that every publication locks FOR SHARE and every switch FOR UPDATE.
CREATE TABLE IF NOT EXISTS corpus_state (
    corpus_state_id        integer NOT NULL DEFAULT 1 CONSTRAINT corpus_state_pk PRIMARY KEY CONSTRAINT corpus_state_one_row_ck CHECK (corpus_state_id = 1),
    epoch                  bigint  NOT NULL DEFAULT 1,
    active_embedding_index integer CONSTRAINT corpus_state_embedding_index_fk REFERENCES embedding_indexes ON DELETE RESTRICT,
    active_sparse_index    integer CONSTRAINT corpus_state_sparse_index_fk REFERENCES sparse_indexes ON DELETE RESTRICT
);
INSERT INTO corpus_state DEFAULT VALUES ON CONFLICT DO NOTHING;

-- Apart from corpus_state, so that reserving a block of numbers never waits for a publication.
CREATE TABLE IF NOT EXISTS original_index_counter (
    original_index_counter_id integer NOT NULL DEFAULT 1 CONSTRAINT original_index_counter_pk PRIMARY KEY
                                      CONSTRAINT original_index_counter_one_row_ck CHECK (original_index_counter_id = 1),
    next                      bigint  NOT NULL DEFAULT 0 CONSTRAINT original_index_counter_next_ck CHECK (next >= 0)
);
INSERT INTO original_index_counter DEFAULT VALUES ON CONFLICT DO NOTHING;
