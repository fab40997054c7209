"""The plans of the two questions that every list of a library asks, over a populated table."""

import psycopg
import pytest

POPULATE = """
    INSERT INTO workspaces (key, name) SELECT 'w' || n, 'Workspace ' || n FROM generate_series(1, 40) AS n;
    INSERT INTO sources (workspace_id, source_path, partition_key, disk_path, status, error_code, created_at)
    SELECT workspace_id, key || '/' || n, key || '/' || n, convert_to(key || '/' || n, 'UTF8'),
           CASE WHEN n % 200 = 0 THEN 'processing' ELSE 'ready' END, NULL, now() - n * interval '1 minute'
      FROM workspaces, generate_series(1, 500) AS n;
"""


@pytest.mark.parametrize(
    ("question", "index"),
    [
        ("SELECT source_path FROM sources WHERE workspace_id = 7 ORDER BY created_at DESC LIMIT 20", "sources_workspace_created_idx"),
        ("SELECT source_path FROM sources WHERE workspace_id = 7 AND status = 'processing'", "sources_workspace_status_idx"),
    ],
)
def test_the_list_of_a_workspace_reads_its_index(database_url, question, index):
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(POPULATE)
        connection.execute("ANALYZE sources")
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {question}"))
    assert index in plan


def test_a_condition_that_is_no_outage_is_not_called_one(database_url):
    from stemma.store.postgres import StoreUnavailable, connect

    with pytest.raises(psycopg.Error) as caught, connect(database_url) as connection:
        connection.execute("SELECT to_tsvector('simple', string_agg(md5(n::text), ' ')) FROM generate_series(1, 60000) AS n")
    assert not isinstance(caught.value, StoreUnavailable)
