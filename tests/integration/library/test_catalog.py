"""What walks write into the catalog."""

import json
import os
import subprocess
import sys
import threading
import time
import unicodedata
from pathlib import Path

import psycopg
import pytest

from stemma.library.catalog import walk_library
from stemma.store.locks import WALK_LOCK


def test_a_first_walk_finds_every_file_under_its_workspace_and_folder(catalog):
    for path in ("root.txt", "sales/a.txt", "sales/2024/Q1/b.PDF"):
        catalog.write(path)
    outcome = catalog.walk()
    assert (outcome.complete, outcome.n_seen, outcome.n_new, outcome.n_changed) == (True, 3, 3, 0)
    assert catalog.rows(
        "SELECT source_path, w.key, w.name, f.name, p.name, file_type, status FROM sources JOIN workspaces w USING (workspace_id)"
        " LEFT JOIN folders f USING (folder_id) LEFT JOIN folders p ON p.folder_id = f.parent_id ORDER BY source_path"
    ) == [
        ("root.txt", "default", "My Workspace", None, None, "txt", "pending"),
        ("sales/2024/Q1/b.PDF", "sales", "sales", "Q1", "2024", "pdf", "pending"),
        ("sales/a.txt", "sales", "sales", None, None, "txt", "pending"),
    ]


def test_a_second_walk_over_an_unchanged_library_changes_nothing_but_stamps(catalog):
    for n in range(20):
        catalog.write(f"ws/{n}.txt")
    catalog.walk()
    everything = "SELECT to_jsonb(sources) - 'last_seen_scan' FROM sources ORDER BY source_id"
    before = catalog.rows(everything)
    outcome = catalog.walk()
    assert (outcome.n_seen, outcome.n_unchanged, outcome.n_new, outcome.n_changed, outcome.n_vanished) == (20, 20, 0, 0, 0)
    assert catalog.rows(everything) == before


def test_a_walk_over_an_unchanged_library_opens_none_of_its_files(catalog):
    catalog.write("ws/a.txt")
    catalog.walk()
    opened: list[str] = []
    watching = True
    sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if watching and event == "open" else None)
    catalog.walk()
    watching = False
    assert [path for path in opened if str(catalog.library) in path or path.endswith("a.txt")] == []


def test_a_write_shows_as_changed_and_leaves_what_was_hashed_alone(catalog):
    catalog.write("a.txt", "old")
    catalog.walk()
    catalog.publish("a.txt")
    before = catalog.rows("SELECT content_hash, hashed_size, hashed_mtime_ns, hashed_at, status FROM sources")
    catalog.write("a.txt", "newer")
    assert catalog.walk().n_changed == 1
    assert catalog.rows("SELECT content_hash, hashed_size, hashed_mtime_ns, hashed_at, status FROM sources") == before
    assert catalog.rows("SELECT seen_size FROM sources") == [(5,)]


def test_a_walk_with_no_time_goes_on_call_by_call_and_ends_where_one_call_does(catalog):
    for path in ("a/1.txt", "a/2.txt", "b/c/3.txt", "4.txt", ".hidden"):
        catalog.write(path)
    outcomes = [catalog.walk(budget_s=0)]
    while not outcomes[-1].complete:
        outcomes.append(catalog.walk(budget_s=0))
        assert len(outcomes) < 20
    assert len({outcome.scan_id for outcome in outcomes}) == 1
    assert [outcome.n_seen for outcome in outcomes] == sorted(outcome.n_seen for outcome in outcomes)
    assert (outcomes[-1].n_seen, outcomes[-1].n_new, outcomes[-1].skipped) == (4, 4, {"hidden": 1})
    assert catalog.paths() == ["4.txt", "a/1.txt", "a/2.txt", "b/c/3.txt"]


def test_an_incomplete_walk_decides_nothing(catalog):
    for name in "abc":
        catalog.write(f"{name}.txt")
    catalog.walk()
    (catalog.library / "c.txt").unlink()
    catalog.walk(budget_s=0)
    assert catalog.paths("presence = 'missing'") == []


def test_a_walk_of_another_library_gives_the_one_under_way_up(catalog, tmp_path: Path):
    catalog.write("a.txt")
    catalog.write("b.txt")
    first = catalog.walk(budget_s=0)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/c.txt").touch()
    catalog.settings = catalog.settings.model_copy(update={"library": tmp_path / "elsewhere"})
    second = catalog.walk()
    assert second.complete
    assert catalog.rows("SELECT scan_id, state FROM scans ORDER BY scan_id") == [(first.scan_id, "abandoned"), (second.scan_id, "complete")]


def test_a_second_walker_is_told_that_one_is_at_work(catalog):
    with psycopg.connect(catalog.settings.postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(%s)", [WALK_LOCK])
        outcome = catalog.walk()
    assert outcome.busy
    assert outcome.scan_id is None
    assert catalog.walk().complete


def test_many_walkers_at_once_find_every_file_once(catalog):
    for n in range(200):
        catalog.write(f"ws{n % 3}/{n}.txt")
    outcomes, errors = [], []

    def walker():
        try:
            outcomes.append(walk_library(catalog.pool, catalog.settings, budget_s=60, now=catalog.now))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=walker) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert any(outcome.complete for outcome in outcomes)
    assert catalog.rows("SELECT count(*), count(DISTINCT source_path) FROM sources") == [(200, 200)]


def test_a_lock_is_free_again_after_a_walk_that_failed(catalog, monkeypatch):
    catalog.write("a.txt")
    monkeypatch.setattr("stemma.library.catalog.decide", lambda *_, **__: 1 / 0)
    try:
        catalog.walk()
    except ZeroDivisionError:
        monkeypatch.undo()
    assert catalog.walk().complete


def test_a_statement_that_waits_for_a_row_too_long_is_tried_again(catalog):
    catalog.write("a.txt")
    catalog.walk()
    with psycopg.connect(catalog.settings.postgres_url) as other:
        other.execute("UPDATE sources SET status = 'processing'")
        threading.Timer(0.8, other.commit).start()
        assert catalog.walk().complete
    assert catalog.rows("SELECT status FROM sources") == [("processing",)]


def test_two_spellings_of_a_name_are_two_sources_that_lead_to_their_own_files(catalog):
    spellings = ["é.txt", unicodedata.normalize("NFD", "é.txt")]
    for spelling in spellings:
        catalog.write(spelling, f"{len(spelling)} characters")
    catalog.walk()
    contents = {
        path: (catalog.library / os.fsdecode(disk_path)).read_text()
        for path, disk_path in catalog.rows("SELECT source_path, disk_path FROM sources")
    }
    assert contents == {"é.txt": "5 characters", "e%CC%81.txt": "6 characters"}


def test_spellings_of_one_folder_share_its_row(catalog):
    catalog.write("ws/Straße/a.txt")
    catalog.write("ws/STRASSE/b.txt")
    catalog.walk()
    assert len(catalog.rows("SELECT DISTINCT folder_id FROM sources")) == 1
    assert catalog.paths() == ["ws/STRASSE/b.txt", "ws/Straße/a.txt"]


def test_a_path_too_long_for_an_index_is_listed_as_failed_and_keeps_its_way_to_the_file(catalog):
    path = "/".join(["d" * 50] * 40) + "/deep.txt"
    catalog.write(path)
    for _ in range(2):
        assert catalog.walk().n_seen == 1
    [(source_path, disk_path, status, code, workspace)] = catalog.rows(
        "SELECT source_path, disk_path, status, error_code, w.key FROM sources JOIN workspaces w USING (workspace_id)"
    )
    assert (status, code, workspace) == ("failed", "path_too_long", "d" * 50)
    assert disk_path == path.encode()
    assert source_path.startswith("d" * 50)


def test_a_folder_without_sources_leaves_the_tree(catalog):
    catalog.write("ws/a/b/x.txt")
    catalog.write("ws/c/y.txt")
    catalog.walk()
    (catalog.library / "ws/a/b/x.txt").rename(catalog.library / "ws/c/x.txt")
    catalog.run("UPDATE sources SET content_hash = encode(sha256('needle of ws/a/b/x.txt'), 'hex') WHERE source_path = 'ws/a/b/x.txt'")
    catalog.walk()
    assert catalog.rows("SELECT name FROM folders") == [("c",)]


def test_skipped_paths_are_kept_with_their_reason(catalog):
    catalog.write(".hidden")
    catalog.write("a.txt")
    catalog.walk()
    assert catalog.rows("SELECT skipped FROM scans") == [({"hidden": {"count": 1, "paths": [".hidden"]}},)]


def test_a_workspace_keeps_the_name_that_someone_gave_it(catalog):
    catalog.write("ws/a.txt")
    catalog.walk()
    catalog.run("UPDATE workspaces SET name = 'Sales' WHERE key = 'ws'")
    catalog.write("ws/b.txt")
    catalog.walk()
    assert catalog.rows("SELECT name FROM workspaces WHERE key = 'ws'") == [("Sales",)]


def test_every_file_of_an_odd_tree_is_listed_once_and_leads_to_its_bytes(catalog, shared: Path, tmp_path: Path):
    tree = tmp_path / "odd"
    subprocess.run([sys.executable, shared / "files/build_odd_tree.py", tree], check=True, capture_output=True)
    catalog.settings = catalog.settings.model_copy(update={"library": tree})
    outcome = catalog.walk()
    sources = catalog.rows("SELECT source_path, partition_key, disk_path, error_code FROM sources")
    expected = json.loads((tmp_path / "odd.expected.json").read_text("utf-8"))
    needles = {os.fsencode(entry["path"]): entry["needle"] for entry in expected if entry["should_ingest"] and entry["path"] != "empty.txt"}
    read = {disk_path: (tree / os.fsdecode(disk_path)).read_text() for _, _, disk_path, _ in sources if disk_path in needles}
    assert read.keys() == needles.keys()
    assert all(needle in read[path] or path.startswith(b"dup/") for path, needle in needles.items())
    assert len({key for _, key, _, _ in sources}) == len(sources) == outcome.n_seen
    assert [path[:3] for path, _, _, code in sources if code == "path_too_long"] == ["ddd"]
    assert catalog.walk().n_unchanged == len(sources)


@pytest.mark.slow
def test_a_hundred_thousand_unchanged_files_are_walked_in_seconds_and_touch_no_index(catalog):
    for folder in range(100):
        (catalog.library / f"ws{folder % 5}/folder {folder}").mkdir(parents=True)
        for n in range(1_000):
            (catalog.library / f"ws{folder % 5}/folder {folder}/document {folder}-{n}.txt").touch()
    catalog.walk()
    catalog.run("ANALYZE sources")
    began = time.monotonic()
    outcome = catalog.walk()
    elapsed_s = time.monotonic() - began
    assert (outcome.complete, outcome.n_unchanged) == (True, 100_000)
    assert elapsed_s < 10
    time.sleep(1.5)  # the server's counters follow within a second
    [(updated, within_page)] = catalog.rows("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'sources'")
    assert within_page == updated > 0


def test_a_home_inside_the_library_is_never_catalogued(catalog):
    catalog.write("a.txt")
    catalog.write("state/logs/daemon.log")
    catalog.settings = catalog.settings.model_copy(update={"home": catalog.library / "state"})
    assert catalog.walk().skipped == {"own_files": 1}
    assert catalog.paths() == ["a.txt"]
