DROP TABLE IF EXISTS stage_state, attempts, retired_partitions, sources, scans, folders, workspaces;
