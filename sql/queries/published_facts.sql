-- name: published_by
-- The live documents among these partitions, by partition key; NULL: all.
SELECT s.partition_key, d.publication_id
  FROM documents AS d JOIN sources AS s ON s.source_id = d.source_id
 WHERE %(partitions)s::text[] IS NULL OR s.partition_key = ANY (%(partitions)s::text[])
 ORDER BY s.partition_key;

-- name: texts
-- The texts of publications, with what is said of them.
SELECT s.partition_key, d.publication_id, d.doc_id, d.text, d.n_chars, d.n_chunks, d.warning_code
  FROM documents AS d JOIN sources AS s ON s.source_id = d.source_id
 WHERE d.publication_id = ANY (%(publication_ids)s::bigint[])
 ORDER BY s.partition_key;

-- name: chunk_texts
-- The chunks of publications as they are searched, in the order of the text.
SELECT publication_id, chunk_index, char_start, char_end, content, context, contextualized_content, n_tokens,
       metadata ->> 'chunking_strategy' AS strategy, (metadata ->> 'chunk_size')::integer AS size
  FROM chunks
 WHERE publication_id = ANY (%(publication_ids)s::bigint[])
 ORDER BY publication_id, chunk_index;

-- name: vectors
-- One row per chunk with what is known of its vector in an index; null where it has none.
SELECT s.partition_key, c.chunk_index, vector_dims(v.embedding) AS dimension, vector_norm(v.embedding)::float8 AS norm
  FROM chunks AS c
  JOIN documents AS d ON d.publication_id = c.publication_id
  JOIN sources AS s ON s.source_id = d.source_id
  LEFT JOIN {vectors} AS v ON v.publication_id = c.publication_id AND v.chunk_index = c.chunk_index
 WHERE c.publication_id = ANY (%(publication_ids)s::bigint[])
 ORDER BY s.partition_key, c.chunk_index;

-- name: coverage
-- One row per publication with the keyword entries that the index in use was recorded to hold.
SELECT s.partition_key, d.publication_id, d.n_chunks, coalesce(c.n_entries, 0) AS n_recorded
  FROM documents AS d
  JOIN sources AS s ON s.source_id = d.source_id
 CROSS JOIN corpus_state AS state
  LEFT JOIN sparse_coverage AS c ON c.publication_id = d.publication_id AND c.sparse_index_id = state.active_sparse_index
 WHERE d.publication_id = ANY (%(publication_ids)s::bigint[])
 ORDER BY s.partition_key;

-- name: publications
-- One row per live document with what ties it to its source, its publication and its chunks.
SELECT s.partition_key, d.doc_id, d.n_chunks, p.state, d.source_path = s.source_path AS same_path,
       d.document_type <> 'FILE'
           OR left(encode(sha256(convert_to(d.source_path || ':' || d.content_hash, 'UTF8')), 'hex'), 16) = d.doc_id AS named_by_its_bytes,
       (SELECT count(*) FROM chunks AS c WHERE c.publication_id = d.publication_id) AS n_stored
  FROM documents AS d
  JOIN sources AS s ON s.source_id = d.source_id
  JOIN publications AS p ON p.publication_id = d.publication_id
 WHERE d.publication_id = ANY (%(publication_ids)s::bigint[])
 ORDER BY s.partition_key;

-- name: orphans
-- What is live without a document, and who says to be ready without one that is live.
SELECT p.source_path AS partition_key, 'a live publication without a document' AS orphan
  FROM publications AS p
 WHERE p.state = 'live' AND NOT EXISTS (SELECT FROM documents AS d WHERE d.publication_id = p.publication_id)
UNION ALL
SELECT s.partition_key, 'a ready source without a live document'
  FROM sources AS s
 WHERE s.status = 'ready' AND s.deletion_intent IS NULL AND NOT EXISTS (SELECT FROM documents AS d WHERE d.source_id = s.source_id)
 ORDER BY 1, 2;

-- name: statuses
-- Every source that is not being deleted, with its status.
SELECT partition_key, status, error_code FROM sources WHERE deletion_intent IS NULL ORDER BY partition_key;
