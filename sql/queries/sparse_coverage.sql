-- name: covered_publications
-- Those of the publications that have their entries in this keyword index.
SELECT publication_id FROM sparse_coverage WHERE sparse_index_id = %(sparse_index_id)s AND publication_id = ANY(%(publication_ids)s);

-- name: record_coverage
-- The entries of these publications are committed.
INSERT INTO sparse_coverage (publication_id, sparse_index_id, n_entries)
SELECT c.publication_id, %(sparse_index_id)s, c.n_entries
  FROM unnest(%(publication_ids)s::bigint[], %(n_entries)s::integer[]) AS c (publication_id, n_entries)
 ORDER BY c.publication_id
    ON CONFLICT DO NOTHING;

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
