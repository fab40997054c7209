-- name: covered_publications
-- Those of the publications that have their entries in this keyword index.
SELECT publication_id FROM sparse_coverage WHERE sparse_index_id = %(sparse_index_id)s AND publication_id = ANY(%(publication_ids)s);

-- name: record_coverage
-- The entries of these publications are committed; an index that was dropped meanwhile is not spoken of again.
INSERT INTO sparse_coverage (publication_id, sparse_index_id, n_entries)
SELECT c.publication_id, i.sparse_index_id, c.n_entries
  FROM (SELECT sparse_index_id FROM sparse_indexes WHERE sparse_index_id = %(sparse_index_id)s FOR KEY SHARE) AS i
 CROSS JOIN unnest(%(publication_ids)s::bigint[], %(n_entries)s::integer[]) AS c (publication_id, n_entries)
 ORDER BY c.publication_id
    ON CONFLICT DO NOTHING;

-- name: n_uncovered
-- Live publications with chunks whose entries a keyword index does not hold.
SELECT count(*) FROM documents AS d
 WHERE d.n_chunks > 0
   AND NOT EXISTS (SELECT FROM sparse_coverage AS c WHERE c.publication_id = d.publication_id AND c.sparse_index_id = %(sparse_index_id)s);

-- name: uncovered_publications
-- The next of them, in the order of their numbers, with how many chunks each has.
SELECT d.publication_id, d.n_chunks FROM documents AS d
 WHERE d.n_chunks > 0 AND d.publication_id > %(after)s
   AND NOT EXISTS (SELECT FROM sparse_coverage AS c WHERE c.publication_id = d.publication_id AND c.sparse_index_id = %(sparse_index_id)s)
 ORDER BY d.publication_id
 LIMIT %(limit)s;

-- name: recorded_entries
-- publication -> entries, of what is live and is to stay, as the writers of a keyword index recorded it: a deletion takes them first.
SELECT c.publication_id, c.n_entries
  FROM sparse_coverage AS c
  JOIN documents AS d ON d.publication_id = c.publication_id
  JOIN sources AS s ON s.source_id = d.source_id
 WHERE c.sparse_index_id = %(sparse_index_id)s AND c.n_entries > 0 AND s.deletion_intent IS NULL;

-- name: entries_of
-- The entries of live publications: every field is a copy of a row.
SELECT c.chunk_id, c.publication_id, d.source_id::text, c.doc_id, c.original_index, w.key AS workspace, d.source_path, d.file_type,
       d.document_type, d.language, d.file_modified_at, d.ingested_at, c.page_start, c.page_end, c.section_path AS sections, c.content,
       c.contextualized_content
  FROM documents AS d
  JOIN chunks AS c ON c.publication_id = d.publication_id
  JOIN workspaces AS w ON w.workspace_id = d.workspace_id
 WHERE d.publication_id = ANY(%(publication_ids)s)
 ORDER BY c.publication_id, c.chunk_index;

-- name: note_entries
-- The keyword entries of documents that are live as their stages made them are now those of the index that searches read.
UPDATE stage_state AS b
   SET fingerprint = %(fingerprint)s, updated_at = %(now)s
  FROM documents AS d
  JOIN sparse_coverage AS c ON c.publication_id = d.publication_id AND c.sparse_index_id = %(sparse_index_id)s
  JOIN stage_state AS x ON x.source_id = d.source_id AND x.stage = 'contextualized_chunks'
 WHERE b.source_id = d.source_id AND b.stage = 'bm25_index' AND b.input_version = x.output_hash AND b.fingerprint <> %(fingerprint)s;

-- name: report_sparse_indexes
-- Every keyword index, the active one first, with how many of the published documents that have chunks it holds.
SELECT i.sparse_index_id, i.backend, i.name, i.state, i.incomplete_since,
       (SELECT count(*) FROM documents WHERE n_chunks > 0) AS n_documents,
       (SELECT count(*) FROM sparse_coverage AS c
          JOIN documents AS d ON d.publication_id = c.publication_id
         WHERE c.sparse_index_id = i.sparse_index_id AND d.n_chunks > 0) AS n_covered
  FROM sparse_indexes AS i
 ORDER BY i.state = 'retired', i.state <> 'active', i.sparse_index_id DESC;

-- name: retire_again
-- A run that was taken for dead wrote entries after its publications had been retired: they are swept like those of any abandoned one.
UPDATE publications SET state = 'abandoned', superseded_at = %(now)s WHERE publication_id = ANY(%(publication_ids)s) AND state = 'retired';

-- name: publications_to_retire
-- Superseded and abandoned publications whose keyword entries no query can still be reading.
SELECT publication_id FROM publications
 WHERE state IN ('superseded', 'abandoned') AND superseded_at <= %(before)s
 ORDER BY superseded_at, publication_id LIMIT %(limit)s;

-- name: mark_retired
UPDATE publications SET state = 'retired' WHERE publication_id = ANY(%(publication_ids)s) AND state IN ('superseded', 'abandoned');
