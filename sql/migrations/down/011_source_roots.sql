-- The roots go; every workspace still lies where its key says.
DROP TRIGGER IF EXISTS workspaces_managed_root ON workspaces;
DROP FUNCTION IF EXISTS make_managed_root();
DROP TABLE IF EXISTS source_roots;
