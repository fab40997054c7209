-- What is published and searched: publications, documents, chunks; and the caches that make work happen once.
CREATE TABLE IF NOT EXISTS publications (
    publication_id       bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT publications_pk PRIMARY KEY,
    source_id            uuid        NOT NULL,
    doc_id               text,
    source_path          text        NOT NULL,
    run_id               text        NOT NULL,
    content_hash         text,
    output_hash          text,
    n_chunks             integer,
    first_original_index bigint,
    state                text        NOT NULL DEFAULT 'pending' CONSTRAINT publications_state_ck
                                     CHECK (state IN ('pending', 'live', 'superseded', 'abandoned', 'retired')),
    created_at           timestamptz NOT NULL DEFAULT now(),
    published_at         timestamptz,
    superseded_at        timestamptz
);
CREATE UNIQUE INDEX IF NOT EXISTS publications_one_live_uq ON publications (source_id) WHERE state = 'live';
CREATE INDEX IF NOT EXISTS publications_source_idx ON publications (source_id);
CREATE INDEX IF NOT EXISTS publications_doc_id_idx ON publications (doc_id);
CREATE INDEX IF NOT EXISTS publications_to_retire_idx ON publications (superseded_at) WHERE state IN ('superseded', 'abandoned');
CREATE INDEX IF NOT EXISTS publications_run_idx ON publications (run_id);

-- Which keyword indexes hold the entries of a publication.
CREATE TABLE IF NOT EXISTS sparse_coverage (
    publication_id  bigint  NOT NULL CONSTRAINT sparse_coverage_publication_fk REFERENCES publications ON DELETE CASCADE,
    sparse_index_id integer NOT NULL CONSTRAINT sparse_coverage_sparse_index_fk REFERENCES sparse_indexes ON DELETE CASCADE,
    n_entries       integer NOT NULL CONSTRAINT sparse_coverage_n_entries_ck CHECK (n_entries >= 0),
    CONSTRAINT sparse_coverage_pk PRIMARY KEY (publication_id, sparse_index_id)
);
CREATE INDEX IF NOT EXISTS sparse_coverage_sparse_index_idx ON sparse_coverage (sparse_index_id);

CREATE TABLE IF NOT EXISTS documents (
    publication_id             bigint      CONSTRAINT documents_pk PRIMARY KEY CONSTRAINT documents_publication_fk REFERENCES publications ON DELETE CASCADE,
    doc_id                     text        NOT NULL CONSTRAINT documents_doc_id_uq UNIQUE CONSTRAINT documents_doc_id_ck CHECK (doc_id ~ '^[0-9a-f]{16}$'),
    source_id                  uuid        NOT NULL CONSTRAINT documents_source_id_uq UNIQUE
                                           CONSTRAINT documents_source_fk REFERENCES sources ON DELETE CASCADE,
    workspace_id               bigint      NOT NULL CONSTRAINT documents_workspace_fk REFERENCES workspaces ON DELETE CASCADE,
    source_path                text        NOT NULL,
    source                     text        NOT NULL,
    file_name                  text        NOT NULL,
    file_type                  text        NOT NULL,
    document_type              text        NOT NULL CONSTRAINT documents_document_type_ck CHECK (document_type IN ('FILE', 'NOTE', 'ARTIFACT', 'THREAD_DAY')),
    content_hash               text        CONSTRAINT documents_content_hash_ck CHECK (document_type <> 'FILE' OR content_hash IS NOT NULL),
    title                      text        NOT NULL CONSTRAINT documents_title_ck CHECK (char_length(title) <= 500),
    text                       text        NOT NULL,
    blocks                     bytea       NOT NULL,
    pages                      bytea       NOT NULL,
    document_metadata          jsonb       NOT NULL DEFAULT '{}',
    parser                     text        NOT NULL,
    parser_version             text        NOT NULL,
    chunker                    text        NOT NULL,
    extraction                 text        NOT NULL CONSTRAINT documents_extraction_ck CHECK (extraction IN ('text', 'ocr', 'ocr_fallback')),
    used_ocr                   boolean     NOT NULL,
    ocr_pages                  integer[]   NOT NULL DEFAULT '{}',
    warning_code               text,
    n_chars                    integer     NOT NULL,
    n_pages                    integer     NOT NULL,
    n_chunks                   integer     NOT NULL CONSTRAINT documents_n_chunks_ck CHECK (n_chunks >= 0),
    parsing_fingerprint        text        NOT NULL,
    chunking_fingerprint       text        NOT NULL,
    contextualizing_fingerprint text       NOT NULL,
    document_output_hash       text        NOT NULL,
    output_hash                text        NOT NULL,
    run_id                     text        NOT NULL,
    file_created_at            timestamptz,
    file_modified_at           timestamptz,
    ingested_at                timestamptz NOT NULL DEFAULT now()
);
-- Every search counts the chunks of its scope: from this index alone, never from the rows that hold the texts.
CREATE INDEX IF NOT EXISTS documents_scope_idx ON documents (workspace_id) INCLUDE (source_id, doc_id, source_path, file_type, n_chunks);
CREATE INDEX IF NOT EXISTS documents_source_path_idx ON documents (source_path text_pattern_ops);
CREATE INDEX IF NOT EXISTS documents_recipe_idx ON documents (parser, parser_version, chunker);

-- Tables and figures found while parsing, addressed by offsets into the document's text.
CREATE TABLE IF NOT EXISTS document_assets (
    publication_id bigint  NOT NULL CONSTRAINT document_assets_document_fk REFERENCES documents ON DELETE CASCADE,
    asset_index    integer NOT NULL,
    kind           text    NOT NULL CONSTRAINT document_assets_kind_ck CHECK (kind IN ('table', 'figure')),
    page           integer,
    char_start     integer NOT NULL,
    char_end       integer NOT NULL,
    caption        text,
    CONSTRAINT document_assets_pk PRIMARY KEY (publication_id, asset_index),
    CONSTRAINT document_assets_span_ck CHECK (0 <= char_start AND char_start <= char_end)
);

-- array_to_string is only stable, since it serves every element type; for text it depends on nothing but its arguments.
CREATE OR REPLACE FUNCTION heading_trail(section_path text[]) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN array_to_string(section_path, ' > ');

-- A tsvector holds 1 MiB: 200,000 characters fit whatever their script, so the tail of a longer chunk is found by BM25 alone.
CREATE OR REPLACE FUNCTION chunk_tsvector(section_path text[], content text) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN setweight(to_tsvector('english'::regconfig, left(heading_trail(section_path), 10000)), 'A')
        || setweight(to_tsvector('english'::regconfig, left(content, 200000)), 'B');

CREATE TABLE IF NOT EXISTS chunks (
    publication_id         bigint      NOT NULL CONSTRAINT chunks_document_fk REFERENCES documents ON DELETE CASCADE,
    chunk_index            integer     NOT NULL CONSTRAINT chunks_chunk_index_ck CHECK (chunk_index >= 0),
    chunk_id               text        NOT NULL CONSTRAINT chunks_chunk_id_uq UNIQUE,
    doc_id                 text        NOT NULL,
    original_index         bigint      NOT NULL,
    content                text        NOT NULL CONSTRAINT chunks_content_ck CHECK (content <> ''),
    context                text,
    contextualized_content text        NOT NULL,
    char_start             integer     NOT NULL,
    char_end               integer     NOT NULL,
    start_line             integer     NOT NULL,
    end_line               integer     NOT NULL,
    page_start             integer,
    page_end               integer,
    section_path           text[]      NOT NULL DEFAULT '{}',
    chunk_type             text        NOT NULL CONSTRAINT chunks_chunk_type_ck CHECK (chunk_type IN ('prose', 'table', 'code', 'formula')),
    n_tokens               integer     NOT NULL,
    text_hash              text        NOT NULL,
    input_hash             text        NOT NULL,
    metadata               jsonb       NOT NULL,
    content_tsv            tsvector    GENERATED ALWAYS AS (chunk_tsvector(section_path, content)) STORED,
    created_at             timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT chunks_pk PRIMARY KEY (publication_id, chunk_index),
    CONSTRAINT chunks_span_ck CHECK (0 <= char_start AND char_end - char_start = char_length(content)),
    CONSTRAINT chunks_lines_ck CHECK (1 <= start_line AND start_line <= end_line),
    CONSTRAINT chunks_pages_ck CHECK ((page_start IS NULL) = (page_end IS NULL) AND page_start <= page_end),
    CONSTRAINT chunks_context_ck CHECK (contextualized_content = CASE WHEN context IS NULL THEN content ELSE context || E'\n\n' || content END)
);
CREATE INDEX IF NOT EXISTS chunks_doc_id_idx ON chunks (doc_id);
CREATE UNIQUE INDEX IF NOT EXISTS chunks_doc_orig_uidx ON chunks (doc_id, original_index);
CREATE UNIQUE INDEX IF NOT EXISTS chunks_original_index_uq ON chunks (original_index);
CREATE INDEX IF NOT EXISTS chunks_content_tsv_idx ON chunks USING gin (content_tsv);
CREATE INDEX IF NOT EXISTS chunks_document_pages_idx ON chunks (publication_id, page_start, page_end);
CREATE INDEX IF NOT EXISTS chunks_text_hash_idx ON chunks (text_hash);
CREATE INDEX IF NOT EXISTS chunks_input_hash_idx ON chunks (input_hash);

-- Where the result of a piece of work lies in the lake. The key holds everything that the result depends on.
CREATE TABLE IF NOT EXISTS stage_results (
    stage        text        NOT NULL CONSTRAINT stage_results_stage_ck CHECK (stage IN ('documents', 'chunks', 'contextualized_chunks')),
    key          text        NOT NULL,
    fingerprint  text        NOT NULL,
    output_hash  text        NOT NULL,
    object       text        NOT NULL,
    last_used_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT stage_results_pk PRIMARY KEY (stage, key)
);
CREATE INDEX IF NOT EXISTS stage_results_object_idx ON stage_results (object);

-- One vector per exact string and spec; the column has no fixed dimension, since specs differ.
CREATE TABLE IF NOT EXISTS embedding_cache (
    spec_hash    text        NOT NULL,
    input_hash   text        NOT NULL,
    embedding    vector      NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT embedding_cache_pk PRIMARY KEY (spec_hash, input_hash)
);

CREATE TABLE IF NOT EXISTS context_cache (
    key          text        CONSTRAINT context_cache_pk PRIMARY KEY,
    context      text        NOT NULL,
    model        text        NOT NULL,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL DEFAULT now()
);

-- Which model made the vectors that a search of each document reads: the model is never stored on the document itself.
CREATE OR REPLACE VIEW document_provenance AS
SELECT d.publication_id, d.doc_id, d.source_id, d.source_path, d.parser, d.parser_version, d.chunker, d.used_ocr,
       i.spec ->> 'model' AS embedding_model, i.dimension AS embedding_dim, i.embedding_index_id,
       d.parsing_fingerprint, d.chunking_fingerprint, d.contextualizing_fingerprint, d.run_id
  FROM documents AS d
 CROSS JOIN corpus_state AS s
  LEFT JOIN embedding_indexes AS i ON i.embedding_index_id = s.active_embedding_index;
