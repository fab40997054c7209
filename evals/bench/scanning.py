"""What a look costs when nothing changed, and what asking for everything stale costs, at any number of files."""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evals.bench.generated_library import write_documents
from evals.bench.home import server_seconds
from stemma.library.catalog import walk_library
from stemma.library.restriction import EVERYTHING
from stemma.library.staleness import n_sources, stale_counts, stale_sources
from stemma.settings import Settings
from stemma.stages.installation import wanted_fingerprints
from stemma.store.embedded import postgres_url, start_embedded, stop_embedded
from stemma.store.migrations import upgrade
from stemma.store.postgres import Connection, connect, open_pool

_AS_INGESTED = (
    """
    UPDATE sources SET hashed_size = seen_size, hashed_mtime_ns = seen_mtime_ns, hashed_inode = seen_inode, hashed_device = seen_device,
                       hashed_at = now(), content_hash = encode(sha256(disk_path), 'hex'), status = 'ready'
    """,
    """
    INSERT INTO publications (source_id, source_path, run_id, content_hash, state, published_at)
    SELECT source_id, source_path, 'bench', content_hash, 'live', now() FROM sources
    """,
    """
    INSERT INTO stage_state (source_id, stage, input_version, fingerprint, output_hash, result_key, run_id)
    SELECT s.source_id, made.stage, made.input_version, made.fingerprint, made.output, '', 'bench'
      FROM sources AS s
     CROSS JOIN LATERAL (VALUES
           ('documents', s.content_hash, %(parsing)s::text, 'd' || s.content_hash), ('chunks', 'd' || s.content_hash, %(chunking)s, 'c' || s.content_hash),
           ('contextualized_chunks', 'c' || s.content_hash, %(contextualizing)s, 'x' || s.content_hash),
           ('embeddings', 'x' || s.content_hash, %(embedding)s, '1'), ('bm25_index', 'x' || s.content_hash, %(bm25)s, '1'),
           ('corpus', encode(sha256(convert_to(concat_ws(E'\\n', s.source_path, s.content_hash, 'd' || s.content_hash, 'x' || s.content_hash),
                                               'UTF8')), 'hex'), '', ''))
           AS made (stage, input_version, fingerprint, output)
    """,
    "ANALYZE",
)
"""Leaves in the tables that staleness is read from what ingesting leaves there."""


def measure_scan(folder: Path, n_files: int) -> dict[str, Any]:
    """A library of `n_files` in a home of its own: the second walk's processor time and opens, and the staleness query, fresh and all stale."""
    library, home = folder / "library", folder / "home"
    write_documents(library, range(n_files))
    settings = Settings.model_validate({"home": home, "library": library})
    start_embedded(home)
    try:
        pool = open_pool(postgres_url(settings))
        with connect(postgres_url(settings)) as connection:
            upgrade(connection)
            first = _timed(lambda: _walked(pool, settings, n_files))
            wanted = wanted_fingerprints(settings)
            for statement in _AS_INGESTED:
                connection.execute(statement, vars(wanted) if "%(" in statement else None)
                connection.commit()
            opens = _OpensBelow(library)
            server = server_seconds(home)
            second = _timed(lambda: _walked(pool, settings, n_files))
            found = {
                "files": n_files, "first_walk_s": first["wall_s"], "walk_s": second["wall_s"], "walk_cpu_s": second["cpu_s"],
                "walk_postgres_cpu_s": server_seconds(home) - server, "walk_opens": opens.count,
                "stale_counts_fresh_s": _asked(connection, settings, expected=0),
                "stale_counts_all_stale_s": _asked(connection, settings, expected=n_files, stale_chunks=True),
                "stale_page_of_200_s": _timed(
                    lambda: stale_sources(connection, settings, replace(wanted, chunking="other"), restriction=EVERYTHING, limit=200, now=datetime.now(UTC))
                )["wall_s"],
            }  # fmt: skip
        pool.close()
        return found
    finally:
        stop_embedded(home, mode="immediate")


def _walked(pool: Any, settings: Settings, n_files: int) -> None:
    outcome = walk_library(pool, settings, budget_s=600, now=datetime.now(UTC))
    assert outcome.complete and outcome.n_seen == n_files, outcome.message


def _asked(connection: Connection, settings: Settings, *, expected: int, stale_chunks: bool = False) -> float:
    wanted = wanted_fingerprints(settings)
    wanted = replace(wanted, chunking="other") if stale_chunks else wanted
    taken: list[float] = []
    for _ in range(3):
        began = time.perf_counter()
        counts = stale_counts(connection, settings, wanted, now=datetime.now(UTC))
        taken.append(time.perf_counter() - began)
        assert n_sources(counts) == expected, counts
    return min(taken)


class _OpensBelow:
    """Counts the files below a folder that this process opens from now on; folders are listed, not opened."""

    def __init__(self, folder: Path) -> None:
        self.count, self._prefix = 0, os.fsencode(folder)
        sys.addaudithook(self._heard)

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes) and os.fsencode(arguments[0]).startswith(self._prefix):
            self.count += 1


def _timed(work: Callable[[], object]) -> dict[str, float]:
    began, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
