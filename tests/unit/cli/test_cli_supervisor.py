"""What keeps a start from beginning."""

import socket

import pytest

from stemma.cli.supervisor import supervised
from stemma.library.walk import LibraryUnavailable
from stemma.settings import load_settings


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize("library", ["file.txt", "file.txt/below", "mistyped"])
def test_a_library_that_cannot_be_a_folder_is_refused_before_anything_is_started(tmp_path, library):
    (tmp_path / "file.txt").touch()
    settings = load_settings(home=tmp_path / "home", library=tmp_path / library, service_port=free_port(), dagster_port=free_port())
    with pytest.raises(LibraryUnavailable, match=r"is no folder|does not exist"), supervised(settings, report=lambda _: None):
        pytest.fail("it started")
    assert not (tmp_path / "home" / "postgres").exists()
