"""Settings: where values come from, what is refused and how, and what a fingerprint depends on."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from stemma.settings import (
    CORPUS_STAGES,
    SETTINGS,
    InvalidEnvironment,
    InvalidSetting,
    Settings,
    fingerprint,
    load_settings,
    with_overrides,
)


def test_default_gives_way_to_environment_and_environment_to_override(monkeypatch):
    assert load_settings().chunk_size == 800
    monkeypatch.setenv("STEMMA_CHUNK_SIZE", "500")
    assert load_settings().chunk_size == 500
    assert load_settings({"CHUNK_SIZE": "300"}).chunk_size == 300


def test_an_empty_variable_is_as_good_as_none(monkeypatch):
    monkeypatch.setenv("STEMMA_CHUNK_SIZE", "")
    monkeypatch.setenv("STEMMA_POSTGRES_URL", "")
    settings = load_settings()
    assert (settings.chunk_size, settings.postgres_url) == (800, None)


@pytest.mark.parametrize(("value", "contextualizer"), [("true", "structural"), ("TRUE", "structural"), ("false", "none"), ("0", "none")])
def test_the_old_switch_is_read_as_the_contextualizer(monkeypatch, value, contextualizer):
    monkeypatch.setenv("STEMMA_CONTEXTUALIZE", value)
    assert load_settings().contextualizer == contextualizer


def test_the_new_name_wins_over_the_old_switch(monkeypatch):
    monkeypatch.setenv("STEMMA_CONTEXTUALIZE", "true")
    monkeypatch.setenv("STEMMA_CONTEXTUALIZER", "none")
    assert load_settings().contextualizer == "none"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CHUNK_SIZE", "huge", "CHUNK_SIZE cannot be 'huge'; allowed: whole number >= 20, <= 100000"),
        ("CHUNKING_STRATEGY", "magic", "CHUNKING_STRATEGY cannot be 'magic'; allowed: recursive_character | markdown_aware"),
        ("CONTEXTUALIZER", "llm", "CONTEXTUALIZER cannot be 'llm'; allowed: none | structural"),
        ("SERVICE_PORT", "70000", "SERVICE_PORT cannot be '70000'; allowed: whole number >= 1, <= 65535"),
        ("CHUNK_OVERLAP", "800", r"CHUNK_OVERLAP \(800\) must be smaller than CHUNK_SIZE \(800\)"),
        ("SEMANTIC_WEIGHT", "0.7", r"SEMANTIC_WEIGHT \(0\.7\) and BM25_WEIGHT \(0\.6\) must sum to 1"),
        ("RECONCILE_INTERVAL_S", "1000000000000", r"RECONCILE_INTERVAL_S \(1000000000000\) must be at most 315360000"),
        ("PARSE_MEMORY_BYTES", "9" * 21, r"PARSE_MEMORY_BYTES \(9+\) must be at most 1000000000000000"),
        ("PARSE_TIMEOUT_S", "inf", "PARSE_TIMEOUT_S cannot be 'inf'; allowed: number > 0"),
        ("QUERY_TIMEOUT_S", "60", r"QUERY_TIMEOUT_S \(60\.0\) must be below RETIRE_AFTER_S \(60\.0\)"),
    ],
)
def test_a_wrong_variable_is_refused_with_its_name_and_what_it_may_be(monkeypatch, name, value, message):
    monkeypatch.setenv(f"STEMMA_{name}", value)
    with pytest.raises(InvalidEnvironment, match=message.replace("|", r"\|")):
        load_settings()


@pytest.mark.parametrize("value", ["nonsense", "mysql://u:secret@h/x", "host=h password=secret", "postgresql://u:secret@[h/x"])
def test_a_wrong_database_url_is_refused_without_showing_it(monkeypatch, value):
    monkeypatch.setenv("STEMMA_POSTGRES_URL", value)
    with pytest.raises(InvalidEnvironment, match="POSTGRES_URL is not a URL such as") as refused:
        load_settings()
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["POSTGRES_URL", "HOME", "SERVICE_PORT", "LLM_URL"])
def test_urls_paths_and_ports_cannot_be_overridden(name):
    with pytest.raises(InvalidSetting, match=f"set STEMMA_{name} in the environment"):
        with_overrides(load_settings(), {name: "1"})


@pytest.mark.parametrize("name", ["_corpus_stale", "NO_SUCH", "chunk_size", "STEMMA_CHUNK_SIZE"])
def test_an_override_has_the_bare_name_of_a_setting(name):
    with pytest.raises(InvalidSetting, match="is not a setting"):
        with_overrides(load_settings(), {name: "1"})


def test_what_nobody_set_still_counts_as_unset_under_an_override(monkeypatch):
    monkeypatch.setenv("STEMMA_FUSION_K", "10")
    assert load_settings({"CHUNK_SIZE": "300"}).model_fields_set == {"fusion_k", "chunk_size"}
    assert load_settings({"CHUNK_SIZE": "800"}) == load_settings()


def test_a_setting_cannot_be_changed_in_place():
    with pytest.raises(ValidationError, match="frozen"):
        load_settings().chunk_size = 1


def test_the_library_lies_in_the_home_unless_told(monkeypatch, tmp_path):
    assert load_settings(home=tmp_path).library == tmp_path / "library"
    monkeypatch.setenv("STEMMA_LIBRARY", "~/Documents")
    assert load_settings(home=tmp_path).library == Path.home() / "Documents"


@pytest.mark.parametrize("name", ["HOME", "LAKE"])
def test_the_library_cannot_be_where_stemma_keeps_its_own_files(monkeypatch, tmp_path, name):
    monkeypatch.setenv(f"STEMMA_{name}", str(tmp_path))
    monkeypatch.setenv("STEMMA_LIBRARY", str(tmp_path))
    with pytest.raises(InvalidEnvironment, match="cannot be a folder in which Stemma keeps its own files"):
        load_settings()


def test_a_relative_home_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEMMA_HOME", "state")
    assert load_settings().home == tmp_path / "state"


def test_every_setting_has_a_meaning_and_a_stage():
    assert SETTINGS.keys() == {name.upper() for name in Settings.model_fields}
    assert [name for name, info in SETTINGS.items() if not info.description or not info.allowed] == []


CHANGED = {
    "parsing": {"OCR_ENGINE": "none"},
    "chunking": {"CHUNK_SIZE": "300"},
    "contextualizing": {"CONTEXTUALIZER": "none"},
    "embedding": {"EMBEDDING_MODEL": "/models/other"},
    "query": {"FUSION_K": "10"},
    "operation": {"BATCH_SIZE": "10"},
}


@pytest.mark.parametrize("stage", CHANGED)
def test_a_change_touches_the_fingerprint_of_its_stage_alone(stage):
    before, after = load_settings(), load_settings(CHANGED[stage])
    touched = {each for each in CORPUS_STAGES if fingerprint(before, each) != fingerprint(after, each)}
    assert touched == {stage} & set(CORPUS_STAGES)


def test_a_fingerprint_does_not_depend_on_where_things_lie(tmp_path):
    here, there = load_settings(home=tmp_path / "a"), load_settings(home=tmp_path / "b", postgres_url="postgresql://db/x")
    assert [fingerprint(here, stage) for stage in CORPUS_STAGES] == [fingerprint(there, stage) for stage in CORPUS_STAGES]


def test_a_fingerprint_depends_on_the_model_s_revision():
    settings = load_settings()
    assert fingerprint(settings, "embedding", model_revision="1") != fingerprint(settings, "embedding", model_revision="2")
