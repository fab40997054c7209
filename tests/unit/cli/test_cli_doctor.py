"""What `stemma doctor` says of folders that cannot be used, and of settings that hardly fit together."""

import errno
import tempfile

import pytest

from stemma.cli.doctor import examine
from stemma.settings import load_settings


def findings(settings, *checks: str) -> dict[str, tuple[str, str]]:
    found = {}
    for finding in examine(settings):
        found[finding.check] = (finding.state, finding.found)
        if set(checks) <= found.keys():
            break
    return found


def test_a_home_or_lake_that_is_a_file_is_a_fault(tmp_path):
    (tmp_path / "file").touch(0o755)
    found = findings(load_settings(home=tmp_path / "file", lake=str(tmp_path / "file/below")), "home", "lake")
    assert [found[check][0] for check in ("home", "lake")] == ["fault", "fault"]
    assert "is not a folder" in found["home"][1]


@pytest.mark.parametrize("error", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_a_folder_that_takes_no_file_is_a_fault(tmp_path, monkeypatch, error: int):
    def refuse(**_options):
        raise OSError(error, "refused")

    # A full or read-only file system cannot be mounted by every user who runs the tests.
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    found = findings(load_settings(home=tmp_path), "home", "lake")
    assert {found["home"], found["lake"]} == {("fault", f"{tmp_path} cannot be written: refused")}


def test_a_folder_that_can_be_written_is_in_order_and_left_as_it_was(tmp_path):
    assert findings(load_settings(home=tmp_path), "home", "lake")["lake"][0] == "ok"
    assert list(tmp_path.iterdir()) == []


def test_a_server_for_keywords_that_is_away_is_a_fault(tmp_path):
    settings = load_settings(home=tmp_path, elasticsearch_url="http://127.0.0.1:1")
    state, text = findings(settings, "keywords")["keywords"]
    assert state == "fault" and "Elasticsearch at 127.0.0.1:1 cannot be reached" in text


def test_a_folder_that_depends_on_where_one_stands_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEMMA_LAKE", "lake")
    settings = load_settings(home=tmp_path)
    assert settings.lake_url == str(tmp_path / "lake")
    state, text = findings(settings, "home", "lake", "disk", "paths")["paths"]
    assert (state, "STEMMA_LAKE=lake" in text) == ("warning", True)


@pytest.mark.parametrize(("chunk_size", "state"), [(800, "ok"), (2_000, "warning")])
def test_chunks_that_the_model_does_not_read_at_once_are_warned_of(tmp_path, chunk_size, state):
    found = findings(load_settings(home=tmp_path, chunk_size=chunk_size), "model", "chunks")["chunks"]
    assert found[0] == state and (f"CHUNK_SIZE {chunk_size}" in found[1]) == (state == "warning")
