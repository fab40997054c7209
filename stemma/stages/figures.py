"""Figures: the pictures of published documents, taken from the files once and kept; no text, chunk or vector is touched."""

import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import structlog
from psycopg.rows import class_row

from sql import load_queries
from stemma.errors import DocumentError
from stemma.library.paths import member_chain
from stemma.library.spool import spool
from stemma.parsing.document import ParsedDocument
from stemma.parsing.figures import FIGURES
from stemma.parsing.workers import ParseJob, ParserPool
from stemma.settings import Settings
from stemma.stages.run import now
from stemma.stages.taking_out import Contained, take_out_documents
from stemma.store.lake import Lake
from stemma.store.locks import FIGURES_LOCK, release_session_lock, try_session_lock
from stemma.store.postgres import Connection, Pool
from stemma.store.stage_results import result_key

log = structlog.get_logger(__name__)

EARLIER_FIGURES = 20
"""Documents beside its own of which a run takes the pictures: those of a run that was killed before it came to them."""

_UNSHOWN: dict[str, Any] = {"sha256": None, "mime_type": None, "width": None, "height": None}


@dataclass(frozen=True)
class Kept:
    """What a pass did."""

    documents: int = 0
    pictures: int = 0
    failed: int = 0
    """Documents whose pictures could not be taken this time."""


@dataclass(frozen=True)
class WantedPictures:
    """A document's file, and the places of its pictures."""

    source_path: str
    disk_path: bytes
    content_hash: str
    pictures: list[str]

    @property
    def is_contained(self) -> bool:
        """Whether it lies in a mail or archive of the library."""
        return bool(member_chain(self.source_path))

    def folder(self, home: Path) -> Path:
        """Where what was taken so far lies: a pass that was ended goes on from there."""
        return _unfinished(home) / result_key(self.content_hash, "figures", FIGURES.parser_version)

    def job(self, settings: Settings, copy: Path) -> ParseJob:
        """The work on a private copy."""
        return ParseJob(copy, self.source_path, FIGURES, work_folder=self.folder(settings.home), pictures=tuple(self.pictures))


def keep_figures(pool: Pool, lake: Lake, settings: Settings, *, source_ids: Sequence[str] = (), limit: int) -> Kept:
    """Take the pictures that published documents lack, of `limit` documents at most, those of the given sources first.

    One pass at a time; where another is at work, nothing is done. Each document is recorded when its pictures lie in the lake. A
    file that changed since it was published is left to its next version. Pictures of documents that are gone are removed.
    """
    with pool.connection() as connection:
        if not try_session_lock(connection, FIGURES_LOCK):
            return Kept()
        try:
            _forget(connection, lake)
            return _keep(connection, lake, settings, source_ids=source_ids, limit=limit)
        finally:
            release_session_lock(connection, FIGURES_LOCK)


def forget_all_figures(pool: Pool) -> None:
    """Have the next passes take every picture again; until then, what was taken stays."""
    with pool.connection() as connection:
        connection.execute("UPDATE figures SET revision = 0")


def _forget(connection: Connection, lake: Lake) -> None:
    queries = load_queries("figures")
    gone = {sha256 for (sha256,) in connection.execute(queries["forget_figures"]) if sha256}
    used = {sha256 for (sha256,) in connection.execute(queries["pictures_in_use"], {"sha256": sorted(gone)})}
    for sha256 in sorted(gone - used):
        lake.remove_picture(sha256)
    connection.commit()


def _keep(connection: Connection, lake: Lake, settings: Settings, *, source_ids: Sequence[str], limit: int) -> Kept:
    parameters = {"revision": FIGURES.revision, "source_ids": list(source_ids), "limit": limit}
    with connection.cursor(row_factory=class_row(WantedPictures)) as cursor:
        rows = cursor.execute(load_queries("figures")["documents_without_figures"], parameters).fetchall()
    connection.commit()
    wanted = {row.folder(settings.home): row for row in rows}  # copies have their pictures taken once
    documents = pictures = failed = 0
    with ParserPool(timeout_s=settings.parse_timeout_s, memory_bytes=settings.parse_memory_bytes) as parsers:
        for job, answer in parsers.parse(_jobs(settings, wanted.values())):
            assert job.work_folder is not None
            row = wanted[job.work_folder]
            if isinstance(answer, ParsedDocument):
                records: list[dict[str, Any]] = answer.metadata["pictures"]
                for record in records:
                    if record["sha256"]:
                        lake.keep_picture(record["sha256"], (job.work_folder / record["sha256"]).read_bytes())
                _record(connection, row, records)
                documents += 1
                pictures += sum(record["sha256"] is not None for record in records)
            else:
                log.warning("Pictures cannot be taken", source_path=row.source_path, code=answer.code, detail=answer.detail)
                failed += 1
                if answer.retryable:
                    continue
                _record(connection, row, [_UNSHOWN] * len(row.pictures))  # not again before the bytes or our code change
            shutil.rmtree(job.work_folder, ignore_errors=True)
    return Kept(documents, pictures, failed)


def _jobs(settings: Settings, wanted: Iterable[WantedPictures]) -> Iterator[ParseJob]:
    """A job per document whose bytes are still the published ones, on a private copy."""
    contained: dict[bytes, list[WantedPictures]] = defaultdict(list)
    for row in wanted:
        if row.is_contained:
            contained[row.disk_path].append(row)
        else:
            yield from _job_of_file(settings, row)
    for documents in contained.values():
        yield from _jobs_inside(settings, documents)


def _job_of_file(settings: Settings, row: WantedPictures) -> Iterator[ParseJob]:
    folder = row.folder(settings.home)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        file = spool(settings.library, row.disk_path, folder, source_path=row.source_path, max_bytes=settings.max_file_bytes)
    except DocumentError as error:
        log.info("Pictures wait for the file", source_path=row.source_path, code=error.code)
        return
    if file.content_hash == row.content_hash:
        yield row.job(settings, file.path)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def _jobs_inside(settings: Settings, documents: Sequence[WantedPictures]) -> Iterator[ParseJob]:
    """The jobs of documents that lie in one file, which is opened once; their copies are there while their jobs are worked on."""
    wanted = [Contained(row.source_path, row.disk_path, row.content_hash) for row in documents]
    _unfinished(settings.home).mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=_unfinished(settings.home), prefix="contained-", ignore_cleanup_errors=True) as folder:
        taken, refused = take_out_documents(settings, wanted, Path(folder))
        for source_path, error in refused.items():
            log.info("Pictures wait for the file", source_path=source_path, code=error.code)
        for row in documents:
            if row.source_path in taken:
                yield row.job(settings, taken[row.source_path].path)


def _unfinished(home: Path) -> Path:
    return home / "unfinished"


def _record(connection: Connection, row: WantedPictures, records: Sequence[dict[str, Any]]) -> None:
    columns = {name: [record[name] for record in records] for name in _UNSHOWN}
    parameters = {"content_hash": row.content_hash, "revision": FIGURES.revision, "pictures": row.pictures, "now": now(), **columns}
    connection.execute(load_queries("figures")["record_figures"], parameters)
    connection.commit()
