-- name: end_waits
-- A wait that would end in what is now the future is over.
UPDATE sources SET retry_at = %(now)s WHERE retry_at > %(now)s;

-- name: begin_graces
-- A grace that began in what is now the future begins now: nothing is removed early.
UPDATE sources SET missing_since = %(now)s WHERE missing_since > %(now)s;

-- name: read_again
-- What was read then is read again: whether someone has asked for that since cannot be told any more.
UPDATE sources SET hashed_at = 'epoch' WHERE hashed_at > %(now)s;

-- name: begin_open_attempts
-- A wish of the last minutes came after the run began.
UPDATE attempts SET started_at = %(now)s - interval '10 minutes' WHERE finished_at IS NULL AND started_at > %(now)s;

-- name: end_publications
UPDATE publications SET superseded_at = %(now)s WHERE state IN ('superseded', 'abandoned') AND superseded_at > %(now)s;

-- name: retire_partitions
UPDATE retired_partitions SET retired_at = %(now)s WHERE retired_at > %(now)s;

-- name: retire_embedding_indexes
UPDATE embedding_indexes SET retired_at = %(now)s WHERE retired_at > %(now)s;

-- name: retire_sparse_indexes
UPDATE sparse_indexes SET retired_at = %(now)s WHERE retired_at > %(now)s;

-- name: use_results
UPDATE stage_results SET last_used_at = %(now)s WHERE last_used_at > %(now)s;

-- name: use_vectors
UPDATE embedding_cache SET last_used_at = %(now)s WHERE last_used_at > %(now)s;
