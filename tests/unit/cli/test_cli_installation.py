"""What the started processes find around them."""

import pytest

from stemma.cli import installation
from stemma.cli.home import HomeUnusable
from stemma.cli.processes import MARKER
from stemma.settings import load_settings


@pytest.fixture
def settings(tmp_path):
    return load_settings(home=tmp_path, library=tmp_path / "docs", postgres_url="postgresql://stemma:secret@db/stemma")


def test_children_mean_the_same_home_library_and_ports(settings, monkeypatch):
    monkeypatch.setenv("STEMMA_LIBRARY", "/another")
    monkeypatch.setenv("STEMMA_LLM_URL", "http://left.over")
    environment = installation.child_environment(settings, "marker")
    given = {name: environment.get(name) for name in ("STEMMA_HOME", "STEMMA_LIBRARY", "STEMMA_SERVICE_PORT", "STEMMA_LLM_URL", MARKER)}
    assert given == {
        "STEMMA_HOME": str(settings.home), "STEMMA_LIBRARY": str(settings.library), "STEMMA_SERVICE_PORT": "8765", "STEMMA_LLM_URL": None,
        MARKER: "marker",
    }  # fmt: skip


def test_children_keep_what_the_environment_says_of_other_settings(settings, monkeypatch):
    monkeypatch.setenv("STEMMA_CHUNK_SIZE", "500")
    assert installation.child_environment(settings, "marker")["STEMMA_CHUNK_SIZE"] == "500"


def test_children_are_told_to_stay_offline(settings, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    environment = installation.child_environment(settings, "marker")
    assert {environment[name] for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "DO_NOT_TRACK")} == {"1"}


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_dagster_is_given_a_database_of_its_own_with_the_driver_named(tmp_path, scheme):
    settings = load_settings(home=tmp_path, postgres_url=f"{scheme}://stemma:secret@db:5433/stemma?sslmode=require")
    assert installation.storage_environment(settings) == {
        "STEMMA_DAGSTER_STORAGE_URL": "postgresql+psycopg2://stemma:secret@db:5433/stemma_dagster?sslmode=require"
    }


def test_dagster_s_home_gets_the_project_s_instance_file(settings):
    installation.prepare_dagster_home(settings)
    installation.prepare_dagster_home(settings)
    written = (installation.dagster_home(settings) / "dagster.yaml").read_text()
    assert written == installation.project_file("dagster.yaml").read_text()


def test_long_logs_are_put_aside_and_only_three_of_them_kept(tmp_path):
    for number in range(6):
        log = installation.rotated_log(tmp_path, "daemon")
        log.write_bytes(bytes([number]) * (installation.MAX_LOG_BYTES + 1))
    log = installation.rotated_log(tmp_path, "daemon")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "logs").iterdir()}
    assert kept.pop(log.name) == b""
    assert {name: content[:1] for name, content in kept.items()} == {"daemon.log.1": b"\5", "daemon.log.2": b"\4", "daemon.log.3": b"\3"}


def test_a_short_log_is_gone_on_with(tmp_path):
    log = installation.rotated_log(tmp_path, "daemon")
    log.write_text("one\ntwo\nthree\n")
    assert installation.rotated_log(tmp_path, "daemon") == log
    assert installation.log_tail(log, 2) == "two\nthree"


def test_a_home_that_cannot_hold_logs_is_refused_by_name(tmp_path):
    (tmp_path / "logs").write_text("a file")
    with pytest.raises(HomeUnusable, match="logs: File exists"):
        installation.rotated_log(tmp_path, "daemon")
