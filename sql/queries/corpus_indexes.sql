-- name: embedding_index_of_spec
-- The index of a spec, if it was ever made.
SELECT embedding_index_id, spec, spec_hash, vector_table, state FROM embedding_indexes WHERE spec_hash = %s;

-- name: active_embedding_index
-- The index that searches read.
SELECT i.embedding_index_id, i.spec, i.spec_hash, i.vector_table, i.state
  FROM corpus_state AS s
  JOIN embedding_indexes AS i ON i.embedding_index_id = s.active_embedding_index;

-- name: open_embedding_indexes
-- Those that every new publication needs vectors in, the active one first.
SELECT embedding_index_id, spec, spec_hash, vector_table, state
  FROM embedding_indexes
 WHERE state <> 'retired'
 ORDER BY state <> 'active', embedding_index_id;

-- name: insert_embedding_index
-- The row of a new index; its table bears its number, which is therefore drawn first.
INSERT INTO embedding_indexes (embedding_index_id, spec, spec_hash, dimension, vector_table, state)
OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, %s, %s);

-- name: create_vector_table
-- The vectors of one index, a row per published chunk; the chunk's deletion takes them along.
CREATE TABLE {table} (
    publication_id bigint        NOT NULL,
    chunk_index    integer       NOT NULL,
    embedding      vector({dimension}) NOT NULL,
    CONSTRAINT {primary_key} PRIMARY KEY (publication_id, chunk_index),
    CONSTRAINT {chunk_key} FOREIGN KEY (publication_id, chunk_index) REFERENCES chunks ON DELETE CASCADE
);
CREATE INDEX {hnsw} ON {table} USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64);

-- name: declared_width
-- The width in a vector table's declaration; no row for a table or column that is missing.
SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'embedding' AND NOT attisdropped;

-- name: sparse_index_of_recipe
-- The keyword index of a fingerprint, if it was ever made.
SELECT sparse_index_id, name, backend, state FROM sparse_indexes WHERE fingerprint = %s;

-- name: active_sparse_index
-- The keyword index that searches read.
SELECT i.sparse_index_id, i.name, i.backend, i.state
  FROM corpus_state AS s
  JOIN sparse_indexes AS i ON i.sparse_index_id = s.active_sparse_index;

-- name: open_sparse_indexes
-- Those that every new publication needs entries in, the active one first.
SELECT sparse_index_id, name, backend, state FROM sparse_indexes WHERE state <> 'retired' ORDER BY state <> 'active', sparse_index_id;

-- name: keep_sparse_index
-- The row of a keyword index, made, left as it is, or brought back from retirement.
INSERT INTO sparse_indexes (backend, name, fingerprint, state) VALUES (%s, %s, %s, %s)
    ON CONFLICT (fingerprint) DO UPDATE
       SET state = CASE sparse_indexes.state WHEN 'retired' THEN EXCLUDED.state ELSE sparse_indexes.state END
RETURNING sparse_index_id, name, backend, state;
