-- name: embedding_index_of_spec
-- The index of a spec, if it was ever made.
SELECT embedding_index_id, spec, spec_hash, vector_table, state, location FROM embedding_indexes WHERE spec_hash = %s;

-- name: active_embedding_index
-- The index that searches read.
SELECT i.embedding_index_id, i.spec, i.spec_hash, i.vector_table, i.state, i.location
  FROM corpus_state AS s
  JOIN embedding_indexes AS i ON i.embedding_index_id = s.active_embedding_index;

-- name: open_embedding_indexes
-- Those that every new publication needs vectors in, the active one first.
SELECT embedding_index_id, spec, spec_hash, vector_table, state, location
  FROM embedding_indexes
 WHERE state <> 'retired'
 ORDER BY state <> 'active', embedding_index_id;

-- name: all_embedding_indexes
-- Every index that was made and not dropped: the active one, those being built, then the retired ones, the latest first.
SELECT embedding_index_id, spec, spec_hash, vector_table, state, location
  FROM embedding_indexes
 ORDER BY state = 'retired', state <> 'active', coalesce(retired_at, created_at) DESC, embedding_index_id DESC;

-- name: insert_embedding_index
-- The row of a new index; its table bears its number, which is therefore drawn first.
INSERT INTO embedding_indexes (embedding_index_id, spec, spec_hash, dimension, vector_table, state, location)
OVERRIDING SYSTEM VALUE VALUES (%s, %s, %s, %s, %s, %s, %s);

-- name: reopen_embedding_index
-- A retired index takes part again.
UPDATE embedding_indexes SET state = %(state)s, retired_at = NULL WHERE embedding_index_id = %(embedding_index_id)s;

-- name: locate_embedding_index
-- Where this machine has the model of an index; the row is written only when that is news.
UPDATE embedding_indexes SET location = %(location)s
 WHERE embedding_index_id = %(embedding_index_id)s AND location IS DISTINCT FROM %(location)s;

-- name: create_vector_table
-- The vectors of one index, a row per published chunk; the chunk's deletion takes them along.
CREATE TABLE {table} (
    publication_id bigint        NOT NULL,
    chunk_index    integer       NOT NULL,
    embedding      vector({dimension}) NOT NULL,
    CONSTRAINT {primary_key} PRIMARY KEY (publication_id, chunk_index),
    CONSTRAINT {chunk_key} FOREIGN KEY (publication_id, chunk_index) REFERENCES chunks ON DELETE CASCADE
);

-- name: declared_width
-- The width in a vector table's declaration; no row for a table or column that is missing.
SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'embedding' AND NOT attisdropped;

-- name: vector_coverage
-- Published chunks, and those of them that have a vector: every vector belongs to a published chunk.
SELECT (SELECT coalesce(sum(n_chunks), 0)::bigint FROM documents), (SELECT count(*) FROM {vectors});

-- name: chunks_without_vector
-- Published chunks that have no vector in the index, in the order of their keys, after one key.
SELECT c.publication_id, c.chunk_index, c.contextualized_content
  FROM chunks AS c
 WHERE (c.publication_id, c.chunk_index) > (%(publication_id)s, %(chunk_index)s)
   AND NOT EXISTS (SELECT FROM {vectors} AS v WHERE v.publication_id = c.publication_id AND v.chunk_index = c.chunk_index)
 ORDER BY c.publication_id, c.chunk_index
 LIMIT %(limit)s;

-- name: n_chunks_without_vector
-- How many published chunks have no vector in the index.
SELECT count(*) FROM chunks AS c
 WHERE NOT EXISTS (SELECT FROM {vectors} AS v WHERE v.publication_id = c.publication_id AND v.chunk_index = c.chunk_index);

-- name: fill_vectors
-- Vectors from the cache for these chunks, where they are still published. The lock keeps a chunk until its vector stands; rows are
-- taken in the order of their keys.
INSERT INTO {vectors} (publication_id, chunk_index, embedding)
SELECT held.publication_id, held.chunk_index, e.embedding
  FROM (SELECT c.publication_id, c.chunk_index, t.input_hash
          FROM unnest(%(publication_ids)s::bigint[], %(chunk_indexes)s::integer[], %(input_hashes)s::text[])
               AS t (publication_id, chunk_index, input_hash)
          JOIN chunks AS c ON c.publication_id = t.publication_id AND c.chunk_index = t.chunk_index
         ORDER BY c.publication_id, c.chunk_index
           FOR KEY SHARE OF c) AS held
  JOIN embedding_cache AS e ON e.spec_hash = %(spec_hash)s AND e.input_hash = held.input_hash
    ON CONFLICT (publication_id, chunk_index) DO NOTHING;

-- name: cost_of_filling
-- What an index lacks: distinct strings among the published chunks without a vector, and those of them that the cache does not hold.
SELECT count(*), coalesce(sum(lacking.n_chunks), 0)::bigint, count(*) FILTER (WHERE NOT EXISTS (
           SELECT FROM embedding_cache AS e WHERE e.spec_hash = %(spec_hash)s AND e.input_hash = lacking.input_hash))
  FROM (SELECT encode(sha256(convert_to(%(prefix)s || c.contextualized_content, 'UTF8')), 'hex') AS input_hash, count(*) AS n_chunks
          FROM chunks AS c
         WHERE NOT EXISTS (SELECT FROM {vectors} AS v WHERE v.publication_id = c.publication_id AND v.chunk_index = c.chunk_index)
         GROUP BY 1) AS lacking;

-- name: lock_corpus_alone
-- Nobody publishes, switches or restores until the transaction ends.
SELECT active_embedding_index, active_sparse_index FROM corpus_state FOR UPDATE;

-- name: retire_open_embedding_indexes
-- All that take part but one: its vectors stay, for a way back.
UPDATE embedding_indexes SET state = 'retired', retired_at = %(now)s WHERE state <> 'retired' AND embedding_index_id <> %(embedding_index_id)s;

-- name: activate_embedding_index
WITH activated AS (
    UPDATE embedding_indexes SET state = 'active', retired_at = NULL WHERE embedding_index_id = %(embedding_index_id)s
    RETURNING embedding_index_id
)
UPDATE corpus_state SET active_embedding_index = activated.embedding_index_id FROM activated;

-- name: droppable_embedding_indexes
-- Retired indexes that no query can still be reading.
SELECT embedding_index_id FROM embedding_indexes AS i
 WHERE state = 'retired' AND coalesce(retired_at, created_at) <= %(before)s
   AND NOT EXISTS (SELECT FROM corpus_state AS s WHERE s.active_embedding_index = i.embedding_index_id)
 ORDER BY embedding_index_id;

-- name: note_embeddings
-- The embeddings of documents that are live as their stages made them are now those of the active index: of its recipe, and named by
-- the strings that it holds vectors of, as the stage `embeddings` names them.
UPDATE stage_state AS e
   SET fingerprint = %(fingerprint)s, result_key = %(embedding_index_id)s::text, updated_at = %(now)s,
       output_hash = encode(sha256(convert_to(concat('64:', %(spec_hash)s::text, (
           SELECT string_agg('64:' || encode(sha256(convert_to(%(prefix)s || c.contextualized_content, 'UTF8')), 'hex'), '' ORDER BY c.chunk_index)
             FROM chunks AS c WHERE c.publication_id = d.publication_id)), 'UTF8')), 'hex')
  FROM documents AS d
  JOIN stage_state AS made ON made.source_id = d.source_id AND made.stage = 'documents'
  JOIN stage_state AS x ON x.source_id = d.source_id AND x.stage = 'contextualized_chunks'
 WHERE e.source_id = d.source_id AND e.stage = 'embeddings' AND e.input_version = x.output_hash
   AND (e.fingerprint <> %(fingerprint)s OR e.result_key <> %(embedding_index_id)s::text)
   AND d.output_hash = encode(sha256(convert_to(concat_ws(E'\n', d.source_path, d.content_hash, made.output_hash, x.output_hash), 'UTF8')), 'hex');

-- name: made_versions
-- Partition and output of a stage, of every document that is live and present.
SELECT s.partition_key, made.output_hash
  FROM documents AS d
  JOIN sources AS s ON s.source_id = d.source_id
  JOIN stage_state AS made ON made.source_id = d.source_id AND made.stage = %(stage)s
 WHERE s.presence <> 'missing' AND s.deletion_intent IS NULL
 ORDER BY s.partition_key;

-- name: published_hashes
-- Partition and bytes of every document that is live and present.
SELECT s.partition_key, d.content_hash
  FROM documents AS d
  JOIN sources AS s ON s.source_id = d.source_id
 WHERE s.presence <> 'missing' AND s.deletion_intent IS NULL AND d.content_hash IS NOT NULL
 ORDER BY s.partition_key;

-- name: hnsw_of
-- The search structure of a vector table by its name: its parameters, whether it is whole, its size in bytes.
SELECT coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions) WHERE option_name = 'm'), '16')::integer,
       coalesce((SELECT option_value FROM pg_options_to_table(c.reloptions) WHERE option_name = 'ef_construction'), '64')::integer,
       i.indisvalid, pg_relation_size(c.oid)
  FROM pg_class AS c
  JOIN pg_index AS i ON i.indexrelid = c.oid
 WHERE c.oid = to_regclass(%(name)s) AND i.indrelid = to_regclass(%(table)s);

-- name: sparse_index_of_recipe
-- The keyword index of a fingerprint that takes part, the active one before one that is being built.
SELECT sparse_index_id, name, backend, state, incomplete_since IS NOT NULL, language
  FROM sparse_indexes WHERE fingerprint = %s AND state <> 'retired' ORDER BY state <> 'active' LIMIT 1;

-- name: active_sparse_index
-- The keyword index that searches read.
SELECT i.sparse_index_id, i.name, i.backend, i.state, i.incomplete_since IS NOT NULL, i.language
  FROM corpus_state AS s
  JOIN sparse_indexes AS i ON i.sparse_index_id = s.active_sparse_index;

-- name: open_sparse_indexes
-- Those that every new publication needs entries in, the active one first.
SELECT sparse_index_id, name, backend, state, incomplete_since IS NOT NULL, language
  FROM sparse_indexes WHERE state <> 'retired' ORDER BY state <> 'active', sparse_index_id;

-- name: insert_sparse_index
-- The row of a new keyword index.
INSERT INTO sparse_indexes (backend, name, fingerprint, state, language) VALUES (%s, %s, %s, %s, %s)
RETURNING sparse_index_id, name, backend, state, incomplete_since IS NOT NULL, language;

-- name: recipe_of_sparse_index
SELECT fingerprint FROM sparse_indexes WHERE sparse_index_id = %s;

-- name: retire_sparse_index
-- One that is lost, or whose place another takes.
UPDATE sparse_indexes SET state = 'retired', retired_at = %(now)s WHERE sparse_index_id = %(sparse_index_id)s;

-- name: retire_sparse_indexes
-- All that take part but one.
UPDATE sparse_indexes SET state = 'retired', retired_at = %(now)s WHERE state <> 'retired' AND sparse_index_id <> %(sparse_index_id)s;

-- name: retire_unwanted_sparse_indexes
-- Those being built by a recipe that is neither wanted nor the active one's: nothing would ever switch to them.
UPDATE sparse_indexes SET state = 'retired', retired_at = %(now)s
 WHERE state = 'building' AND fingerprint <> %(fingerprint)s
   AND fingerprint NOT IN (SELECT fingerprint FROM sparse_indexes WHERE state = 'active');

-- name: activate_sparse_index
WITH activated AS (
    UPDATE sparse_indexes SET state = 'active', retired_at = NULL, incomplete_since = %(incomplete_since)s
     WHERE sparse_index_id = %(sparse_index_id)s
    RETURNING sparse_index_id
)
UPDATE corpus_state SET active_sparse_index = activated.sparse_index_id FROM activated;

-- name: droppable_sparse_indexes
-- Retired keyword indexes that no query can still be reading.
SELECT sparse_index_id, name, backend, state, incomplete_since IS NOT NULL, language
  FROM sparse_indexes AS i
 WHERE state = 'retired' AND coalesce(retired_at, created_at) <= %(before)s
   AND NOT EXISTS (SELECT FROM corpus_state AS s WHERE s.active_sparse_index = i.sparse_index_id)
 ORDER BY sparse_index_id;
