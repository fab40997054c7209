"""The row models and the migrated catalogue say the same; a field added to one of them alone is found."""

import re
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest

from stemma.store.postgres import Connection, connect
from stemma.store.rows import ROWS, Row

_PYTHON = {
    "int2": "int", "int4": "int", "int8": "int", "text": "str", "uuid": "UUID", "timestamptz": "datetime", "jsonb": "json", "bytea": "bytes",
    "float4": "float", "numeric": "Decimal", "bool": "bool", "_int4": "list[int]", "_text": "list[str]", "_uuid": "list[uuid.UUID]", "vector": "list[float]",
    "tsvector": "str",
}  # fmt: skip
_LISTED = re.compile(r"\(\((\w+) = ANY \(ARRAY\[('[^\]]*)\]\)\)\)")

Column = tuple[str, bool, frozenset[str]]
"""Python type, whether it may be NULL, and its closed set of values (empty: any)."""


def columns_of_catalogue(connection: Connection) -> dict[str, dict[str, Column]]:
    closed: dict[tuple[str, str], frozenset[str]] = {}
    checks = "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c'"
    for table, definition in connection.execute(checks).fetchall():
        if found := _LISTED.search(definition):
            closed[table, found[1]] = frozenset(re.findall(r"'([^']*)'::text", found[2]))
    found_columns: dict[str, dict[str, Column]] = {}
    rows = connection.execute(
        "SELECT c.relname, a.attname, t.typname, NOT a.attnotnull FROM pg_attribute AS a"
        " JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_type AS t ON t.oid = a.atttypid"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum"
    ).fetchall()
    for table, column, kind, nullable in rows:
        found_columns.setdefault(table, {})[column] = (_PYTHON[kind], nullable, closed.get((table, column), frozenset()))
    return found_columns


def columns_of_model(model: type[Row]) -> dict[str, Column]:
    return {name: _column(field.annotation) for name, field in model.model_fields.items()}


def _column(annotation: Any) -> Column:
    parts = [annotation]
    if get_origin(annotation) in (Union, UnionType):
        parts = list(get_args(annotation))
    nullable = NoneType in parts
    (kind, *others) = [part for part in parts if part is not NoneType]
    if get_origin(kind) is Literal:
        return "str", nullable, frozenset(get_args(kind))
    if others:  # Json: an object or an array
        return "json", nullable, frozenset()
    return kind.__name__ if get_origin(kind) is None else str(kind), nullable, frozenset()


def drift(connection: Connection, models: dict[str, type[Row]]) -> list[str]:
    """What models and catalogue disagree about, one line each."""
    tables = columns_of_catalogue(connection)
    found = [f"{table}: only in one of both" for table in sorted(tables.keys() ^ models.keys())]
    for table in sorted(tables.keys() & models.keys()):
        model, catalogue = columns_of_model(models[table]), tables[table]
        found += [
            f"{table}.{column}: model {model.get(column)}, catalogue {catalogue.get(column)}"
            for column in {**catalogue, **model}
            if model.get(column) != catalogue.get(column)
        ]
        if list(model) != list(catalogue) and model.keys() == catalogue.keys():
            found.append(f"{table}: another order of columns")
    return found


@pytest.fixture
def connection(database_url):
    with connect(database_url) as opened:
        yield opened


def test_models_and_catalogue_agree(connection):
    assert drift(connection, ROWS) == []


def test_a_field_without_a_migration_is_found(connection):
    class Source(ROWS["sources"]):
        colour: str

    assert drift(connection, ROWS | {"sources": Source}) == ["sources.colour: model ('str', False, frozenset()), catalogue None"]


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE scans ADD COLUMN planted text",
        "ALTER TABLE scans DROP COLUMN n_new",
        "ALTER TABLE scans ALTER COLUMN n_new TYPE text",
        "ALTER TABLE scans ALTER COLUMN n_new DROP NOT NULL",
        "ALTER TABLE scans DROP CONSTRAINT scans_state_ck",
        "CREATE TABLE planted (planted_id integer)",
    ],
)
def test_a_migration_without_a_field_is_found(connection, change):
    connection.execute(change)
    assert len(drift(connection, ROWS)) == 1
