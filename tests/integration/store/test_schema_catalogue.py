"""Rules of the schema, read from PostgreSQL's own catalogue after all migrations: what breaks one was added without a thought."""

import re

import pytest

from stemma.store.postgres import connect

TABLES = {
    "app_settings", "attempts", "chunks", "citations", "context_cache", "conversation_groups", "conversations", "corpus_state",
    "document_assets", "documents", "embedding_cache", "embedding_indexes", "figures", "folders", "message_sources", "messages",
    "original_index_counter", "publications", "retired_partitions", "run_settings", "scans", "schema_migrations", "source_roots", "sources",
    "sparse_coverage", "sparse_indexes", "stage_results", "stage_state", "workspaces",
}  # fmt: skip
"""All there may be. Users, memberships, tokens, connectors and replication are left out on purpose."""

JSONB = {
    "chunks.metadata", "conversations.source_scope", "documents.document_metadata", "embedding_indexes.spec", "message_sources.trace",
    "messages.content_parts", "messages.graph_evidence", "messages.latency_ms", "run_settings.fingerprints", "run_settings.settings",
    "scans.skipped", "scans.unlistable",
}  # fmt: skip
"""Documents' and chunks' metadata, frozen specs and settings, lists of paths with a reason, what was shown: nothing that is queried by itself."""

NULLABLE = {
    "conversations.source_scope": "the whole library, which is not the empty scope",
    "messages.graph_evidence": "no graph answered, which is not an empty answer",
    "messages.latency_ms": "not measured: questions and imported answers",
}

WITHOUT_DEFAULT = {
    "chunks.metadata": "the whole validated record of the chunk: an empty one would be a lie",
    "embedding_indexes.spec": "a frozen spec has no default",
    "message_sources.trace": "evidence without a snapshot would show nothing",
    "run_settings.fingerprints": "what the run froze",
    "run_settings.settings": "what the run froze",
}

FOREIGN_KEYS = {
    "attempts_source_fk": ("attempts", "sources", "CASCADE"),
    "chunks_document_fk": ("chunks", "documents", "CASCADE"),
    "citations_message_fk": ("citations", "messages", "CASCADE"),
    "conversations_group_fk": ("conversations", "conversation_groups", "SET NULL"),
    "conversations_workspace_fk": ("conversations", "workspaces", "CASCADE"),
    "corpus_state_embedding_index_fk": ("corpus_state", "embedding_indexes", "RESTRICT"),
    "corpus_state_sparse_index_fk": ("corpus_state", "sparse_indexes", "RESTRICT"),
    "document_assets_document_fk": ("document_assets", "documents", "CASCADE"),
    "documents_publication_fk": ("documents", "publications", "CASCADE"),
    "documents_source_fk": ("documents", "sources", "CASCADE"),
    "documents_workspace_fk": ("documents", "workspaces", "CASCADE"),
    "folders_parent_fk": ("folders", "folders", "CASCADE"),
    "folders_workspace_fk": ("folders", "workspaces", "CASCADE"),
    "message_sources_message_fk": ("message_sources", "messages", "CASCADE"),
    "messages_conversation_fk": ("messages", "conversations", "CASCADE"),
    "source_roots_workspace_fk": ("source_roots", "workspaces", "CASCADE"),
    "sources_container_fk": ("sources", "sources", "NO ACTION"),
    "sources_file_fk": ("sources", "sources", "NO ACTION"),
    "sources_folder_fk": ("sources", "folders", "SET NULL"),
    "sources_workspace_fk": ("sources", "workspaces", "CASCADE"),
    "sparse_coverage_publication_fk": ("sparse_coverage", "publications", "CASCADE"),
    "sparse_coverage_sparse_index_fk": ("sparse_coverage", "sparse_indexes", "CASCADE"),
    "stage_state_source_fk": ("stage_state", "sources", "CASCADE"),
}

_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}
_GENERATED = re.compile(r"_(pkey|key\d*|fkey\d*|check\d*|idx\d+|excl\d*|not_null\d*)$")
_SUFFIX = {"p": ("_pk",), "f": ("_fk",), "u": ("_uq",), "c": ("_ck",)}


@pytest.fixture
def catalogue(database_url):
    with connect(database_url) as connection:
        yield connection


def columns(catalogue, condition: str) -> dict[str, tuple[bool, bool]]:
    """`table.column` -> (NOT NULL, has a default) of the columns whose pg_attribute row meets the condition."""
    rows = catalogue.execute(
        "SELECT c.relname || '.' || a.attname, a.attnotnull, a.atthasdef FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped AND " + condition
    ).fetchall()
    return {name: (not_null, default) for name, not_null, default in rows}


def test_the_tables_are_those_of_the_list(catalogue):
    rows = catalogue.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p')"
    ).fetchall()
    assert {name for (name,) in rows} == TABLES


def test_json_is_kept_only_where_the_list_says(catalogue):
    assert columns(catalogue, "a.atttypid IN ('json'::regtype, 'jsonb'::regtype)").keys() == JSONB


def test_jsonb_and_array_columns_are_never_null_and_have_a_default(catalogue):
    found = columns(catalogue, "(a.atttypid = 'jsonb'::regtype OR a.attndims > 0)")
    assert {name for name, (not_null, _) in found.items() if not not_null} == NULLABLE.keys()
    assert {name for name, (_, default) in found.items() if not default} == WITHOUT_DEFAULT.keys() | NULLABLE.keys()


def test_timestamps_know_their_zone(catalogue):
    assert columns(catalogue, "a.atttypid IN ('timestamp'::regtype, 'date'::regtype, 'time'::regtype)") == {}


def test_no_constraint_has_a_name_that_postgres_made_up(catalogue):
    rows = catalogue.execute(
        "SELECT conname, contype FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conrelid <> 0 AND contype IN ('p','f','u','c')"
    ).fetchall()
    assert [name for name, kind in rows if _GENERATED.search(name) or not name.endswith(_SUFFIX[kind])] == []


def test_every_index_is_named_after_its_table_and_kind(catalogue):
    rows = catalogue.execute("SELECT tablename, indexname FROM pg_indexes WHERE schemaname = 'public'").fetchall()
    assert [
        name for table, name in rows if not name.startswith(f"{table}_") or not name.endswith(("_pk", "_uq", "_uidx", "_idx"))
    ] == []  # fmt: skip


def test_every_table_has_a_primary_key(catalogue):
    rows = catalogue.execute(
        "SELECT conrelid::regclass::text FROM pg_constraint WHERE contype = 'p' AND connamespace = 'public'::regnamespace"
    )
    assert {table for (table,) in rows} == TABLES


def test_foreign_keys_do_on_delete_what_the_list_says(catalogue):
    rows = catalogue.execute(
        "SELECT conname, conrelid::regclass::text, confrelid::regclass::text, confdeltype FROM pg_constraint"
        " WHERE contype = 'f' AND connamespace = 'public'::regnamespace"
    ).fetchall()
    assert {name: (table, referenced, _ACTIONS[action]) for name, table, referenced, action in rows} == FOREIGN_KEYS


def test_no_foreign_key_joins_history_and_corpus(catalogue):
    """A workspace owns both; of the corpus itself nothing may take history along, nor be held by it."""
    history = {"citations", "conversation_groups", "conversations", "message_sources", "messages"}
    crossing = {name for name, (table, referenced, _) in FOREIGN_KEYS.items() if (table in history) != (referenced in history)}
    assert crossing == {"conversations_workspace_fk"}


def test_every_cascade_finds_its_rows_by_an_index(catalogue):
    """An index that begins with the referencing columns and covers every row: a partial one does not serve a cascade."""
    rows = catalogue.execute(
        """
        SELECT conname FROM pg_constraint AS f
         WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND confdeltype IN ('c', 'n')
           AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = f.conrelid AND i.indpred IS NULL
                              AND (i.indkey::int2[])[0:cardinality(f.conkey) - 1] @> f.conkey)
        """
    ).fetchall()
    assert [name for (name,) in rows] == []


ENUM_CHECK = re.compile(r"\(\((\w+) = ANY \(ARRAY\[('[^\]]*)\]\)\)\)")


def enum_columns(catalogue) -> list[tuple[str, str, str]]:
    """(table, column, constraint) of every CHECK that lists the values of one text column."""
    rows = catalogue.execute(
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE contype = 'c' AND connamespace = 'public'::regnamespace ORDER BY 1, 2"
    ).fetchall()
    return [(table, found[1], name) for table, name, definition in rows if (found := ENUM_CHECK.search(definition))]


def test_the_columns_with_a_closed_set_of_values_are_known(catalogue):
    assert {f"{table}.{column}" for table, column, _ in enum_columns(catalogue)} == {
        "attempts.stage", "attempts.state", "chunks.chunk_type", "document_assets.kind", "documents.document_type", "documents.extraction",
        "embedding_indexes.state", "folders.role", "folders.state", "folders.trash_kind", "messages.role", "messages.target_corpus", "publications.state",
        "scans.state", "source_roots.kind", "source_roots.state",
        "sources.deletion_intent", "sources.deletion_step", "sources.kind", "sources.presence", "sources.stage", "sources.status",
        "sources.wanted_stage", "sparse_indexes.backend", "sparse_indexes.state", "stage_results.stage", "stage_state.stage",
    }  # fmt: skip


def test_every_closed_set_refuses_an_unknown_value(catalogue):
    """Each CHECK is put, alone, on a copy of its column, so that no other constraint can do its work for it."""
    for table, column, name in enum_columns(catalogue):
        catalogue.execute(f'CREATE TEMP TABLE probe AS SELECT "{column}" FROM "{table}" WHERE false')
        definition = catalogue.execute("SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %s", [name]).fetchone()[0]
        catalogue.execute(f"ALTER TABLE probe ADD CONSTRAINT probe_ck {definition}")
        with pytest.raises(Exception, match="probe_ck"), catalogue.transaction():
            catalogue.execute("INSERT INTO probe VALUES ('no such value')")
        catalogue.execute("DROP TABLE probe")


def test_every_workspace_has_one_managed_root_whoever_makes_it(catalogue):
    catalogue.execute("INSERT INTO workspaces (key, name) VALUES ('default', 'Mine'), ('handbook', 'Handbook')")
    rooted = (
        "SELECT w.key, r.disk_path FROM workspaces AS w JOIN source_roots AS r USING (workspace_id) WHERE r.kind = 'managed' ORDER BY w.key"
    )
    assert catalogue.execute(rooted).fetchall() == [("default", ""), ("handbook", "handbook")]
    with pytest.raises(Exception, match="source_roots_one_managed_uq"), catalogue.transaction():
        catalogue.execute(
            "INSERT INTO source_roots (workspace_id, kind, name, name_key, disk_path)"
            " SELECT workspace_id, 'managed', 'Other', 'other', 'x' FROM workspaces WHERE key = 'handbook'"
        )
    catalogue.execute("DELETE FROM workspaces")
    assert catalogue.execute(rooted).fetchall() == []
