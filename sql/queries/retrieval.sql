-- name: in_scope
-- Condition on documents d and workspaces w: NULL restricts nothing, an empty array matches nothing; a folder stands for its subtree,
-- compared as plain text up to a slash; what is being deleted, a few sources at most, is in no scope.
NOT EXISTS (SELECT FROM sources AS s WHERE s.source_id = d.source_id AND s.deletion_intent IS NOT NULL)
AND (%(workspaces)s::text[] IS NULL OR w.key = ANY (%(workspaces)s::text[]))
AND (%(folders)s::text[] IS NULL
     OR EXISTS (SELECT FROM unnest(%(folders)s::text[]) AS folder WHERE starts_with(d.source_path, folder || '/')))
AND (%(documents)s::text[] IS NULL OR d.doc_id = ANY (%(documents)s::text[]) OR d.source_id::text = ANY (%(documents)s::text[]))
AND (%(file_types)s::text[] IS NULL OR d.file_type = ANY (%(file_types)s::text[]))
AND (%(document_types)s::text[] IS NULL OR d.document_type = ANY (%(document_types)s::text[]))
AND (%(languages)s::text[] IS NULL OR d.language = ANY (%(languages)s::text[]))
AND (%(modified_from)s::timestamptz IS NULL OR d.file_modified_at >= %(modified_from)s::timestamptz)
AND (%(modified_before)s::timestamptz IS NULL OR d.file_modified_at < %(modified_before)s::timestamptz)
AND (%(ingested_from)s::timestamptz IS NULL OR d.ingested_at >= %(ingested_from)s::timestamptz)
AND (%(ingested_before)s::timestamptz IS NULL OR d.ingested_at < %(ingested_before)s::timestamptz)

-- name: passage_in_scope
-- Condition on chunks c, for the parts of a scope that narrow down within a document.
(%(first_pages)s::integer[] IS NULL
 OR EXISTS (SELECT FROM unnest(%(first_pages)s::integer[], %(last_pages)s::integer[]) AS wanted (first, last)
             WHERE c.page_start <= wanted.last AND c.page_end >= wanted.first))
AND (%(sections)s::text[] IS NULL OR c.section_path && %(sections)s::text[])

-- name: only_passages
-- Join that narrows vectors v down to passages in scope; left out where the scope takes whole documents.
JOIN chunks AS c ON c.publication_id = v.publication_id AND c.chunk_index = v.chunk_index AND {passage_in_scope}

-- name: count_in_scope
-- Live chunks in scope, from the counts that each document carries.
SELECT coalesce(sum(d.n_chunks), 0)::bigint
  FROM documents AS d
  JOIN workspaces AS w ON w.workspace_id = d.workspace_id
 WHERE {in_scope};

-- name: count_passages_in_scope
-- Live chunks in a scope that narrows down within documents, by looking at them; counted up to a bound, since more need not be told apart.
SELECT count(*)
  FROM (SELECT
          FROM documents AS d
          JOIN workspaces AS w ON w.workspace_id = d.workspace_id
          JOIN chunks AS c ON c.publication_id = d.publication_id
         WHERE {in_scope} AND {passage_in_scope}
         LIMIT %(bound)s) AS counted;

-- name: nearest_exactly
-- The chunks in scope nearest to the vector, by looking at all of them; MATERIALIZED keeps the planner off the HNSW index.
-- A vector of zeros has no direction: its distance is NaN and it is near to nothing.
WITH scoped AS MATERIALIZED (
    SELECT v.publication_id, v.chunk_index, v.embedding <=> %(vector)s AS distance
      FROM {vectors} AS v
      JOIN documents AS d ON d.publication_id = v.publication_id
      JOIN workspaces AS w ON w.workspace_id = d.workspace_id
      {only_passages}
     WHERE {in_scope}
)
SELECT c.chunk_id, c.publication_id, 1 - scoped.distance AS score
  FROM scoped
  JOIN chunks AS c ON c.publication_id = scoped.publication_id AND c.chunk_index = scoped.chunk_index
 WHERE scoped.distance <> 'NaN'
 ORDER BY scoped.distance, c.chunk_id
 LIMIT %(depth)s;

-- name: nearest_by_hnsw
-- The chunks in scope nearest to the vector, through the HNSW index where the planner finds it cheaper than sorting.
SELECT c.chunk_id, c.publication_id, 1 - nearest.distance AS score
  FROM (SELECT v.publication_id, v.chunk_index, v.embedding <=> %(vector)s AS distance
          FROM {vectors} AS v
          JOIN documents AS d ON d.publication_id = v.publication_id
          JOIN workspaces AS w ON w.workspace_id = d.workspace_id
          {only_passages}
         WHERE {in_scope}
         ORDER BY v.embedding <=> %(vector)s
         LIMIT %(depth)s) AS nearest
  JOIN chunks AS c ON c.publication_id = nearest.publication_id AND c.chunk_index = nearest.chunk_index
 WHERE nearest.distance <> 'NaN'
 ORDER BY nearest.distance, c.chunk_id;

-- name: live_entries
-- Which entries of a keyword index, given in its order, are rows of this snapshot and in scope; the others are left out.
SELECT c.chunk_id, c.publication_id, entry.score
  FROM unnest(%(chunk_ids)s::text[], %(publication_ids)s::bigint[], %(scores)s::float8[])
       WITH ORDINALITY AS entry (chunk_id, publication_id, score, place)
  JOIN chunks AS c ON c.chunk_id = entry.chunk_id AND c.publication_id = entry.publication_id
  JOIN documents AS d ON d.publication_id = c.publication_id
  JOIN workspaces AS w ON w.workspace_id = d.workspace_id
 WHERE {in_scope} AND {passage_in_scope}
 ORDER BY entry.place;

-- name: has_entries
-- Whether live publications have entries in this keyword index, as its writers recorded.
SELECT EXISTS (SELECT FROM sparse_coverage AS c
                 JOIN publications AS p ON p.publication_id = c.publication_id
                WHERE c.sparse_index_id = %(sparse_index_id)s AND c.n_entries > 0 AND p.state = 'live');

-- name: matching_text
-- The chunks in scope that share a stem with the query, best first: what answers while the keyword index is away.
-- Each lexeme is quoted, so nothing in the query is an operator, unless operators are asked for.
WITH asked AS (
    SELECT CASE WHEN %(operators)s THEN websearch_to_tsquery('english', %(query)s)
                ELSE string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery END AS words
      FROM unnest(to_tsvector('english', %(query)s))
)
SELECT c.chunk_id, c.publication_id, ts_rank(c.content_tsv, asked.words, 1)::float8 AS score
  FROM asked
  JOIN chunks AS c ON c.content_tsv @@ asked.words
  JOIN documents AS d ON d.publication_id = c.publication_id
  JOIN workspaces AS w ON w.workspace_id = d.workspace_id
 WHERE {in_scope} AND {passage_in_scope} AND ts_rank(c.content_tsv, asked.words, 1) > 0
 ORDER BY score DESC, c.chunk_id
 LIMIT %(depth)s;

-- name: hydrate
-- Everything an answer shows of its chunks, in the order given, and what shaping them to passages needs.
SELECT c.chunk_id, c.doc_id, d.source_id::text AS source_id, c.publication_id, d.source_path, w.key AS workspace, d.title, d.file_type,
       c.content, c.context, c.char_start, c.char_end, c.start_line, c.end_line, c.page_start, c.page_end, c.section_path,
       c.chunk_type, c.n_tokens, coalesce(c.metadata ->> 'extraction', d.extraction) AS extraction, c.chunk_index, c.text_hash
  FROM unnest(%(chunk_ids)s::text[], %(publication_ids)s::bigint[]) WITH ORDINALITY AS wanted (chunk_id, publication_id, place)
  JOIN chunks AS c ON c.chunk_id = wanted.chunk_id AND c.publication_id = wanted.publication_id
  JOIN documents AS d ON d.publication_id = c.publication_id
  JOIN workspaces AS w ON w.workspace_id = d.workspace_id
 ORDER BY wanted.place;

-- name: texts_between
-- Stretches of documents' texts, in the order given; offsets from 0, ends exclusive.
SELECT substr(d.text, wanted.first + 1, wanted.last - wanted.first)
  FROM unnest(%(publication_ids)s::bigint[], %(starts)s::integer[], %(ends)s::integer[])
       WITH ORDINALITY AS wanted (publication_id, first, last, place)
  JOIN documents AS d ON d.publication_id = wanted.publication_id
 ORDER BY wanted.place;

-- name: copies
-- The first places in scope at which each text stands, by path and position.
SELECT place.text_hash, place.chunk_id, place.doc_id, place.source_id, place.source_path, place.char_start, place.char_end,
       place.page_start, place.page_end
  FROM unnest(%(text_hashes)s::text[]) AS wanted (text_hash)
 CROSS JOIN LATERAL (
       SELECT c.text_hash, c.chunk_id, c.doc_id, d.source_id::text AS source_id, d.source_path, c.char_start, c.char_end, c.page_start,
              c.page_end, c.chunk_index
         FROM chunks AS c
         JOIN documents AS d ON d.publication_id = c.publication_id
         JOIN workspaces AS w ON w.workspace_id = d.workspace_id
        WHERE c.text_hash = wanted.text_hash AND {in_scope} AND {passage_in_scope}
        ORDER BY d.source_path, c.chunk_index
        LIMIT %(listed)s) AS place
 ORDER BY place.source_path, place.chunk_index;

-- name: vectors_of
-- The vectors of chunks, with their place in the order given, from 1.
SELECT wanted.place, v.embedding
  FROM unnest(%(publication_ids)s::bigint[], %(chunk_indexes)s::integer[]) WITH ORDINALITY AS wanted (publication_id, chunk_index, place)
  JOIN {vectors} AS v ON v.publication_id = wanted.publication_id AND v.chunk_index = wanted.chunk_index;

-- name: read_text
-- The live text of a source.
SELECT doc_id, text FROM documents WHERE source_id = %(source_id)s;

-- name: read_chunks
-- The live chunks of a source, in the order of the text.
SELECT c.chunk_id, c.chunk_index, c.publication_id, c.content, c.context, c.contextualized_content, c.char_start, c.char_end, c.start_line,
       c.end_line, c.page_start, c.page_end, c.section_path, c.chunk_type, c.n_tokens, c.text_hash,
       coalesce(c.metadata ->> 'extraction', d.extraction) AS extraction
  FROM documents AS d
  JOIN chunks AS c ON c.publication_id = d.publication_id
 WHERE d.source_id = %(source_id)s
 ORDER BY c.chunk_index;
