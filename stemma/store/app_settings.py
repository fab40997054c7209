"""Overrides of settings that outlive a restart, and Stemma's own notes, which share their table.

A row is `bare upper-case name -> value as the environment would hold it`. Keys that begin with an underscore are notes: never shown
as overrides and never taken from a user. Overrides win over the environment; the caller owns the transaction.
"""

import re
from collections.abc import Collection, Mapping

import structlog
from pydantic import ValidationError

from stemma.settings import ENV_PREFIX, SETTINGS, InvalidSetting, Settings, with_overrides
from stemma.store.postgres import Connection

_log = structlog.get_logger(__name__)
_ALIASES = {"CONTEXTUALIZE": "CONTEXTUALIZER"}
_NAME = re.compile(r"\b[A-Z][A-Z0-9_]+\b")


def canonical_name(name: str) -> str:
    """The bare upper-case name of a setting, whether it was written with the prefix, in lower case or by its old name."""
    bare = name.strip().upper().removeprefix(ENV_PREFIX)
    return _ALIASES.get(bare, bare)


def read_overrides(connection: Connection) -> dict[str, str]:
    """The stored overrides, sorted by name, as they are: they may no longer validate."""
    rows = connection.execute("SELECT key, value FROM app_settings WHERE NOT starts_with(key, '_') ORDER BY key").fetchall()
    return dict(rows)


def current_settings(connection: Connection, base: Settings) -> Settings:
    """`base` under the stored overrides. A row that no longer validates is skipped with an error log; the others hold."""
    return with_overrides(base, valid_overrides(base, read_overrides(connection)))


def valid_overrides(base: Settings, stored: Mapping[str, str]) -> dict[str, str]:
    """The stored rows that still hold together; each of the others is reported."""
    valid = dict(stored)
    for name in [name for name in valid if name not in SETTINGS or not SETTINGS[name].overridable]:
        del valid[name]
        _log.error("override skipped", setting=name, reason="no such setting, or one of the installation")
    while valid:
        try:
            with_overrides(base, valid)
        except InvalidSetting as refusal:
            for name in _culprits(refusal, valid):
                del valid[name]
                _log.error("override skipped", setting=name, reason=str(refusal))
        else:
            break
    return valid


def set_overrides(connection: Connection, base: Settings, given: Mapping[str, str]) -> Settings:
    """Store overrides and return the settings they give.

    Raises:
        InvalidSetting: the settings as a whole would not validate; nothing is stored.
    """
    with connection.transaction():
        # One writer at a time: two patches that are valid alone may not be valid together.
        connection.execute("LOCK TABLE app_settings IN SHARE ROW EXCLUSIVE MODE")
        patch = {canonical_name(name): value for name, value in given.items()}
        settings = _merged(base, read_overrides(connection), patch)
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO app_settings (key, value) VALUES (%s, %s)"
                " ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value, updated_at = now()",
                list(patch.items()),
            )
    return settings


def unset_overrides(connection: Connection, base: Settings, names: Collection[str]) -> Settings:
    """Forget overrides and return the settings that are left; a name without an override is no error.

    Raises:
        InvalidSetting: a name is not a setting, or what is left would not validate; nothing is forgotten.
    """
    unwanted = {canonical_name(name) for name in names}
    with connection.transaction():
        connection.execute("LOCK TABLE app_settings IN SHARE ROW EXCLUSIVE MODE")
        stored = read_overrides(connection)
        if unknown := sorted(unwanted - SETTINGS.keys() - stored.keys()):
            raise InvalidSetting(f"{unknown[0]} is not a setting")
        valid = valid_overrides(base, stored)
        settings = with_overrides(base, {name: value for name, value in valid.items() if name not in unwanted})
        connection.execute("DELETE FROM app_settings WHERE key = ANY(%s) AND NOT starts_with(key, '_')", [sorted(unwanted)])
    return settings


def change_overrides(connection: Connection, base: Settings, changes: Mapping[str, str | None]) -> Settings:
    """Store overrides, forget those that are None, and return the settings that are left.

    Raises:
        InvalidSetting: a name is not a setting, or the settings as a whole would not validate; nothing is changed.
    """
    with connection.transaction():
        unwanted = {canonical_name(name) for name, value in changes.items() if value is None}
        # Together, since a value may need what another one leaves; validated with what is not touched.
        connection.execute("LOCK TABLE app_settings IN SHARE ROW EXCLUSIVE MODE")
        if unknown := sorted(name for name in unwanted if name not in SETTINGS):
            raise InvalidSetting(f"{unknown[0]} is not a setting")
        connection.execute("DELETE FROM app_settings WHERE key = ANY(%s) AND NOT starts_with(key, '_')", [sorted(unwanted)])
        return set_overrides(connection, base, {name: value for name, value in changes.items() if value is not None})


def read_note(connection: Connection, key: str) -> str | None:
    """A note of Stemma's own; None when it was never written. Raises ValueError for a key without the underscore."""
    row = connection.execute("SELECT value FROM app_settings WHERE key = %s", [_note_key(key)]).fetchone()
    return row[0] if row else None


def write_note(connection: Connection, key: str, value: str) -> None:
    """Write or replace a note of Stemma's own. Raises ValueError for a key without the underscore."""
    connection.execute(
        "INSERT INTO app_settings (key, value) VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value, updated_at = now()",
        [_note_key(key), value],
    )


def _note_key(key: str) -> str:
    if not key.startswith(Settings.RESERVED_PREFIX):
        raise ValueError(f"the key of a note begins with {Settings.RESERVED_PREFIX!r}, not {key!r}")
    return key


def _merged(base: Settings, stored: Mapping[str, str], patch: Mapping[str, str]) -> Settings:
    """The settings under stored rows and patch together; only if they do not hold, without the stored rows that are to blame."""
    try:
        return with_overrides(base, {**stored, **patch})
    except InvalidSetting:
        return with_overrides(base, {**valid_overrides(base, stored), **patch})


def _culprits(refusal: InvalidSetting, valid: Mapping[str, str]) -> list[str]:
    """The rows that a refusal is about: the field it names, or both halves of a pair that does not go together."""
    assert isinstance(refusal.__cause__, ValidationError)
    problem = refusal.__cause__.errors(include_url=False)[0]
    named = {canonical_name(str(problem["loc"][0]))} if problem["loc"] else set(_NAME.findall(problem["msg"]))
    return [name for name in valid if name in named] or list(valid)
