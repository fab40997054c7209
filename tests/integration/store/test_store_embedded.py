"""The embedded server starts wherever a person keeps a home."""

import os
import shutil
import stat
from pathlib import Path

import pytest
from psycopg import connect

from stemma.store import embedded

ODD_HOMES = ["Application Support/Stemma", "a, b & c", "it's mine", "日本語 hö", "x" * 120]


@pytest.mark.parametrize("name", ODD_HOMES, ids=["space", "comma", "quote", "non-ascii", "long"])
def test_the_server_starts_in_a_home_whatever_its_path_holds(tmp_path_factory, name):
    home = tmp_path_factory.mktemp("homes") / name
    home.mkdir(parents=True)
    url = embedded.start_embedded(home)
    try:
        assert embedded.start_embedded(home) == url  # joins it
        with connect(url) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("stemma",)
        with connect(embedded.beside(url, embedded.DAGSTER_SUFFIX)) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("stemma_dagster",)
        assert stat.S_IMODE(embedded.socket_folder(home).stat().st_mode) == 0o700
    finally:
        embedded.stop_embedded(home, mode="immediate")
        if embedded.socket_folder(home) != embedded.data_folder(home).resolve():
            shutil.rmtree(embedded.socket_folder(home))


def test_a_plain_home_holds_its_socket_itself():
    home = Path("/srv/stemma-home")
    assert embedded.socket_folder(home) == home / "postgres"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder that belongs to somebody else")
def test_a_socket_folder_of_somebody_else_is_not_used(tmp_path_factory):
    home = tmp_path_factory.mktemp("homes") / "with space"
    home.mkdir()
    theirs = embedded.socket_folder(home)
    theirs.mkdir()
    os.chown(theirs, 65_534, 65_534)
    try:
        with pytest.raises(OSError, match="belongs to somebody else"):
            embedded.start_embedded(home)
    finally:
        theirs.rmdir()
