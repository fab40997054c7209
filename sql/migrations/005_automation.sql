-- Who is to blame when a run's process ends: the supervisor and the PostgreSQL server under which a run took its batch. An end that came with
-- the end of one of these says nothing of the documents.
ALTER TABLE attempts ADD COLUMN IF NOT EXISTS bound_under text;

-- A failed attempt as a sentence, the same in the UI, on the page and in the shell.
CREATE OR REPLACE FUNCTION failure_sentence(attempt_number integer, stage text, code text, started_at timestamptz, finished_at timestamptz)
    RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN coalesce((ARRAY['first', 'second', 'third', 'fourth', 'fifth', 'sixth', 'seventh', 'eighth', 'ninth', 'tenth'])[attempt_number] || ' attempt',
                    'attempt ' || attempt_number)
        || ' failed at stage ' || stage || ' with ' || code
        || ' after ' || round(extract(epoch FROM finished_at - started_at), 1) || ' s';
