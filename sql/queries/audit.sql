-- name: live_without_document
-- A publication that readers should see, without its document.
SELECT p.publication_id::text AS subject, p.source_id::text, 'publication of ' || p.source_path || ' is live without a document' AS detail
  FROM publications AS p LEFT JOIN documents AS d USING (publication_id)
 WHERE p.state = 'live' AND d.publication_id IS NULL
 ORDER BY p.publication_id;

-- name: document_not_live
-- A document whose publication is not the live one, or says something else of it.
SELECT d.doc_id AS subject, d.source_id::text, format('publication %s is %s', p.publication_id, p.state) AS detail
  FROM documents AS d JOIN publications AS p USING (publication_id)
 WHERE p.state <> 'live' OR (p.doc_id, p.source_id, p.content_hash, p.n_chunks) IS DISTINCT FROM (d.doc_id, d.source_id, d.content_hash, d.n_chunks)
 ORDER BY d.doc_id;

-- name: chunks_not_dense
-- A document that has not the number of chunks that it states, or not with the indexes 0, 1, 2, ...
SELECT d.doc_id AS subject, d.source_id::text, format('%s chunks of %s, the last of index %s', count(c.chunk_index), d.n_chunks, max(c.chunk_index)) AS detail
  FROM documents AS d LEFT JOIN chunks AS c USING (publication_id)
 GROUP BY d.publication_id
HAVING count(c.chunk_index) <> d.n_chunks OR coalesce(max(c.chunk_index), -1) <> d.n_chunks - 1
 ORDER BY d.doc_id;

-- name: chunk_hash_differs
-- A chunk that is not what its hash or its record says.
SELECT d.doc_id AS subject, d.source_id::text, format('%s of %s chunks', count(*), d.n_chunks) AS detail
  FROM chunks AS c JOIN documents AS d USING (publication_id)
 WHERE c.text_hash <> encode(sha256(convert_to(c.content, 'UTF8')), 'hex') OR c.doc_id <> d.doc_id
    OR c.metadata ->> 'content' <> c.content OR c.chunk_id <> d.doc_id || '::' || c.chunk_index
 GROUP BY d.publication_id
 ORDER BY d.doc_id;

-- name: vector_missing
-- A published chunk without a vector in the index that searches read.
SELECT d.doc_id AS subject, d.source_id::text, format('%s of %s chunks', count(*), d.n_chunks) AS detail
  FROM documents AS d JOIN chunks AS c USING (publication_id) LEFT JOIN {vectors} AS v USING (publication_id, chunk_index)
 WHERE v.chunk_index IS NULL
 GROUP BY d.publication_id
 ORDER BY d.doc_id;

-- name: vector_differs
-- A vector that is not the one that the cache holds for the chunk's string, or whose length is not the one that its model gives.
SELECT d.doc_id AS subject, d.source_id::text, count(*) || ' of ' || d.n_chunks || ' chunks' AS detail
  FROM documents AS d JOIN chunks AS c USING (publication_id) JOIN {vectors} AS v USING (publication_id, chunk_index)
  LEFT JOIN embedding_cache AS e
    ON e.spec_hash = %(spec_hash)s AND e.input_hash = encode(sha256(convert_to(%(prefix)s || c.contextualized_content, 'UTF8')), 'hex')
   AND vector_dims(e.embedding) = %(dimension)s
 WHERE v.embedding <> e.embedding OR (%(normalized)s AND abs(vector_norm(v.embedding) - 1) > 0.001)
 GROUP BY d.publication_id
 ORDER BY d.doc_id;

-- name: cached_vector_damaged
-- A cached vector that no model of its spec can have made.
SELECT e.input_hash AS subject, NULL AS source_id, vector_dims(e.embedding) || ' dimensions, length ' || round(vector_norm(e.embedding)::numeric, 3) AS detail
  FROM embedding_cache AS e
 WHERE e.spec_hash = %(spec_hash)s
   AND (vector_dims(e.embedding) <> %(dimension)s OR (%(normalized)s AND abs(vector_norm(e.embedding) - 1) > 0.001))
 ORDER BY e.input_hash;

-- name: active_index_differs
-- corpus_state names an index that is not the active one of its kind, or none although there is one.
SELECT kind AS subject, NULL AS source_id, format('corpus_state names %s, active is %s', coalesce(named::text, 'none'), coalesce(active::text, 'none')) AS detail
  FROM (SELECT 'embedding' AS kind, active_embedding_index AS named, (SELECT embedding_index_id FROM embedding_indexes WHERE state = 'active') AS active FROM corpus_state
        UNION ALL
        SELECT 'sparse', active_sparse_index, (SELECT sparse_index_id FROM sparse_indexes WHERE state = 'active') FROM corpus_state) AS indexes
 WHERE named IS DISTINCT FROM active
 ORDER BY kind;

-- name: original_index_reused
-- The counter would give a number that a chunk has.
SELECT 'original_index_counter' AS subject, NULL AS source_id, format('next is %s, a chunk has %s', n.next, c.highest) AS detail
  FROM original_index_counter AS n CROSS JOIN (SELECT max(original_index) AS highest FROM chunks) AS c
 WHERE n.next <= c.highest;

-- name: status_differs
-- A source that shows what is not so: ready without a live document, processing without an open attempt, or failed without a reason.
SELECT s.source_path AS subject, s.source_id::text,
       CASE s.status WHEN 'ready' THEN 'ready without a live document' WHEN 'processing' THEN 'processing without an open attempt'
                     ELSE s.status || ' with an open attempt' END AS detail
  FROM sources AS s
  LEFT JOIN documents AS d USING (source_id)
  LEFT JOIN attempts AS a ON a.source_id = s.source_id AND a.finished_at IS NULL
 WHERE (s.status = 'ready' AND d.doc_id IS NULL) OR (s.status = 'processing') <> (a.attempt_id IS NOT NULL)
 ORDER BY s.source_path;

-- name: recorded_corpus_differs
-- What stage_state says was published is not what is live.
SELECT d.doc_id AS subject, d.source_id::text, 'the ledger holds another output than the live document' AS detail
  FROM documents AS d LEFT JOIN stage_state AS s ON s.source_id = d.source_id AND s.stage = 'corpus'
 WHERE s.output_hash IS DISTINCT FROM d.output_hash
 ORDER BY d.doc_id;

-- name: not_covered
-- A live document with chunks whose entries the active keyword index was never recorded to hold.
SELECT d.doc_id AS subject, d.source_id::text, d.n_chunks || ' chunks' AS detail
  FROM documents AS d
  LEFT JOIN sparse_coverage AS c ON c.publication_id = d.publication_id AND c.sparse_index_id = %(sparse_index_id)s
 WHERE d.n_chunks > 0 AND c.publication_id IS NULL
 ORDER BY d.doc_id;

-- name: publications_by_state
-- Every publication that may have keyword entries, with the number that it must have where readers see it.
SELECT p.publication_id, p.source_id::text, p.state, coalesce(d.doc_id, p.publication_id::text) AS subject, d.n_chunks
  FROM publications AS p LEFT JOIN documents AS d USING (publication_id)
 WHERE p.state <> 'retired'
 ORDER BY p.publication_id;

-- name: document_spans
-- Each live document with the spans of its chunks, in order.
SELECT d.doc_id, d.source_id::text, d.text,
       array_agg(c.chunk_index ORDER BY c.chunk_index), array_agg(c.char_start ORDER BY c.chunk_index),
       array_agg(c.char_end ORDER BY c.chunk_index), array_agg(c.content ORDER BY c.chunk_index)
  FROM documents AS d JOIN chunks AS c USING (publication_id)
 GROUP BY d.publication_id
 ORDER BY d.publication_id;

-- name: files_of_documents
-- Where the file of each source should lie, and what was recorded of its bytes.
SELECT s.source_id::text, s.source_path, s.disk_path, s.presence, s.content_hash, d.doc_id, s.last_seen_scan,
       s.hashed_size, s.hashed_mtime_ns, s.hashed_inode::text, s.hashed_device::text
  FROM sources AS s LEFT JOIN documents AS d USING (source_id)
 WHERE s.kind = 'file' AND s.disk_path IS NOT NULL AND s.deletion_intent IS NULL
 ORDER BY s.source_path;

-- name: lake_objects_named
-- The objects that results lie in, and whether any of these may be asked for: what is forgotten may be gone.
SELECT object, bool_or(NOT starts_with(key, 'forgotten:')) FROM stage_results GROUP BY object ORDER BY object;

-- name: publish_again
-- Nothing counts as published of these sources, so that the next run writes their documents anew from what the lake and the caches hold.
WITH forgotten AS (
    DELETE FROM stage_state WHERE source_id = ANY(%(source_ids)s::uuid[]) AND stage = 'corpus'
), unlike AS (
    UPDATE documents SET output_hash = '' WHERE source_id = ANY(%(source_ids)s::uuid[])
)
UPDATE publications SET output_hash = '' WHERE source_id = ANY(%(source_ids)s::uuid[]) AND state = 'live';

-- name: end_without_document
-- A live publication that has no document is not live.
UPDATE publications AS p SET state = 'superseded', superseded_at = %(now)s
 WHERE p.state = 'live' AND p.source_id = ANY(%(source_ids)s::uuid[])
   AND NOT EXISTS (SELECT FROM documents AS d WHERE d.publication_id = p.publication_id);

-- name: drop_documents_not_live
-- A document whose publication is not live is none.
DELETE FROM documents AS d USING publications AS p
 WHERE p.publication_id = d.publication_id AND p.state <> 'live' AND d.source_id = ANY(%(source_ids)s::uuid[]);

-- name: forget_damaged_vectors
-- Of the cache: what no model of the spec can have made.
DELETE FROM embedding_cache AS e
 WHERE e.spec_hash = %(spec_hash)s
   AND (vector_dims(e.embedding) <> %(dimension)s OR (%(normalized)s AND abs(vector_norm(e.embedding) - 1) > 0.001));

-- name: vectors_from_cache
-- The vectors of these sources once more as the cache holds them.
INSERT INTO {vectors} (publication_id, chunk_index, embedding)
SELECT c.publication_id, c.chunk_index, e.embedding
  FROM documents AS d
  JOIN chunks AS c USING (publication_id)
  JOIN embedding_cache AS e
    ON e.spec_hash = %(spec_hash)s AND e.input_hash = encode(sha256(convert_to(%(prefix)s || c.contextualized_content, 'UTF8')), 'hex')
 WHERE d.source_id = ANY(%(source_ids)s::uuid[])
    ON CONFLICT (publication_id, chunk_index) DO UPDATE SET embedding = excluded.embedding;

-- name: embed_again
-- The next run looks at the strings of these sources; only those without a vector in the cache are given to the model.
DELETE FROM stage_state WHERE source_id = ANY(%(source_ids)s::uuid[]) AND stage IN ('embeddings', 'corpus');

-- name: name_active_indexes
-- What corpus_state names is active, and nothing else.
WITH embedding AS (
    UPDATE embedding_indexes AS i SET state = CASE WHEN i.embedding_index_id = c.active_embedding_index THEN 'active' ELSE 'retired' END
      FROM corpus_state AS c WHERE (i.state = 'active') <> (i.embedding_index_id IS NOT DISTINCT FROM c.active_embedding_index)
)
UPDATE sparse_indexes AS i SET state = CASE WHEN i.sparse_index_id = c.active_sparse_index THEN 'active' ELSE 'retired' END
  FROM corpus_state AS c WHERE (i.state = 'active') <> (i.sparse_index_id IS NOT DISTINCT FROM c.active_sparse_index);

-- name: raise_original_index
UPDATE original_index_counter SET next = greatest(next, (SELECT coalesce(max(original_index) + 1, 0) FROM chunks));

-- name: tell_status
-- The status that follows from what is there.
UPDATE sources AS s
   SET status = CASE WHEN EXISTS (SELECT FROM attempts AS a WHERE a.source_id = s.source_id AND a.finished_at IS NULL) THEN 'processing'
                     WHEN s.error_code IS NOT NULL THEN 'failed'
                     WHEN EXISTS (SELECT FROM documents AS d WHERE d.source_id = s.source_id) THEN 'ready'
                     ELSE 'pending' END,
       stage = CASE WHEN EXISTS (SELECT FROM attempts AS a WHERE a.source_id = s.source_id AND a.finished_at IS NULL) THEN s.stage END,
       updated_at = %(now)s
 WHERE s.source_id = ANY(%(source_ids)s::uuid[]);

-- name: read_again
-- The recorded stat vouches for nothing: the next run reads the bytes.
UPDATE sources SET hashed_size = NULL, hashed_mtime_ns = NULL, hashed_inode = NULL, hashed_device = NULL
 WHERE source_id = ANY(%(source_ids)s::uuid[]);

-- name: forget_missing_objects
DELETE FROM stage_results WHERE object = ANY(%(objects)s);
