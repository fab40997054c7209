-- name: prune_checks
-- In Dagster's database: results of these runs' checks that a later one of the same check and partition has replaced, or whose partition left the set.
DELETE FROM asset_check_executions AS c
 WHERE c.run_id = ANY(%(run_ids)s)
   AND (EXISTS (SELECT FROM asset_check_executions AS n
                 WHERE n.asset_key = c.asset_key AND n.check_name = c.check_name AND n.partition IS NOT DISTINCT FROM c.partition AND n.id > c.id)
        OR c.partition IS NOT NULL
           AND NOT EXISTS (SELECT FROM dynamic_partitions AS p WHERE p.partitions_def_name = %(partitions)s AND p.partition = c.partition));

-- name: prune_events
-- In Dagster's database: events of these runs ('': of no run, before the given time), with their tags, that say nothing of the present.
-- The present is, per asset and partition of the set, the last materialization and observation, a plan that nothing came of yet, what a last
-- materialization says it was made from (staleness compares against that very event), and what the last result of a check stands on.
WITH latest AS (
    SELECT e.asset_key, e.partition,
           max(e.id) FILTER (WHERE e.dagster_event_type = 'ASSET_MATERIALIZATION') AS materialized,
           max(e.id) FILTER (WHERE e.dagster_event_type = 'ASSET_OBSERVATION') AS observed,
           max(e.id) FILTER (WHERE e.dagster_event_type = 'ASSET_MATERIALIZATION_PLANNED') AS planned
      FROM event_logs AS e
     WHERE e.asset_key IS NOT NULL
       AND (e.partition IS NULL OR e.partition IN (SELECT p.partition FROM dynamic_partitions AS p WHERE p.partitions_def_name = %(partitions)s))
     GROUP BY e.asset_key, e.partition
), present AS (
    SELECT materialized AS id FROM latest
     UNION SELECT observed FROM latest
     UNION SELECT planned FROM latest WHERE materialized IS NULL OR planned > materialized
     UNION SELECT tag.value::bigint
             FROM latest JOIN event_logs AS m ON m.id = latest.materialized,
                  json_each_text(m.event::json #> '{dagster_event,event_specific_data,materialization,tags}') AS tag
            WHERE starts_with(tag.key, 'dagster/input_event_pointer/') AND tag.value <> 'NULL'
     UNION SELECT c.evaluation_event_storage_id FROM asset_check_executions AS c
), gone AS (
    DELETE FROM event_logs AS e
     WHERE e.run_id = ANY(%(run_ids)s) AND (e.run_id <> '' OR e.timestamp < %(before)s)
       AND NOT EXISTS (SELECT FROM present WHERE present.id = e.id)
    RETURNING e.id
), untagged AS (
    DELETE FROM asset_event_tags AS t USING gone WHERE t.event_id = gone.id
)
SELECT count(*) FROM gone;

-- name: runs_still_needed
-- In Dagster's database: those of the runs that something present comes from.
SELECT run_id FROM event_logs WHERE run_id = ANY(%(run_ids)s) UNION SELECT run_id FROM asset_check_executions WHERE run_id = ANY(%(run_ids)s);
