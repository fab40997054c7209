"""Killed at any instant: never a listed broken bundle, never a mixed corpus; what comes after goes on as if nothing had been."""

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from stemma.bundles.export import export_corpus
from stemma.bundles.listing import list_bundles
from stemma.bundles.restore import restore_bundle, verify_bundle
from stemma.bundles.shelf import exports_of
from stemma.failpoints import FAIL_POINTS

CHILD = """
import sys
from stemma.settings import load_settings
from stemma.stages.installation import Installation
from stemma.bundles.export import export_corpus
from stemma.bundles.restore import restore_bundle
here = Installation(load_settings())
export_corpus(here, force=True) if sys.argv[1] == "export" else restore_bundle(here, sys.argv[1])
here.close()
"""
PUBLISHED = "SELECT doc_id, text, n_chunks, (SELECT count(*) FROM chunks AS c WHERE c.publication_id = d.publication_id) FROM documents AS d ORDER BY 1"

EXPORTING = [point for point in FAIL_POINTS if point.startswith("export.")]
RESTORING = [point for point in FAIL_POINTS if point.startswith("restore.")]


def killed(corpus, tmp_path, point: str, argument: str) -> None:
    """A process of its own does the work and is killed at the point."""
    folder = tmp_path / "failpoints"
    folder.mkdir(exist_ok=True)
    (folder / point).write_text("kill")
    settings = corpus.settings
    environment = os.environ | {
        "STEMMA_HOME": str(settings.home), "STEMMA_LIBRARY": str(settings.library), "STEMMA_POSTGRES_URL": settings.postgres_url,
        "STEMMA_FAILPOINTS": str(folder),
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", CHILD, argument], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2_000:]


def kill_an_export(corpus, tmp_path, point):
    killed(corpus, tmp_path, point, "export")
    for bundle in list_bundles(exports_of(corpus.settings)):
        assert bundle.verdict == "ok" and verify_bundle(corpus.installation, bundle.name).n_documents == 3, point
    export_corpus(corpus.installation, force=True)
    assert not list((corpus.settings.library / "stemma-exports").glob(".*")), point


def kill_a_restore(corpus, tmp_path, point, name):
    old = corpus.rows(PUBLISHED)
    killed(corpus, tmp_path, point, name)
    new = corpus.rows(PUBLISHED)
    assert (new != old) == (point == "restore.committed"), point
    assert all(stated == found for _, _, stated, found in new), point
    assert corpus.keyword_hits("pier"), point


def changed(corpus, text):
    corpus.write("plans/pier.md", text)
    corpus.ingest()


@pytest.mark.parametrize("point", ["export.before_manifest", "export.before_rename"])
def test_an_export_that_is_killed_leaves_no_bundle(filled, tmp_path, point):
    kill_an_export(filled, tmp_path, point)


def test_a_restore_that_is_killed_leaves_the_old_corpus_and_can_be_repeated(filled, tmp_path):
    name = export_corpus(filled.installation).name
    bundled = filled.rows(PUBLISHED)
    changed(filled, "# Pier\n\nThe pier is closed.\n")
    for point in ("restore.entries_written", "restore.before_commit"):
        kill_a_restore(filled, tmp_path, point, name)
    assert filled.value("SELECT count(*) FROM publications WHERE state = 'pending'") > 0
    restore_bundle(filled.installation, name)
    assert filled.rows(PUBLISHED) == bundled
    assert filled.value("SELECT count(*) FROM publications WHERE state = 'pending'") == 0
    filled.ingest()
    assert filled.value("SELECT text FROM documents WHERE source_path = 'plans/pier.md'") == "# Pier\n\nThe pier is closed.\n"


@pytest.mark.slow
def test_a_hundred_kills_of_each(filled, tmp_path):
    name = export_corpus(filled.installation).name
    for number in range(100):
        kill_an_export(filled, tmp_path, EXPORTING[number % len(EXPORTING)])
        changed(filled, f"# Pier\n\nThe pier is closed, as of {datetime.now(UTC)}.\n")
        kill_a_restore(filled, tmp_path, RESTORING[number % len(RESTORING)], name)
