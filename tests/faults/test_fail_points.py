"""Fail points: each can be reached, does what it is told, once, and is off where nobody asked for it."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from small_models import random_model

from stemma import failpoints
from stemma.audit.audit import audit
from stemma.audit.repair import repair
from stemma.bundles.export import export_corpus
from stemma.bundles.restore import restore_bundle
from stemma.failpoints import FAIL_POINTS, reach
from stemma.library.deletion import mark_deleting
from stemma.library.pruning import prune_and_delete
from stemma.stages.garbage import collect_garbage
from stemma.stages.keyword_rebuild import rebuild_keyword_index
from stemma.stages.reembed import drop_retired_indexes, reembed
from stemma.store.forgotten_results import sweep_forgotten


def test_every_fail_point_is_reached_by_ordinary_work(corpus, failing, tmp_path):
    for point in FAIL_POINTS:
        failing.arm(point, "note")
    corpus.write("w/stays.md", "# Stays\n\nA text.")
    corpus.write("w/renamed.md", "# Renamed\n\nAnother text.")
    corpus.write("w/deleted.md", "# Deleted\n\nA third text.")
    corpus.ingest()
    (corpus.settings.library / "w/renamed.md").rename(corpus.settings.library / "w/new name.md")
    corpus.write("w/stays.md", "# Stays\n\nA text that was edited.")
    with corpus.installation.pool.connection() as connection:
        [(deleted,)] = connection.execute("SELECT source_id FROM sources WHERE source_path = 'w/deleted.md'").fetchall()
        mark_deleting(connection, [deleted], "remove_file", now=datetime.now(UTC))
    corpus.ingest()
    corpus.ingest()
    restore_bundle(corpus.installation, export_corpus(corpus.installation).name)
    here = corpus.installation
    reembed(here, random_model(tmp_path / "other"))
    drop_retired_indexes(here)
    rebuild_keyword_index(here)
    corpus.rows_affected("DELETE FROM " + corpus.value("SELECT vector_table FROM embedding_indexes WHERE state = 'active'"))
    corpus.rows_affected("UPDATE chunks SET text_hash = repeat('0', 64)")
    repair(here, audit(here, now=datetime.now(UTC)), now=datetime.now(UTC))
    corpus.write("w/stays.md", "# Stays\n\nA text that was edited again.")
    corpus.ingest()
    sweep_forgotten(here.pool, here.lake)
    later = datetime.now(UTC) + timedelta(hours=2)
    collect_garbage(here.pool, here.lake, here.settings().model_copy(update={"lake_max_bytes": 0}), now=later)
    prune_and_delete(here.pool, here.settings(), here.remove_sparse, confirm=True, now=later)
    assert [point for point in FAIL_POINTS if not failing.fired(point)] == []


def test_a_point_that_fired_is_disarmed(failing):
    failing.arm("look.done", "full")
    with pytest.raises(OSError, match="No space left"):
        reach("look.done")
    reach("look.done")


def test_a_point_can_fire_the_third_time(failing):
    failing.arm("look.done", "read_only:3")
    reach("look.done")
    reach("look.done")
    with pytest.raises(OSError, match="Read-only"):
        reach("look.done")


def test_a_killed_process_gets_no_chance_to_clean_up(failing):
    failing.arm("look.done", "kill")
    code = "from stemma.failpoints import reach\ntry:\n    reach('look.done')\nfinally:\n    print('cleaned up')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"STEMMA_FAILPOINTS": str(failing.folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")


def test_fail_points_are_off_unless_the_environment_names_a_folder():
    assert failpoints._folder is None
    reach("look.done")
