"""How commands end: one line and an exit code for what a user can act on, a traceback for a bug."""

import json

import psycopg
import pytest
import typer
from psycopg_pool import PoolTimeout

from stemma.cli.child import ChildFailed
from stemma.cli.console import Refused, command
from stemma.cli.ingest import OutsideLibrary
from stemma.settings import InvalidEnvironment, InvalidSetting
from stemma.store.embedded import NotRunning
from stemma.store.migrations import MigrationDrift
from stemma.store.postgres import StoreUnavailable


def ended_with(error: Exception, *, as_json: bool = False) -> int:
    @command
    def failing(*, as_json: bool = False) -> None:
        raise error

    with pytest.raises(typer.Exit) as ended:
        failing(as_json=as_json)
    return ended.value.exit_code


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (MigrationDrift("001 was applied with another text"), 1),
        (InvalidSetting("CHUNK_SIZE cannot be 'x'"), 2),
        (InvalidEnvironment("CHUNK_SIZE cannot be 'x'"), 2),
        (OutsideLibrary("/etc is not in /library"), 2),
        (NotRunning("no PostgreSQL server runs in /home"), 3),
        (psycopg.OperationalError("the server closed the connection unexpectedly"), 3),
        (psycopg.errors.LockNotAvailable("canceling statement due to lock timeout"), 3),
        (PoolTimeout("couldn't get a connection after 10.00 sec"), 3),
        (Refused({"code": "empty_query", "detail": "the query is empty.", "remedy": "Ask.", "status": 422}), 2),
        (Refused({"code": "store_unavailable", "detail": "away.", "remedy": "Wait.", "status": 503}), 3),
    ],
)
def test_the_exit_code_says_what_kind_of_condition_it_is(error, exit_code):
    assert ended_with(error) == exit_code


def test_an_error_is_one_line_on_standard_error(capsys):
    ended_with(OutsideLibrary("/etc is not in /library"))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == (
        "outside_library: /etc is not in /library. Copy the file into the library, or start Stemma with the library that holds it.\n"
    )


def test_with_json_an_error_is_an_object_with_the_service_s_fields(capsys):
    ended_with(OutsideLibrary("/etc is not in /library"), as_json=True)
    assert json.loads(capsys.readouterr().err) == {
        "type": "urn:stemma:problem:outside_library",
        "code": "outside_library",
        "detail": "/etc is not in /library.",
        "remedy": OutsideLibrary.remedy,
    }


def test_a_bug_keeps_its_traceback():
    @command
    def failing() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()


def test_the_end_of_a_log_is_shown_before_the_error(capsys):
    ended_with(ChildFailed("The part ended", "line one\nline two"))
    assert capsys.readouterr().err.splitlines()[:2] == ["line one", "line two"]


def test_a_message_of_several_lines_becomes_one(capsys):
    ended_with(StoreUnavailable("connection failed: refused\n\tIs the server running?"))
    assert capsys.readouterr().err.count("\n") == 1
