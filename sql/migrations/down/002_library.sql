DROP TABLE IF EXISTS stage_state, attempts, sources, scans, folders, workspaces;
