"""Overrides of settings: validated as a whole before anything is stored, and never able to stop a start."""

import threading

import pytest
from structlog.testing import capture_logs

from stemma.settings import InvalidSetting, Settings, load_settings
from stemma.store import app_settings
from stemma.store.postgres import Connection, connect


@pytest.fixture
def connection(database_url: str):
    with connect(database_url) as opened:
        yield opened


@pytest.fixture
def base(tmp_path) -> Settings:
    return load_settings(home=tmp_path)


def _store(connection: Connection, **rows: str) -> None:
    """Rows as an older release may have left them, past every validator."""
    for key, value in rows.items():
        connection.execute("INSERT INTO app_settings (key, value) VALUES (%s, %s)", [key, value])


def test_an_override_wins_over_the_environment(connection, tmp_path, monkeypatch):
    monkeypatch.setenv("STEMMA_CHUNK_SIZE", "500")
    monkeypatch.setenv("STEMMA_CONTEXTUALIZE", "false")
    base = load_settings(home=tmp_path)
    app_settings.set_overrides(connection, base, {"CHUNK_SIZE": "300", "CONTEXTUALIZER": "structural"})
    current = app_settings.current_settings(connection, base)
    assert (base.chunk_size, base.contextualizer) == (500, "none")
    assert (current.chunk_size, current.contextualizer) == (300, "structural")


def test_one_bad_field_among_good_ones_stores_nothing(connection, base):
    with pytest.raises(InvalidSetting, match="FUSION_K cannot be '-1'"):
        app_settings.set_overrides(connection, base, {"CHUNK_SIZE": "300", "FUSION_K": "-1"})
    assert app_settings.read_overrides(connection) == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [("NO_SUCH", "NO_SUCH is not a setting"), ("_corpus_stale", "is not a setting"), ("POSTGRES_URL", "set STEMMA_POSTGRES_URL")],
)
def test_what_cannot_be_overridden_is_refused_by_name(connection, base, name, message):
    with pytest.raises(InvalidSetting, match=message):
        app_settings.set_overrides(connection, base, {name: "1"})
    assert connection.execute("SELECT count(*) FROM app_settings").fetchone() == (0,)


def test_half_of_a_pair_is_checked_against_the_stored_other_half(connection, base):
    app_settings.set_overrides(connection, base, {"SEMANTIC_WEIGHT": "0.7", "BM25_WEIGHT": "0.3"})
    with pytest.raises(InvalidSetting, match=r"SEMANTIC_WEIGHT \(0\.6\) and BM25_WEIGHT"):
        app_settings.set_overrides(connection, base, {"SEMANTIC_WEIGHT": "0.6"})
    assert app_settings.current_settings(connection, base).semantic_weight == 0.7


def test_forgetting_half_of_a_pair_is_refused_and_forgetting_both_is_not(connection, base):
    app_settings.set_overrides(connection, base, {"SEMANTIC_WEIGHT": "0.7", "BM25_WEIGHT": "0.3"})
    with pytest.raises(InvalidSetting):
        app_settings.unset_overrides(connection, base, ["BM25_WEIGHT"])
    left = app_settings.unset_overrides(connection, base, ["BM25_WEIGHT", "semantic_weight"])
    assert (left.semantic_weight, app_settings.read_overrides(connection)) == (0.4, {})


@pytest.mark.parametrize(
    "broken",
    [
        {"CHUNK_SIZE": "huge"},
        {"GONE_IN_THIS_RELEASE": "1"},
        {"POSTGRES_URL": "postgresql://elsewhere"},
        {"SEMANTIC_WEIGHT": "0.9", "BM25_WEIGHT": "0.9"},
        {"CHUNK_SIZE": "200", "CHUNK_OVERLAP": "300", "CONTEXTUALIZER": "clairvoyant"},
    ],
)
def test_a_stored_row_that_no_longer_validates_is_skipped_and_the_others_hold(connection, base, broken):
    _store(connection, FUSION_K="10", **broken)
    with capture_logs() as logs:
        current = app_settings.current_settings(connection, base)
    assert current == base.model_copy(update={"fusion_k": 10})
    assert {entry["setting"] for entry in logs if entry["log_level"] == "error"} == broken.keys()


def test_two_rows_that_are_valid_only_together_both_hold(connection, base):
    _store(connection, CHUNK_SIZE="80", CHUNK_OVERLAP="20")
    current = app_settings.current_settings(connection, base)
    assert (current.chunk_size, current.chunk_overlap) == (80, 20)


def test_a_broken_stored_row_does_not_stop_a_good_patch_and_can_be_mended(connection, base):
    _store(connection, CHUNK_SIZE="huge")
    assert app_settings.set_overrides(connection, base, {"FUSION_K": "7"}).fusion_k == 7
    assert app_settings.set_overrides(connection, base, {"CHUNK_SIZE": "400"}).chunk_size == 400
    _store(connection, GONE_IN_THIS_RELEASE="1")
    app_settings.unset_overrides(connection, base, ["GONE_IN_THIS_RELEASE"])
    assert app_settings.read_overrides(connection) == {"CHUNK_SIZE": "400", "FUSION_K": "7"}


def test_notes_are_hidden_from_overrides_and_survive_forgetting(connection, base):
    app_settings.write_note(connection, "_reconcile_requested", "then")
    app_settings.write_note(connection, "_reconcile_requested", "now")
    with pytest.raises(InvalidSetting):
        app_settings.unset_overrides(connection, base, ["_reconcile_requested"])
    assert app_settings.read_overrides(connection) == {}
    assert app_settings.read_note(connection, "_reconcile_requested") == "now"
    assert app_settings.read_note(connection, "_never_written") is None
    with pytest.raises(ValueError):
        app_settings.write_note(connection, "FUSION_K", "1")


def test_of_two_patches_at_once_that_exclude_each_other_one_is_refused(database_url, base):
    """Each is valid beside the defaults; together the overlap would be larger than the chunk."""
    started, outcomes = threading.Barrier(2), []

    def patch(given: dict[str, str]) -> None:
        with connect(database_url) as opened:
            started.wait()
            try:
                app_settings.set_overrides(opened, base, given)
                outcomes.append("stored")
            except InvalidSetting:
                outcomes.append("refused")

    threads = [threading.Thread(target=patch, args=[given]) for given in ({"CHUNK_SIZE": "200"}, {"CHUNK_OVERLAP": "300"})]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert sorted(outcomes) == ["refused", "stored"]
